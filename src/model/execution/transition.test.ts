import { describe, expect, test } from "vitest";
import type { Encoded } from "../values/encoded.ts";
import type { ExecutionEvent, Holder, LossCount } from "./event.ts";
import type { ExecutionId } from "../ids/execution-id.ts";
import type { ExecutionState, PendingState } from "./state.ts";
import { afterEvent, afterResponse } from "./transition.ts";
import type { JoinSetId } from "../ids/join-set-id.ts";
import type { ExecutorId, OwnerId, RunId } from "../ids/prefixed-id.ts";

const id = "a" as ExecutionId;
const me: Holder = {
  executor: "Exr_me" as ExecutorId,
  run: "Run_1" as RunId,
  owner: "Own_1" as OwnerId,
};
const other: Holder = { ...me, executor: "Exr_other" as ExecutorId };
const x = "n:x" as JoinSetId;
const y = "n:y" as JoinSetId;

const pending: PendingState = {
  kind: "pending",
  dueAt: 90,
  leaseUntil: null,
  lastLock: null,
};
const soft: PendingState = {
  kind: "pending",
  dueAt: 300,
  leaseUntil: 300,
  lastLock: me,
};
const locked: PendingState = {
  kind: "locked",
  holder: me,
  leaseUntil: 200,
  lockVersion: 3,
  isAlone: false,
};
const blockedOn = (joinSet: JoinSetId, leaseUntil: number | null): PendingState => ({
  kind: "blocked",
  on: { kind: "joinSet", joinSet, ordinal: 1, isClosing: false },
  leaseUntil,
  lastLock: me,
});
const cold: PendingState = blockedOn(x, null);
const hot: PendingState = blockedOn(x, 200);
const waits = (leaseUntil: number | null): PendingState => ({
  kind: "blocked",
  on: { kind: "responses", seen: 2 },
  leaseUntil,
  lastLock: me,
});
const external: PendingState = {
  kind: "blocked",
  on: { kind: "resolution" },
  leaseUntil: null,
  lastLock: null,
};
const finished: PendingState = {
  kind: "finished",
  finishedAt: 50,
  resultKind: "completed",
};

function state(of: PendingState, changes: Partial<ExecutionState> = {}): ExecutionState {
  return {
    role: "workflow",
    version: 3,
    pending: of,
    lifecycle: "active",
    failures: 1,
    deaths: 2,
    aloneDeaths: 0,
    retry: null,
    codeVersion: "v1",
    incompatible: [],
    historyFrom: 0,
    responsesFrom: 0,
    continuations: 0,
    responses: 2,
    ...changes,
  };
}

const retry = { maxRetries: 2, backoffMs: 100, backoffMaxMs: 1_000 };
const at = { call: 1, seen: 2 };
const lock = (holder: Holder): ExecutionEvent => ({
  kind: "locked",
  holder,
  leaseUntil: 400,
  retry,
  codeVersion: null,
});
const unlock = (dueAt: number): ExecutionEvent => ({
  kind: "unlocked",
  dueAt,
  reason: "r",
});
const ranOut = (counts: LossCount): ExecutionEvent => ({
  kind: "attemptTimedOut",
  counts,
  dueAt: 150,
});
const timedOut = ranOut("attempt");
const failed: ExecutionEvent = {
  kind: "attemptFailed",
  dueAt: 150,
  error: "1" as Encoded,
};
const step: ExecutionEvent = {
  ...at,
  kind: "stepFinished",
  name: "s",
  inputHash: null,
  outcome: "completed",
  value: "1" as Encoded,
};
const ask = (runExpiresAt: number): ExecutionEvent => ({
  ...at,
  kind: "joinNext",
  joinSet: y,
  runExpiresAt,
  function: null,
  isClosing: true,
});
const wait = (runExpiresAt: number): ExecutionEvent => ({
  ...at,
  kind: "waiting",
  runExpiresAt,
  wakeAt: null,
});
const end: ExecutionEvent = {
  kind: "finished",
  resultKind: "failed",
  resultHash: "",
  result: "1" as Encoded,
};
const cancelled: ExecutionEvent = {
  kind: "cancellationRequested",
  reason: null,
  cause: "request",
};
const paused: ExecutionEvent = { kind: "paused" };
const unpaused: ExecutionEvent = { kind: "unpaused" };
const unparked: ExecutionEvent = { kind: "unparked" };
const died = (counts: LossCount): ExecutionEvent => ({
  kind: "ownerDied",
  owner: "Own_1" as OwnerId,
  dueAt: 150,
  counts,
});
const continued: ExecutionEvent = {
  kind: "continued",
  input: "1" as Encoded,
  inputHash: "",
  seen: 2,
  unread: null,
  left: [],
  continuation: 1,
};
const parked: ExecutionEvent = {
  kind: "parked",
  code: "X",
  reason: "r",
  codeVersion: null,
};

