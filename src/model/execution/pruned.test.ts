import { expect, test } from "vitest";
import type { ExecutionId } from "../ids/execution-id.ts";
import type { ExecutorId, RunId } from "../ids/prefixed-id.ts";
import { unlimitedRetryPolicy } from "../time/retry-policy.ts";
import type { ExecutionEvent } from "./event.ts";
import { LastLocks } from "./pruned.ts";

const locked = (codeVersion: string | null): ExecutionEvent => ({
  kind: "locked",
  holder: {
    executor: "Exr_1" as ExecutorId,
    run: "Run_1" as RunId,
    owner: null,
  },
  leaseUntil: 9,
  retry: unlimitedRetryPolicy,
  codeVersion,
});
const execution = "a" as ExecutionId;
const forked: ExecutionEvent = {
  kind: "forked",
  from: {
    execution,
    version: 1,
    isRetry: false,
    original: { execution, createdAt: 0 },
  },
};
const paused: ExecutionEvent = { kind: "paused" };

/** Looked at from the last event on. */
test.each<[string, readonly ExecutionEvent[], readonly number[], boolean]>([
  ["the last lock", [paused, locked("v2"), locked("v1")], [8], true],
  [
    "the last that names a version of the code",
    [locked(null), locked(null), locked("v2"), locked("v1")],
    [9, 7],
    true,
  ],
  ["no earlier one", [locked("v2"), locked(null), locked("v1")], [9], true],
  [
    "what made a copy, after which nobody has held it, and the lock before that",
    [forked, locked("v1"), locked("v1")],
    [9, 8],
    true,
  ],
  ["no copy that was held since", [locked(null), forked], [9], false],
  ["nothing when nobody ever held it", [paused], [], false],
])("of a pruned history stays %s", (_, events, versions, isComplete) => {
  const locks = new LastLocks();
  events.forEach((event, index) => {
    locks.look(9 - index, event);
  });
  expect(locks.versions).toEqual(versions);
  expect(locks.isComplete).toBe(isComplete);
});
