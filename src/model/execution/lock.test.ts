import { describe, expect, test } from "vitest";
import type { Holder } from "./event.ts";
import type { ExecutionId } from "../ids/execution-id.ts";
import { assertLeaseAhead, canAppendLock } from "./lock.ts";
import type { ExecutionState, Lifecycle, PendingState } from "./state.ts";
import type { JoinSetId } from "../ids/join-set-id.ts";
import type { ExecutorId, RunId } from "../ids/prefixed-id.ts";

const id = "a" as ExecutionId;
const me: Holder = {
  executor: "Exr_me" as ExecutorId,
  run: "Run_1" as RunId,
  owner: null,
};
const myLaterRun: Holder = { ...me, run: "Run_2" as RunId };
const other: Holder = { ...me, executor: "Exr_other" as ExecutorId };

function state(pending: PendingState, lifecycle: Lifecycle = "active"): ExecutionState {
  return {
    role: "workflow",
    version: 3,
    pending,
    lifecycle,
    failures: 0,
    deaths: 0,
    aloneDeaths: 0,
    retry: null,
    codeVersion: null,
    incompatible: [],
    historyFrom: 0,
    responsesFrom: 0,
    continuations: 0,
    responses: 0,
  };
}

const due = (dueAt: number, lastLock: Holder | null): PendingState => ({
  kind: "pending",
  dueAt,
  leaseUntil: null,
  lastLock,
});
const held = (holder: Holder, leaseUntil: number): PendingState => ({
  kind: "locked",
  holder,
  leaseUntil,
  lockVersion: 3,
  isAlone: false,
});
const blocked: PendingState = {
  kind: "blocked",
  on: {
    kind: "joinSet",
    joinSet: "n:x" as JoinSetId,
    ordinal: 1,
    isClosing: false,
  },
  leaseUntil: 500,
  lastLock: me,
};
const finished: PendingState = {
  kind: "finished",
  finishedAt: 1,
  resultKind: "completed",
};

/** All asked by `me` at 100, until 200. */
const asleep = (lastLock: Holder, dueAt: number): PendingState => ({
  kind: "pending",
  dueAt,
  leaseUntil: dueAt,
  lastLock,
  seen: 0,
  wakeAt: 90,
});

const table: readonly [string, PendingState, string][] = [
  ["due before", due(99, null), "new"],
  ["due exactly now", due(100, null), "new"],
  ["due now, last locked by another", due(100, other), "new"],
  ["due now, last locked by me", due(100, me), "new"],
  ["due in a ms, never locked", due(101, null), "LOCK_NOT_DUE"],
  ["due in a ms, last locked by another", due(101, other), "LOCK_NOT_DUE"],
  ["due in a ms, by an earlier run of mine", due(101, myLaterRun), "LOCK_NOT_DUE"],
  ["due in a ms, last locked by me", due(101, me), "extension"],
  ["locked by me", held(me, 150), "extension"],
  ["locked by me, until now", held(me, 100), "extension"],
  ["locked by me, expired", held(me, 50), "extension"],
  ["locked by another", held(other, 150), "LOCK_HELD"],
  ["locked by another, expired", held(other, 50), "LOCK_HELD"],
  ["locked by another run of mine", held(myLaterRun, 150), "LOCK_HELD"],
  ["blocked, kept by me", blocked, "extension"],
  ["blocked, kept by another", { ...blocked, lastLock: other }, "LOCK_BLOCKED"],
  ["blocked, kept by nobody", { ...blocked, leaseUntil: null }, "LOCK_BLOCKED"],
  ["asleep, kept by me", asleep(me, 200), "extension"],
  ["asleep, kept by another", asleep(other, 200), "LOCK_NOT_DUE"],
  ["asleep, until now", asleep(other, 100), "new"],
  ["finished", finished, "EXECUTION_FINISHED"],
];

function outcome(of: ExecutionState): string {
  try {
    return canAppendLock(id, of, {
      at: 100,
      holder: me,
      leaseUntil: 200,
      codeVersion: "v2",
    });
  } catch (error) {
    return (error as { readonly code: string }).code;
  }
}

describe("who may lock", () => {
  test.each(table)("one that is %s: %s", (_, pending, expected) => {
    expect(outcome(state(pending))).toBe(expected);
    expect(outcome(state(pending, "cancelling"))).toBe(expected);
  });

  test.each([
    ["paused", "EXECUTION_PAUSED"],
    ["parked", "EXECUTION_PARKED"],
  ] as const)("nobody while it is %s", (lifecycle, code) => {
    for (const pending of [due(0, null), due(200, me), held(me, 300)])
      expect(outcome(state(pending, lifecycle))).toBe(code);
    expect(outcome(state(finished, lifecycle))).toBe("EXECUTION_FINISHED");
  });

  test.each([
    [99, false],
    [100, false],
    [101, true],
    [Number.NaN, false],
  ])("a lease from 100 to %d: %s", (leaseUntil, isFine) => {
    const check = (): void => assertLeaseAhead({ at: 100, leaseUntil });
    if (isFine) expect(check).not.toThrow();
    else expect(check).toThrow(expect.objectContaining({ code: "LOCK_EXPIRY_INVALID" }));
  });

  test("the lease comes before everything else", () => {
    expect(() =>
      canAppendLock(id, state(finished), {
        at: 100,
        holder: me,
        leaseUntil: 100,
        codeVersion: null,
      }),
    ).toThrow(expect.objectContaining({ code: "LOCK_EXPIRY_INVALID" }));
  });
});