/** The state, or the code of the refusal, after an event at 100. */
function after(
  given: ExecutionState,
  event: ExecutionEvent,
  answeredAt: number | null = null,
): ExecutionState | string {
  try {
    return afterEvent(id, given, { at: 100, event, answeredAt, ordinal: 1 });
  } catch (error) {
    return (error as { readonly code?: string }).code ?? String(error);
  }
}

const dueAgain = (dueAt: number, lastLock: Holder | null): PendingState => ({
  kind: "pending",
  dueAt,
  leaseUntil: null,
  lastLock,
});
const lockedNow = (holder: Holder): PendingState => ({
  kind: "locked",
  holder,
  leaseUntil: 400,
  lockVersion: 4,
  isAlone: false,
});
const asked = (leaseUntil: number | null, lastLock: Holder | null): PendingState => ({
  kind: "blocked",
  on: { kind: "joinSet", joinSet: y, ordinal: 1, isClosing: true },
  leaseUntil,
  lastLock,
});
const ended: PendingState = {
  kind: "finished",
  finishedAt: 100,
  resultKind: "failed",
};

describe("the state after an event", () => {
  const table: readonly [
    string,
    PendingState,
    ExecutionEvent,
    number | null,
    PendingState | string,
  ][] = [
    // from, event, when its question was answered, to
    ["pending, locked", pending, lock(other), null, lockedNow(other)],
    ["pending, given back later", pending, unlock(90), null, "UNLOCK_REFUSED"],
    ["pending, brought forward", pending, unlock(80), null, dueAgain(80, null)],
    ["pending, timed out", pending, timedOut, null, dueAgain(150, null)],
    ["pending, finished", pending, end, null, ended],
    ["pending, asks", pending, ask(100), null, asked(null, null)],
    ["pending, asks what came", pending, ask(100), 60, dueAgain(100, null)],
    ["pending, step", pending, step, null, pending],
    ["kept, extended", soft, lock(me), null, lockedNow(me)],
    ["kept, locked by another", soft, lock(other), null, "LOCK_NOT_DUE"],
    ["kept, given back", soft, unlock(100), null, dueAgain(100, me)],
    ["kept, given back too late", soft, unlock(300), null, "UNLOCK_REFUSED"],
    ["locked, extended", locked, lock(me), null, lockedNow(me)],
    ["locked, by another", locked, lock(other), null, "LOCK_HELD"],
    ["locked, given back", locked, unlock(150), null, dueAgain(150, me)],
    ["locked, timed out", locked, timedOut, null, dueAgain(150, me)],
    ["locked, finished", locked, end, null, ended],
    ["locked, asks", locked, ask(200), null, asked(200, me)],
    ["locked, asks and lets go", locked, ask(100), null, asked(null, me)],
    [
      "locked, asks what came",
      locked,
      ask(200),
      60,
      { ...dueAgain(200, me), leaseUntil: 200 } as PendingState,
    ],
    ["locked, asks what came after", locked, ask(90), 95, dueAgain(95, me)],
    ["locked, waits", locked, wait(200), null, waits(200)],
    ["locked, waits for what came", locked, wait(100), 99, dueAgain(100, me)],
    ["locked, step", locked, step, null, locked],
    ["blocked, locked", cold, lock(me), null, "LOCK_BLOCKED"],
    ["blocked, given back", hot, unlock(100), null, cold],
    ["blocked, timed out", hot, timedOut, null, dueAgain(150, me)],
    ["blocked, finished", hot, end, null, ended],
    ["blocked, asks", hot, ask(200), null, asked(200, me)],
    ["blocked, step", hot, step, null, hot],
    ["external, finished", external, end, null, ended],
    ["locked, parked", locked, parked, null, dueAgain(100, me)],
    ["blocked, parked", hot, parked, null, cold],
    ["pending, paused", pending, paused, null, pending],
    ["pending, unpaused", pending, unpaused, null, "EXECUTION_NOT_PAUSED"],
    ["pending, unparked", pending, unparked, null, "EXECUTION_NOT_PARKED"],
  ];
  test.each(table)("%s", (_, from, event, answeredAt, expected) => {
    const next = after(state(from), event, answeredAt);
    if (typeof next === "string") expect(next).toBe(expected);
    else {
      expect(next.pending).toEqual(expected);
      expect(next.version).toBe(4);
    }
  });

  test.each([step, lock(me), unlock(1), end, ask(1), paused] as const)(
    "is none after the end: %j",
    (event) => {
      expect(after(state(finished), event)).toBe("EXECUTION_FINISHED");
    },
  );

  test.each(["created", "forked"])("is none for %s", (kind) => {
    expect(after(state(pending), { kind } as ExecutionEvent)).toBe("EVENTS_INVALID");
  });
});

