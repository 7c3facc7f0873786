import { describe, expect, test } from "vitest";
import type { LoggedEvent, LoggedResponse } from "./event.ts";
import { spansOf } from "./spans.ts";

type Given = { readonly kind: string } & Readonly<Record<string, unknown>>;

/** A log of events, each with its instant; the version is its place. */
function log(...events: readonly (readonly [at: number, event: Given])[]) {
  return events.map(([at, event], version) => ({
    version,
    at,
    event: { seen: 0, ...event },
  })) as unknown as readonly LoggedEvent<unknown>[];
}

function answers(...responses: readonly (readonly [at: number, response: Given])[]) {
  return responses.map(([at, response], index) => ({
    seq: index + 1,
    at,
    response,
  })) as unknown as readonly LoggedResponse<unknown>[];
}

const created = { kind: "created", role: "workflow", isPaused: false };
const activity = { kind: "created", role: "activity", isPaused: false };
const locked = { kind: "locked", holder: { executor: "e", run: "r", owner: null } };
const lockedBy = (run: string) => ({ kind: "locked", holder: { executor: "e", run, owner: null } });
const stepDone = (call: number, name: string, more: object = {}) => ({
  kind: "stepFinished",
  call,
  name,
  outcome: "completed",
  ...more,
});
const sleepAsked = (call: number, delay: string, expiresAt: number) => ({
  kind: "delayRequested",
  call,
  delay,
  expiresAt,
});
const childAsked = (call: number, child: string, name: string) => ({
  kind: "childRequested",
  call,
  child,
  function: name,
});
const signalAsked = (call: number, signal: string, expiresAt: number | null, seen = 0) => ({
  kind: "receiveRequested",
  call,
  signal,
  expiresAt,
  seen,
});
const bar = (version: number, began: number, ended: number | null, more: object) => ({
  version,
  began,
  ended,
  ...more,
});
const end = (resultKind = "completed") => ({ kind: "finished", resultKind });

