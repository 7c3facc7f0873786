import { HoldfastError } from "../../model/errors.ts";
import { excerpt } from "../../model/values/excerpt.ts";
import type { ExecutionRole, Holder } from "../../model/execution/event.ts";
import {
  isMetadataName,
  isMetadataValue,
  metadataEntriesMax,
  metadataNameMax,
  metadataValueMax,
  type Metadata,
} from "../../model/execution/metadata.ts";
import { parseExecutorId, parseRunId } from "../../model/ids/prefixed-id.ts";
import type { RetryPolicy } from "../../model/time/retry-policy.ts";
import {
  checkedCount,
  checkedText,
  draftOf,
  givenInvalid,
  givenList,
  givenObject,
  isStorable,
  readGiven,
} from "../../model/shape.ts";
import { isList, spokenKind } from "../../model/values/spoken-kind.ts";

/**
 * Checks of callers' input. Text must not contain a NUL or a lone surrogate, since no column
 * accepts them.
 */

const tagsMax = 32;
/** Duplicates are allowed. */
const tagsGivenMax = 1_000;

const roles: Readonly<Record<ExecutionRole, true>> = {
  workflow: true,
  activity: true,
  external: true,
};

export function checkedRole(role: ExecutionRole): ExecutionRole {
  if (typeof role === "string" && Object.hasOwn(roles, role)) return role;
  throw new HoldfastError(
    "OPTION_INVALID",
    `A role must be one of ${Object.keys(roles).join(", ")}; got ${typeof role === "string" ? excerpt(role) : spokenKind(role)}.`,
    { option: "role" },
  );
}

/** The distinct tags, in order. */
export function checkedTags(tags: readonly string[]): readonly string[] {
  const given = givenList("tags", tags, tagsGivenMax).map((tag) => checkedText("A tag", tag));
  const unique = [...new Set(given)].toSorted();
  if (unique.length <= tagsMax) return unique;
  throw new HoldfastError(
    "OPTION_INVALID",
    `A run may have at most ${tagsMax} tags; got ${unique.length}.`,
    { tags: unique.length },
  );
}

/** Checks a version: a position in a log, from 0 on. */
export function checkedVersion(version: number): number {
  return checkedCount("version", version);
}

/**
 * A frozen copy, so that the caller cannot change it after the checks. An invalid name is not shown, because it
 * may be private. @throws HoldfastError `OPTION_INVALID`
 */
export function checkedMetadata(metadata: Metadata): Metadata {
  const given = givenObject("metadata", metadata);
  if (isList(given)) throw givenInvalid("metadata", "an object of strings", given);
  const entries = readGiven("metadata", () => Object.entries(given));
  if (entries.length > metadataEntriesMax)
    throw metadataInvalid(
      "metadata",
      `metadata may have at most ${metadataEntriesMax} entries; got ${entries.length}`,
    );
  entries.forEach(([name, value], index) => {
    if (!isMetadataName(name))
      throw metadataInvalid(
        "metadata",
        `The name of metadata entry ${index + 1} must be a string of 1 to ${metadataNameMax} characters without U+0000 or lone surrogates; got ${name.length} characters`,
      );
    if (!isMetadataValue(value))
      throw metadataInvalid(
        `metadata.${name}`,
        `The value of metadata entry ${index + 1} must be a string of at most ${metadataValueMax} characters without U+0000 or lone surrogates; got ` +
          (typeof value === "string"
            ? `${(value as string).length} characters`
            : spokenKind(value)),
      );
  });
  return Object.freeze(Object.fromEntries(entries));
}

function metadataInvalid(path: string, fault: string): HoldfastError {
  return new HoldfastError(
    "OPTION_INVALID",
    `${fault}. Keep larger data in the input, and give its id here.`,
    { option: "metadata", path },
  );
}

/** @throws HoldfastError `OPTION_INVALID` */
export function checkedRetry(retry: RetryPolicy): RetryPolicy {
  const { maxRetries, backoffMs, backoffMaxMs } = draftOf("retry", retry, [
    "maxRetries",
    "backoffMs",
    "backoffMaxMs",
  ]);
  return {
    maxRetries: maxRetries === null ? null : checkedCount("maxRetries", maxRetries),
    backoffMs: checkedCount("backoffMs", backoffMs),
    backoffMaxMs: checkedCount("backoffMaxMs", backoffMaxMs),
  };
}

/** The holder of an execution: a worker, and the round in which it locked. */
export type Fence = Pick<Holder, "executor" | "run">;

/** Checks a fence. The holder of a locked execution is accepted too; its owner is left out. @throws HoldfastError `OPTION_INVALID`, `ID_MALFORMED` */
export function checkedFence(option: "fence" | "holder", fence: Fence): Fence {
  const { executor, run } = draftOf<Fence & Partial<Holder>>(option, fence, [
    "executor",
    "run",
    "owner",
  ]);
  return { executor: parseExecutorId(executor), run: parseRunId(run) };
}

/** The size limit of a log message or a stack: these are notes for people, not data. */
const textBytesMax = 64 * 1024;

/**
 * @throws HoldfastError `VALUE_TOO_LARGE` for a text above 64 KiB as UTF-8;
 *   `TEXT_INVALID` for one that no column takes.
 */
export function assertFits(what: string, text: string): void {
  // Each UTF-16 unit takes at least one byte, so a text that is far too long need not be encoded.
  if (typeof text === "string" && text.length > textBytesMax)
    throw textTooLarge(what, text.length, "at least ");
  if (!isStorable(text))
    throw new HoldfastError(
      "TEXT_INVALID",
      `${what} contains U+0000 or a lone surrogate, or is not text; nothing was written. ` +
        'Remove those characters, for example with text.replaceAll("\\0", "").toWellFormed().',
      { what },
    );
  // A UTF-16 unit takes at most three bytes, so most texts need no counting.
  if (text.length * 3 <= textBytesMax) return;
  const size = new TextEncoder().encode(text).length;
  if (size <= textBytesMax) return;
  throw textTooLarge(what, size);
}

function textTooLarge(what: string, size: number, atLeast = ""): HoldfastError {
  return new HoldfastError(
    "VALUE_TOO_LARGE",
    `${what} takes ${atLeast}${size} bytes; the limit is ${textBytesMax}. Shorten it, or store the bulk elsewhere and refer to it.`,
    { size, limit: textBytesMax },
  );
}
