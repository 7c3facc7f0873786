import { describe, expect, test } from "vitest";
import type { Encoded } from "../values/encoded.ts";
import type { ExecutionEvent, Holder } from "./event.ts";
import type { ExecutionId } from "../ids/execution-id.ts";
import type { JoinSetId } from "../ids/join-set-id.ts";
import type { ExecutorId, OwnerId, RunId } from "../ids/prefixed-id.ts";
import { isHeld } from "./pending.ts";
import type { ExecutionState, Lifecycle, PendingState } from "./state.ts";
import { afterEvent } from "./transition.ts";

const me: Holder = {
  executor: "Exr_me" as ExecutorId,
  run: "Run_1" as RunId,
  owner: null,
};

const due = (dueAt: number, leaseUntil: number | null = null): PendingState => ({
  kind: "pending",
  dueAt,
  leaseUntil,
  lastLock: me,
});
const pending = due(90);
const soft = due(300, 300);
const locked: PendingState = {
  kind: "locked",
  holder: me,
  leaseUntil: 200,
  lockVersion: 3,
  isAlone: false,
};
const waits = (leaseUntil: number | null): PendingState => ({
  kind: "blocked",
  on: { kind: "responses", seen: 2 },
  leaseUntil,
  lastLock: me,
});
const cold = waits(null);
const hot = waits(300);
const external: PendingState = {
  kind: "blocked",
  on: { kind: "resolution" },
  leaseUntil: null,
  lastLock: null,
};
const takenFromAll: PendingState = { ...external, lastLock: me };
const finished: PendingState = {
  kind: "finished",
  finishedAt: 50,
  resultKind: "completed",
};

const asked = (cause: "request" | "force"): ExecutionEvent => ({
  kind: "cancellationRequested",
  reason: null,
  cause,
});
const requested = asked("request");
const forced = asked("force");
const paused: ExecutionEvent = { kind: "paused" };
const events: readonly ExecutionEvent[] = [
  {
    call: 1,
    seen: 2,
    kind: "stepFinished",
    name: "s",
    inputHash: null,
    outcome: "completed",
    value: "1" as Encoded,
  },
  {
    call: 1,
    seen: 2,
    kind: "joinNext",
    joinSet: "n:y" as JoinSetId,
    runExpiresAt: 1,
    function: null,
    isClosing: true,
  },
  {
    kind: "locked",
    holder: me,
    leaseUntil: 400,
    retry: { maxRetries: 2, backoffMs: 100, backoffMaxMs: 1_000 },
    codeVersion: null,
  },
  { kind: "attemptTimedOut", counts: "attempt", dueAt: 150 },
  { kind: "parked", code: "X", reason: "r", codeVersion: null },
  paused,
  { kind: "unpaused" },
  { kind: "unparked" },
  requested,
  forced,
  { kind: "unlocked", dueAt: 10, reason: "r" },
  {
    kind: "ownerDied",
    owner: "Own_1" as OwnerId,
    dueAt: 150,
    counts: "nothing",
  },
  {
    kind: "finished",
    resultKind: "failed",
    resultHash: "",
    result: "1" as Encoded,
  },
];

/** The state, or the code of the refusal, after an event at 100. */
function after(
  of: PendingState,
  event: ExecutionEvent,
  changes: Partial<ExecutionState> = {},
): ExecutionState | string {
  const given: ExecutionState = {
    role: "workflow",
    version: 3,
    pending: of,
    lifecycle: "active",
    failures: 1,
    deaths: 2,
    aloneDeaths: 0,
    retry: null,
    codeVersion: null,
    incompatible: [],
    historyFrom: 0,
    responsesFrom: 0,
    continuations: 0,
    responses: 2,
    ...changes,
  };
  const appending = { at: 100, event, answeredAt: null, ordinal: 1 };
  try {
    return afterEvent("a" as ExecutionId, given, appending);
  } catch (error) {
    return (error as { readonly code?: string }).code ?? String(error);
  }
}

describe("an execution that is asked to end, or paused", () => {
  test.each([
    ["locked, paused", locked, paused, locked],
    ["kept, paused", soft, paused, soft],
    ["blocked and kept, paused", hot, paused, hot],
    ["locked, asked to end", locked, requested, locked],
    ["blocked, asked to end", cold, requested, due(100)],
    ["blocked and kept, asked to end", hot, requested, soft],
    ["kept, asked to end", soft, requested, soft],
    ["due, asked to end", pending, requested, pending],
    ["due later, asked to end", due(900), requested, due(100)],
    ["external, asked to end", external, requested, external],
    ["locked, ended by force", locked, forced, takenFromAll],
    ["kept, ended by force", soft, forced, takenFromAll],
  ])("%s", (_, from, event, expected) => {
    expect(after(from, event)).toMatchObject({ version: 4, pending: expected });
  });

  test("an activity that runs cannot be paused", () => {
    expect(after(locked, paused, { role: "activity" })).toBe("EXECUTION_RUNNING");
  });
});

describe("what an execution that is not active takes", () => {
  const taken: Readonly<Record<Exclude<Lifecycle, "active">, Readonly<Record<string, Lifecycle>>>> =
    {
      paused: {
        unpaused: "active",
        cancellationRequested: "cancelling",
        forced: "cancelling",
        finished: "active",
      },
      cancelling: {
        locked: "cancelling",
        forced: "cancelling",
        finished: "active",
      },
      parked: {
        unparked: "active",
        cancellationRequested: "cancelling",
        forced: "cancelling",
        finished: "active",
      },
    };
  test.each(["paused", "cancelling", "parked"] as const)("%s", (lifecycle) => {
    for (const event of events) {
      const name = event === forced ? "forced" : event.kind;
      const next = after(pending, event, { lifecycle });
      const expected = taken[lifecycle][name];
      if (expected === undefined) expect(next).toBe(`EXECUTION_${lifecycle.toUpperCase()}`);
      else expect(next).toMatchObject({ lifecycle: expected });
    }
  });

  const ofHolder = new Set([
    "stepFinished",
    "joinNext",
    "unlocked",
    "attemptTimedOut",
    "ownerDied",
  ]);
  test.each([
    ["paused, and a worker has it", "paused", locked, true],
    ["paused, and a worker keeps it", "paused", soft, true],
    ["paused, and waits in memory", "paused", hot, true],
    ["paused, and nobody has it", "paused", cold, false],
    ["being cancelled, and a worker has it", "cancelling", locked, true],
    ["being cancelled, and a worker keeps it", "cancelling", hot, true],
    ["being cancelled, and nobody has it", "cancelling", cold, false],
    ["being ended by force", "cancelling", takenFromAll, false],
    ["parked", "parked", locked, false],
  ] as const)("%s", (_, lifecycle, from, isTaken) => {
    for (const event of events.filter(({ kind }) => ofHolder.has(kind))) {
      const next = after(from, event, { lifecycle });
      if (isTaken) expect(next).toMatchObject({ lifecycle, version: 4 });
      else expect(next).toBe(`EXECUTION_${lifecycle.toUpperCase()}`);
    }
  });
});

describe("a worker holds", () => {
  test.each([
    ["what it locked, expired or not", locked, 5_000, true],
    ["what it keeps, before its lease ends", soft, 299, true],
    ["nothing that it kept, when its lease ends", soft, 300, false],
    ["what waits, before its lease ends", waits(300), 299, true],
    ["nothing that waits without a lease", waits(null), 0, false],
    ["nothing that is pending", pending, 0, false],
    ["nothing that has finished", finished, 0, false],
  ] as const)("%s", (_, of, now, expected) => {
    expect(isHeld(of, now)).toBe(expected);
  });
});