describe("[RN1] the bars of a run", () => {
  test("that ran steps beside each other overlap with their true lengths", () => {
    const events = log(
      [0, created],
      [0, locked],
      [100, stepDone(1, "a", { ran: [-100, 0] })],
      [360, stepDone(2, "b", { ran: [-360, -60] })],
      [360, stepDone(3, "c", { ran: [-360, -10], outcome: "failed" })],
      [400, end()],
    );
    expect(spansOf(events, [])).toEqual([
      {
        kind: "step",
        version: 2,
        began: 0,
        ended: 100,
        call: 1,
        name: "a",
        outcome: "completed",
        attempts: [{ attempt: 1, began: 0, ended: 100, outcome: "completed" }],
      },
      {
        kind: "step",
        version: 3,
        began: 0,
        ended: 300,
        call: 2,
        name: "b",
        outcome: "completed",
        attempts: [{ attempt: 1, began: 0, ended: 300, outcome: "completed" }],
      },
      {
        kind: "step",
        version: 4,
        began: 0,
        ended: 350,
        call: 3,
        name: "c",
        outcome: "failed",
        attempts: [{ attempt: 1, began: 0, ended: 350, outcome: "failed" }],
      },
    ]);
  });

  test("[RN3] draw an announced step from its beginning, with the attempt that died and the one under way", () => {
    const began = (call: number, name: string, number: number) => ({
      kind: "stepBegan",
      call,
      name,
      attempt: number,
    });
    const events = log(
      [0, created],
      [10, began(1, "pay", 1)],
      [20, began(2, "mail", 1)],
      [60, { kind: "ownerDied", owner: "o", dueAt: 60, counts: "death" }],
      [90, stepDone(1, "pay", { ran: [-20, -5] })],
      [95, { kind: "stepAttemptFailed", call: 2, name: "mail", attempt: 1, retryAt: 99 }],
      [99, began(2, "mail", 2)],
    );
    const died = { attempt: 1, ended: 60, outcome: "died" };
    expect(spansOf(events, []).filter(({ kind }) => kind === "step")).toMatchObject([
      {
        began: 10,
        ended: 85,
        name: "pay",
        outcome: "completed",
        attempts: [
          { ...died, began: 10 },
          { attempt: 1, began: 70, ended: 85, outcome: "completed" },
        ],
      },
      {
        began: 20,
        ended: null,
        name: "mail",
        outcome: null,
        attempts: [
          { ...died, began: 20 },
          { attempt: 1, began: 95, ended: 95, outcome: "failed" },
          { attempt: 2, began: 99, ended: null, outcome: null },
        ],
      },
    ]);
  });

  test("join the attempts of a call, and one between two attempts is open", () => {
    const failed = (attempt: number, more: object) => ({
      kind: "stepAttemptFailed",
      call: 1,
      name: "pay",
      attempt,
      retryAt: 0,
      ...more,
    });
    const events = log(
      [0, created],
      [50, failed(1, { ran: [-40, -10], isTransaction: true })],
      [500, failed(2, { ran: [-100, 0], isTransaction: true })],
      [900, { ...stepDone(1, "pay", { ran: [-30, 0] }), kind: "transactionFinished" }],
      [900, { ...failed(1, {}), call: 2, name: "mail" }],
    );
    expect(spansOf(events, [])).toEqual([
      {
        kind: "transaction",
        version: 1,
        began: 10,
        ended: 900,
        call: 1,
        name: "pay",
        outcome: "completed",
        attempts: [
          { attempt: 1, began: 10, ended: 40, outcome: "failed" },
          { attempt: 2, began: 400, ended: 500, outcome: "failed" },
          { attempt: 3, began: 870, ended: 900, outcome: "completed" },
        ],
      },
      {
        kind: "step",
        version: 4,
        began: 900,
        ended: null,
        call: 2,
        name: "mail",
        outcome: null,
        attempts: [{ attempt: 1, began: 900, ended: 900, outcome: "failed" }],
      },
    ]);
  });

  test("that waits end with their answers: sleeps, children, answers from outside and signals", () => {
    const events = log(
      [0, created],
      [10, sleepAsked(1, "d1", 60)],
      [20, childAsked(2, "c1", "charge")],
      [20, childAsked(3, "x1", "holdfast/external")],
      [30, signalAsked(4, "go", null)],
      [30, signalAsked(5, "go", 80)],
      [80, { kind: "receiveTimedOut", call: 5, signal: "go" }],
      [90, childAsked(6, "c2", "charge")],
      // A signal that is there already is taken without a wait.
      [95, signalAsked(7, "late", null, 5)],
    );
    const responses = answers(
      [40, { kind: "child", child: "c1", resultKind: "failed" }],
      [50, { kind: "signal", signal: "go" }],
      [60, { kind: "delay", delay: "d1", outcome: "expired" }],
      [70, { kind: "child", child: "x1", resultKind: "completed" }],
      [85, { kind: "signal", signal: "late" }],
    );
    const charge = { kind: "child", name: "charge" };
    const receive = { kind: "receive", until: null };
    expect(spansOf(events, responses)).toEqual([
      bar(1, 10, 60, { kind: "sleep", call: 1, until: 60, outcome: "expired" }),
      bar(2, 20, 40, { ...charge, call: 2, child: "c1", outcome: "failed" }),
      bar(3, 20, 70, { kind: "external", call: 3, child: "x1", outcome: "completed" }),
      bar(4, 30, 50, { ...receive, call: 4, name: "go", outcome: "received" }),
      bar(5, 30, 80, { ...receive, call: 5, name: "go", until: 80, outcome: "timedOut" }),
      bar(7, 90, null, { ...charge, call: 6, child: "c2", outcome: null }),
      bar(8, 95, null, { ...receive, call: 7, name: "late", outcome: null }),
    ]);
  });

  test("an answer that came while its request was being recorded ends no bar before it begins", () => {
    const events = log(
      [0, created],
      [10, { kind: "delayRequested", call: 1, delay: "d", expiresAt: 5 }],
    );
    const [slept] = spansOf(
      events,
      answers([5, { kind: "delay", delay: "d", outcome: "expired" }]),
    );
    expect(slept).toMatchObject({ began: 10, ended: 10, outcome: "expired" });
  });

  test("tell for how long nothing went on: deaths, pauses, parking and cancelling", () => {
    const events = log(
      [0, { ...created, isPaused: true }],
      [10, { kind: "unpaused" }],
      [10, locked],
      [20, { kind: "ownerDied", counts: "death" }],
      [30, lockedBy("r2")],
      [40, { kind: "attemptTimedOut", counts: "death" }],
      [45, { kind: "parked", code: "RUN_KEEPS_KILLING_WORKERS" }],
      [60, { kind: "unparked" }],
      [61, { kind: "paused" }],
      [65, { kind: "cancellationRequested", cause: "request" }],
      [70, lockedBy("r3")],
      [80, end("cancelled")],
    );
    expect(spansOf(events, [])).toEqual([
      { kind: "paused", version: 0, began: 0, ended: 10 },
      { kind: "death", version: 3, began: 20, ended: 30, outcome: "ownerDied" },
      { kind: "death", version: 5, began: 40, ended: 45, outcome: "leaseExpired" },
      { kind: "parked", version: 6, began: 45, ended: 60, outcome: "RUN_KEEPS_KILLING_WORKERS" },
      { kind: "paused", version: 8, began: 61, ended: 65 },
      { kind: "cancelling", version: 9, began: 65, ended: 80 },
    ]);
  });

  test("that wait end when the code is told of its cancellation, and a death when its run is parked", () => {
    const events = log(
      [0, created],
      [0, locked],
      [0, sleepAsked(1, "d1", 1_000)],
      [30, { kind: "cancellationRequested", cause: "request" }],
      [40, { kind: "cancellationDelivered", call: 1 }],
      [50, sleepAsked(2, "d2", 1_000)],
      [60, { kind: "ownerDied", counts: "aloneDeath" }],
      [70, { kind: "parked", code: "RUN_KEEPS_KILLING_WORKERS" }],
    );
    const ends = spansOf(events, []).map(({ kind, began, ended }) => [kind, began, ended]);
    expect(ends).toEqual([
      ["sleep", 0, 40],
      ["cancelling", 30, 70],
      ["sleep", 50, null],
      ["death", 60, 70],
      ["parked", 70, null],
    ]);
  });

  test("of an activity are its attempts, each from its lock to its end", () => {
    const events = log(
      [0, activity],
      [10, lockedBy("a")],
      // The same holder extends its lock.
      [15, lockedBy("a")],
      [20, { kind: "attemptFailed", dueAt: 30 }],
      [30, lockedBy("b")],
      [35, { kind: "unlocked", dueAt: 35, reason: "closes" }],
      [40, lockedBy("c")],
      [50, { kind: "ownerDied", counts: "attempt" }],
      [60, lockedBy("d")],
      [70, { kind: "attemptTimedOut", counts: "attempt" }],
      [80, lockedBy("e")],
      [90, end()],
    );
    const attempt = (
      n: number,
      version: number,
      began: number,
      ended: number,
      outcome: string,
    ) => ({
      kind: "attempt",
      attempt: n,
      version,
      began,
      ended,
      outcome,
    });
    expect(spansOf(events, [])).toEqual([
      attempt(1, 1, 10, 20, "failed"),
      attempt(2, 4, 30, 35, "released"),
      attempt(2, 6, 40, 50, "died"),
      { kind: "death", version: 7, began: 50, ended: 60, outcome: "ownerDied" },
      attempt(3, 8, 60, 70, "timedOut"),
      attempt(4, 10, 80, 90, "completed"),
    ]);
  });

  test("that are open at the end of the run end with it, without an outcome", () => {
    const events = log(
      [0, created],
      [10, { kind: "delayRequested", call: 1, delay: "d1", expiresAt: 1_000 }],
      [20, { kind: "stepAttemptFailed", call: 2, name: "s", attempt: 1, retryAt: 90 }],
      [50, end("failed")],
    );
    expect(spansOf(events, [])).toMatchObject([
      { kind: "sleep", began: 10, ended: 50, outcome: null },
      { kind: "step", began: 20, ended: 50, outcome: null },
    ]);
  });

  test("begin at the last start of a continued run, also when what was before has been pruned", () => {
    const before = [
      [0, created],
      [10, { kind: "delayRequested", call: 1, delay: "d1", expiresAt: 1_000 }],
      [15, { kind: "receiveRequested", call: 2, signal: "go", expiresAt: null }],
    ] as const;
    const after = [
      [100, { kind: "continued", seen: 1 }],
      [100, locked],
      [110, { kind: "receiveRequested", call: 1, signal: "go", expiresAt: null, seen: 1 }],
      [130, stepDone(2, "s", { ran: [-5, 0], seen: 2 })],
    ] as const;
    const signals = answers(
      [20, { kind: "signal", signal: "go" }],
      [120, { kind: "signal", signal: "go" }],
    );
    const expected = (from: number) => [
      {
        kind: "receive",
        version: from + 2,
        began: 110,
        ended: 120,
        call: 1,
        name: "go",
        until: null,
        outcome: "received",
      },
      {
        kind: "step",
        version: from + 3,
        began: 125,
        ended: 130,
        call: 2,
        name: "s",
        outcome: "completed",
        attempts: [{ attempt: 1, began: 125, ended: 130, outcome: "completed" }],
      },
    ];
    expect(spansOf(log(...before, ...after), signals)).toEqual(expected(3));
    expect(spansOf(log(...after), signals.slice(1))).toEqual(expected(0));
    expect(spansOf(log([0, created], ...after), signals)).toEqual(expected(1));
  });

  test("of a copy leave out what its source was in the middle of", () => {
    const events = log(
      [0, activity],
      [10, locked],
      [20, { kind: "paused" }],
      [90, { kind: "forked" }],
      [95, lockedBy("b")],
    );
    expect(spansOf(events, [])).toMatchObject([
      { kind: "attempt", began: 10, ended: 20, outcome: null },
      { kind: "paused", began: 20, ended: 20 },
      { kind: "attempt", began: 95, ended: null },
    ]);
  });

  test("of an older log, which says nothing of bodies, lie at the end of their steps", () => {
    expect(spansOf(log([0, created], [70, stepDone(1, "s")]), [])).toMatchObject([
      { began: 70, ended: 70 },
    ]);
  });
});