describe("what is counted", () => {
  test.each([
    ["a failed attempt", failed, 2, 0, 0],
    ["a lock that ran out, as an attempt", timedOut, 2, 0, 0],
    ["a lock that ran out, as a death", ranOut("death"), 1, 3, 1],
    ["a lock that ran out alone", ranOut("aloneDeath"), 1, 3, 2],
    ["a lock that a living worker let run out", ranOut("nothing"), 1, 2, 1],
    ["a step", step, 1, 0, 0],
    ["giving back", unlock(150), 1, 2, 1],
    ["the death of an attempt", died("attempt"), 2, 0, 0],
    ["a death without progress", died("death"), 1, 3, 1],
    ["a death alone", died("aloneDeath"), 1, 3, 2],
    ["a death that is free", died("nothing"), 1, 2, 1],
    ["a lock", lock(me), 1, 2, 1],
    ["a request to cancel", cancelled, 1, 2, 0],
    ["a new start", continued, 0, 0, 0],
  ] as const)("by %s", (_, event, failures, deaths, aloneDeaths) => {
    expect(after(state(locked, { aloneDeaths: 1 }), event)).toMatchObject({
      failures,
      deaths,
      aloneDeaths,
    });
  });

  test("a lock is alone when it says so, and its extension is not", () => {
    const alone = { ...lock(me), alone: true } as ExecutionEvent;
    const first = after(state(pending), alone);
    expect(first).toMatchObject({ pending: { kind: "locked", isAlone: true } });
    expect(after(first as ExecutionState, lock(me))).toMatchObject({ pending: { isAlone: false } });
  });

  test("a lock brings its terms, and a code version when it has one", () => {
    expect(after(state(pending), lock(me))).toMatchObject({
      retry,
      codeVersion: "v1",
    });
    const newer = { ...lock(me), codeVersion: "v2" } as ExecutionEvent;
    expect(after(state(pending), newer)).toMatchObject({ codeVersion: "v2" });
  });

  test("history begins after a new start, which only a workflow has", () => {
    expect(after(state(locked), continued)).toMatchObject({
      historyFrom: 4,
      continuations: 1,
      pending: { kind: "pending", dueAt: 100, lastLock: me },
    });
    expect(after(state(locked, { role: "activity" }), continued)).toBe("EVENTS_INVALID");
  });
});

describe("the state after a response at 100", () => {
  const table: readonly [string, PendingState, JoinSetId | null, PendingState][] = [
    ["of the set it waits for", cold, x, dueAgain(100, me)],
    ["of another set", cold, y, cold],
    ["a signal, while it waits for a set", cold, null, cold],
    ["while a worker keeps it", blockedOn(x, 300), x, soft],
    ["when its lease just ended", blockedOn(x, 100), x, dueAgain(100, me)],
    ["when its lease has passed", blockedOn(x, 50), x, dueAgain(100, me)],
    ["any, while it waits for any", waits(null), y, dueAgain(100, me)],
    ["of a run before, while it waits for any", waits(null), "n1:y" as JoinSetId, waits(null)],
    ["a signal, while it waits for any", waits(300), null, soft],
    ["while it waits for a resolution", external, x, external],
    ["while it is locked", locked, x, locked],
    ["while it is pending", pending, x, pending],
    ["after its end", finished, x, finished],
  ];
  test.each(table)("%s", (_, from, joinSet, expected) => {
    expect(afterResponse(state(from), { at: 100, joinSet, ordinal: 1 })).toEqual(
      state(expected, { responses: 3 }),
    );
  });
});
