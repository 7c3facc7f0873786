import { HoldfastError } from "../../model/errors.ts";
import { excerpt } from "../../model/excerpt.ts";
import type { ExecutionRole, Holder } from "../../model/execution-event.ts";
import { parseExecutorId, parseRunId } from "../../model/prefixed-id.ts";
import type { RetryPolicy } from "../../model/retry-policy.ts";
import { givenList, givenObject } from "../given.ts";

/** What callers may give, checked where it enters. Text without a NUL or half a character, since no column takes those. */

const tagsMax = 32;
const metadataMax = 32;

/** True for text that every column takes: without U+0000 and halves of characters. */
export function isStorable(text: unknown): text is string {
  return (
    typeof text === "string" && !text.includes("\0") && text.isWellFormed()
  );
}

/**
 * The text itself is not in the error: what people write into reasons and
 * metadata is nobody else's business.
 *
 * @throws HoldfastError `NAME_INVALID`
 */
export function checkedText(
  what: string,
  text: string,
  charactersMax: number = 128,
): string {
  if (isStorable(text) && text.length > 0 && text.length <= charactersMax)
    return text;
  const length = typeof text === "string" ? text.length : undefined;
  throw new HoldfastError(
    "NAME_INVALID",
    `${what} is a text of 1 to ${charactersMax} characters without U+0000 and halves of characters; ` +
      `got ${length === undefined ? typeof text : `${length} characters`}.`,
    { what, ...(length !== undefined && { length }) },
  );
}

/** A text in a filter: any that a column could hold. @throws HoldfastError `OPTION_INVALID` */
export function checkedFilterText(option: string, text: string): string {
  if (isStorable(text)) return text;
  throw new HoldfastError(
    "OPTION_INVALID",
    `Option ${option} is a text without U+0000 and halves of characters, since nothing stored holds those.`,
    { option },
  );
}

const roles: Readonly<Record<ExecutionRole, true>> = {
  workflow: true,
  activity: true,
  external: true,
};

export function checkedRole(role: ExecutionRole): ExecutionRole {
  if (Object.hasOwn(roles, role)) return role;
  throw new HoldfastError(
    "OPTION_INVALID",
    `A role is one of ${Object.keys(roles).join(", ")}; got ${excerpt(role)}.`,
    { option: "role" },
  );
}

/** Each once, in order. */
export function checkedTags(tags: readonly string[]): readonly string[] {
  const given = givenList("tags", tags);
  const unique = [...new Set(given.map((tag) => checkedText("A tag", tag)))];
  if (unique.length <= tagsMax) return unique;
  throw new HoldfastError(
    "OPTION_INVALID",
    `An execution has at most ${tagsMax} tags; got ${unique.length}.`,
    { tags: unique.length },
  );
}

/** @throws HoldfastError `OPTION_INVALID`; `details.option` is `what`. */
export function checkedCount(
  what: string,
  count: number,
  range: { readonly min?: number; readonly max?: number } = {},
): number {
  const { min = 0, max = Number.MAX_SAFE_INTEGER } = range;
  if (Number.isSafeInteger(count) && count >= min && count <= max) return count;
  throw new HoldfastError(
    "OPTION_INVALID",
    `Option ${what} is a whole number from ${min} to ${max}; got ${kindOfCount(count, min)}.`,
    { option: what },
  );
}

/** What is wrong with it, without the number: it may be a user's. */
function kindOfCount(count: unknown, min: number): string {
  if (typeof count !== "number") return typeof count;
  if (!Number.isSafeInteger(count)) return "a number that is not such";
  return count < min ? "a smaller one" : "a larger one";
}

/** A version is a place in a log, from 0 on. */
export function checkedVersion(version: number): number {
  return checkedCount("version", version);
}

const instantMax = 8.64e15;

/** An instant: whole milliseconds since 1970 that a Date can show. */
export function checkedInstant(what: string, instant: number): number {
  if (Number.isSafeInteger(instant) && instant >= 0 && instant <= instantMax)
    return instant;
  throw new HoldfastError(
    "OPTION_INVALID",
    `Option ${what} is an instant in whole milliseconds since 1970, such as Date.now(), up to ${instantMax}; got ${kindOfCount(instant, 0)}.`,
    { option: what },
  );
}

export function checkedMetadata(
  metadata: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const entries = Object.entries(givenObject("metadata", metadata));
  checkedCount("metadata.size", entries.length, { max: metadataMax });
  entries.forEach(([name, value], index) => {
    checkedText(`The name of metadata entry ${index + 1}`, name);
    if (value !== "")
      checkedText(`The value of metadata entry ${index + 1}`, value, 4_096);
  });
  return metadata;
}

export function checkedRetry(retry: RetryPolicy): RetryPolicy {
  if (retry.maxRetries !== null) checkedCount("maxRetries", retry.maxRetries);
  checkedCount("backoffMs", retry.backoffMs);
  checkedCount("backoffMaxMs", retry.backoffMaxMs);
  return retry;
}

/** @throws HoldfastError `ID_MALFORMED` */
export function checkedFence({
  executor,
  run,
}: Pick<Holder, "executor" | "run">): Pick<Holder, "executor" | "run"> {
  return { executor: parseExecutorId(executor), run: parseRunId(run) };
}

/** The same for a text that may be absent. @throws HoldfastError `NAME_INVALID` */
export function optionalText(
  what: string,
  text: string | null | undefined,
  charactersMax: number,
): string | null {
  return text === null || text === undefined
    ? null
    : checkedText(what, text, charactersMax);
}
