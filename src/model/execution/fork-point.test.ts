import { describe, expect, test } from "vitest";
import type { Encoded } from "../values/encoded.ts";
import type { DelayId } from "../ids/delay-id.ts";
import type { ExecutionEvent } from "./event.ts";
import type { ExecutionId } from "../ids/execution-id.ts";
import { isFailureOfStep, isKeptOnRetry } from "./fork-point.ts";
import type { FunctionName } from "../ids/function-name.ts";
import type { JoinSetId } from "../ids/join-set-id.ts";

const at = { call: 1, seen: 0 };
const joinSet = "n:x" as JoinSetId;
const value = "1" as Encoded;
const step = { ...at, kind: "stepFinished", name: "s", inputHash: null, value };
const transaction = { ...step, kind: "transactionFinished" };

const kept: readonly [boolean, object][] = [
  [true, { ...at, kind: "joinSetCreated", joinSet }],
  [
    true,
    {
      ...at,
      kind: "childRequested",
      joinSet,
      child: "a.n:x_1" as ExecutionId,
      function: "f" as FunctionName,
      inputHash: "",
    },
  ],
  [
    true,
    {
      ...at,
      kind: "delayRequested",
      joinSet,
      delay: "Delay_a.n:x_1" as DelayId,
      expiresAt: 1,
      startAt: "now",
    },
  ],
  [
    true,
    {
      ...at,
      kind: "scheduled",
      execution: "b" as ExecutionId,
      function: "f" as FunctionName,
      inputHash: "",
      startAt: "now",
    },
  ],
  [
    true,
    {
      ...at,
      kind: "externalResolved",
      execution: "b" as ExecutionId,
      resultHash: "",
      outcome: "conflict",
    },
  ],
  [true, { ...at, kind: "signalReceived", signal: "go", seq: 1 }],
  [true, { ...at, kind: "receiveRequested", signal: "go", expiresAt: null }],
  [true, { ...at, kind: "receiveTimedOut", signal: "go" }],
  [true, { ...transaction, outcome: "completed" }],
  [false, { ...transaction, outcome: "failed" }],
  // A copy that kept it would be told to clean up.
  [false, { ...at, kind: "cancellationDelivered" }],
  [true, { ...at, kind: "patched", patch: "p" }],
  [true, { ...step, outcome: "completed" }],
  [false, { ...step, outcome: "failed" }],
  [
    false,
    {
      ...at,
      kind: "stepAttemptFailed",
      name: "s",
      attempt: 1,
      retryAt: 1,
      error: value,
    },
  ],
  [
    false,
    {
      ...at,
      kind: "joinNext",
      joinSet,
      runExpiresAt: 1,
      function: null,
      isClosing: false,
    },
  ],
  [false, { ...at, kind: "joinNextTooMany", joinSet, function: null }],
  [false, { ...at, kind: "joinNextTried", joinSet, outcome: "found" }],
  [false, { ...at, kind: "waiting", runExpiresAt: 1 }],
  [false, { kind: "unlocked", dueAt: 1, reason: "r" }],
  [false, { kind: "attemptTimedOut", dueAt: 1 }],
  [false, { kind: "paused" }],
];

describe("a run that is tried again", () => {
  test.each(kept)("keeps (%s) what it achieved: %j", (isKept, event) => {
    expect(isKeptOnRetry(event as ExecutionEvent)).toBe(isKept);
  });

  test.each([
    [{ ...step, outcome: "failed" }, true],
    [{ ...step, outcome: "completed" }, false],
    [{ ...transaction, outcome: "failed" }, true],
    [{ ...transaction, outcome: "completed" }, false],
    [{ kind: "stepAttemptFailed" }, true],
    [{ kind: "waiting" }, false],
  ])("may come out otherwise before %j: %s", (event, isFailure) => {
    expect(isFailureOfStep(event)).toBe(isFailure);
  });
});
