import { describe, expect, test } from "vitest";
import { contradictionOf, type Standing, type StandingLog } from "./contradiction.ts";
import type { Created, ExecutionEvent, Holder, LoggedResponse } from "./event.ts";
import type { FunctionName } from "../ids/function-name.ts";
import type { JoinSetId } from "../ids/join-set-id.ts";

const created: Created = {
  kind: "created",
  role: "workflow",
  function: "f" as FunctionName,
  input: "1" as never,
  inputHash: "h",
  scheduledAt: 10,
  deadlineAt: null,
  concurrencyKey: null,
  codeVersion: null,
  isPaused: false,
  scheduledBy: null,
  forkedFrom: null,
  metadata: {},
  tags: [],
};
const holder = { executor: "e", run: "r", owner: null } as unknown as Holder;
const retry = { maxRetries: 1, backoffMs: 1, backoffMaxMs: 1 };

function locked(leaseUntil: number): ExecutionEvent {
  return { kind: "locked", holder, leaseUntil, retry, codeVersion: null };
}

function waiting(runExpiresAt: number, wakeAt: number | null = null): ExecutionEvent {
  return { kind: "waiting", call: 1, seen: 0, runExpiresAt, wakeAt };
}

/** Events at their instants; what came after so many events is answered. */
function logged(
  events: readonly (readonly [at: number, ExecutionEvent, responses?: number])[],
  ...answeredAt: readonly number[]
): StandingLog {
  const all = [[0, created] as const, ...events];
  return {
    created,
    events: all.map(([at, event, responses = 0], version) => ({ version, at, responses, event })),
    responses: answeredAt.map((at, index): LoggedResponse => ({
      seq: index + 1,
      at,
      response: {
        kind: "delay",
        joinSet: "o:1" as JoinSetId,
        delay: "d" as never,
        outcome: "expired",
      },
    })),
  };
}

const standing: Standing = {
  state: "pending",
  lifecycle: "active",
  due: null,
  wakeAt: null,
  seen: null,
  inbox: null,
  ordinal: null,
  isClosing: null,
  finishedAt: null,
  resultKind: null,
  deadline: null,
  leaseUntil: null,
};

function faults(row: Partial<Standing>, log: StandingLog): readonly string[] | undefined {
  return contradictionOf({ ...standing, ...row }, log)?.fields;
}

describe("a row whose lease was renewed", () => {
  const answered = logged(
    [
      [20, locked(50)],
      [30, waiting(60)],
    ],
    80,
  );

  test("may be due when its lease ends, or when its answer came after that", () => {
    expect(faults({ due: 80 }, answered)).toBeUndefined();
    expect(faults({ due: 90, leaseUntil: 90 }, answered)).toBeUndefined();
  });

  test("is not due at another instant, nor later without a lease", () => {
    expect(faults({ due: 90, leaseUntil: 95 }, answered)).toEqual(["due"]);
    expect(faults({ due: 9_000 }, answered)).toEqual(["due"]);
    expect(faults({ due: 79 }, answered)).toEqual(["due"]);
  });

  test("may wait for longer under a lock that came after the first lease", () => {
    const extended = logged([
      [20, locked(50)],
      [30, waiting(60, 55)],
      [70, locked(75)],
    ]);
    expect(faults({ state: "locked", leaseUntil: 75 }, extended)).toBeUndefined();
    expect(faults({ due: 75, wakeAt: 55, seen: 0, leaseUntil: 75 }, extended)).toBeUndefined();
    expect(faults({ due: 75, wakeAt: 55, seen: 1, leaseUntil: 75 }, extended)).toContain("seen");
  });

  test("is believed though the clock was set back between two events", () => {
    const setBack = logged([
      [1_020, locked(1_050)],
      [1_030, waiting(1_060, 55)],
      [1_070, locked(1_075)],
      [40, { kind: "parked", code: "c", reason: "r", codeVersion: null }],
    ]);
    // Kept by a renewal up to 1,071 or later, then let go.
    expect(faults({ lifecycle: "parked", due: 55, wakeAt: 55, seen: 0 }, setBack)).toBeUndefined();
    expect(faults({ lifecycle: "parked", due: 40 }, setBack)).toBeUndefined();
    expect(faults({ lifecycle: "parked", due: 41 }, setBack)).toEqual(["due"]);
  });
});

test("a row that nobody keeps has no lease", () => {
  const waits = logged([
    [20, locked(50)],
    [30, waiting(30)],
  ]);
  expect(faults({ state: "blocked", seen: 0 }, waits)).toBeUndefined();
  expect(faults({ state: "blocked", seen: 0, leaseUntil: 9_000 }, waits)).toEqual(["leaseUntil"]);
});

test("a log of many steps is folded without end of the stack", () => {
  const pauses: [number, ExecutionEvent][] = Array.from({ length: 50_000 }, (_, index) => [
    40 + index,
    { kind: index % 2 === 0 ? "paused" : "unpaused" },
  ]);
  const long = logged([[20, locked(50)], ...pauses]);
  expect(faults({ state: "locked", leaseUntil: 50 }, long)).toBeUndefined();
});
