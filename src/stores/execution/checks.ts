import { HoldfastError } from "../../model/errors.ts";
import { excerpt } from "../../model/excerpt.ts";
import type { ExecutionRole, Holder } from "../../model/execution-event.ts";
import { parseExecutorId, parseRunId } from "../../model/prefixed-id.ts";
import type { RetryPolicy } from "../../model/retry-policy.ts";
import {
  checkedCount,
  checkedText,
  givenList,
  givenObject,
} from "../../model/shape.ts";

/** What callers may give, checked where it enters. Text without a NUL or half a character, since no column takes those. */

const tagsMax = 32;
const metadataMax = 32;

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

/** A version is a place in a log, from 0 on. */
export function checkedVersion(version: number): number {
  return checkedCount("version", version);
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
