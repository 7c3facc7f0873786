import { describe, expect, test } from "vitest";
import type { ExecutionId } from "../ids/execution-id.ts";
import type { ExecutionState } from "./state.ts";
import { spokenStanding, spokenWait, type Standing } from "./spoken-standing.ts";

const now = Date.parse("2026-11-17T21:00:00Z"); // a Tuesday
const reader = { now, timeZone: "UTC" };
const hour = 3_600_000;
const due = {
  kind: "pending",
  dueAt: now,
  leaseUntil: null,
  lastLock: null,
} as const;

function run(
  given: Partial<Omit<Standing, "state">> & {
    readonly state?: Partial<ExecutionState>;
  },
): Standing {
  return {
    status: "blocked",
    function: "orders/fulfil",
    createdAt: now - 5 * hour,
    sleepsUntil: null,
    interruption: null,
    waits: [],
    ...given,
    state: { pending: due, failures: 0, deaths: 0, role: "workflow", ...given.state },
  };
}

const child = "order-42.o:1_1" as ExecutionId;
const since = now - 2 * hour;

describe("what a run waits for", () => {
  test.each([
    [{ kind: "sleep", since, until: now + 6 * 24 * hour - 12 * hour }, "sleeps until Mon 09:00"],
    [
      { kind: "signal", signal: "approval", since, until: null },
      "has waited 2 h for signal approval",
    ],
    [
      { kind: "signal", signal: "approval", since, until: now + 12 * hour },
      "has waited 2 h for signal approval, until tomorrow 09:00",
    ],
    [
      { kind: "child", child, function: "charge", since },
      "has waited 2 h for charge (order-42.o:1_1)",
    ],
    [
      { kind: "child", child, function: "charge", since, parked: "RUN_KEEPS_KILLING_WORKERS" },
      "has waited 2 h for charge (order-42.o:1_1), which is parked: RUN_KEEPS_KILLING_WORKERS",
    ],
    [
      { kind: "external", external: child, since },
      "has waited 2 h for an answer from outside (order-42.o:1_1)",
    ],
    [
      { kind: "retry", step: "print", attempt: 2, since, until: now + 90_000 },
      'retries step "print" today 21:01:30 (attempt 2 failed)',
    ],
  ] as const)("%j is said in words", (wait, said) => {
    expect(spokenWait(wait, reader)).toBe(said);
    expect(spokenStanding(run({ waits: [wait] }), reader)).toBe(said);
  });

  test("is told for three at most", () => {
    const wait = { kind: "signal", signal: "a", since, until: null } as const;
    expect(spokenStanding(run({ waits: [wait, wait, wait, wait, wait] }), reader)).toMatch(
      /^(has waited 2 h for signal a, and ){3}2 more$/,
    );
  });

  test("is told less exactly when its log was not read", () => {
    const sleepsUntil = now + 12 * hour;
    expect(spokenStanding(run({ sleepsUntil }), reader)).toBe(
      "waits until tomorrow 09:00 at the latest",
    );
    expect(spokenStanding(run({}), reader)).toBe("waits");
    expect(spokenStanding(run({ state: { role: "external" } }), reader)).toBe(
      "waits for an answer from outside",
    );
  });
});

test("a suspect waits for a worker that runs nothing else", () => {
  const pending = { ...due, dueAt: now - 5_000 };
  expect(spokenStanding(run({ status: "pending", state: { pending, deaths: 3 } }), reader)).toBe(
    "overdue by 5 s, waits for a worker that runs nothing else, because 3 processes died while they held it",
  );
  expect(spokenStanding(run({ status: "pending", state: { pending, deaths: 2 } }), reader)).toBe(
    "overdue by 5 s, waits for a worker",
  );
});

test("a run whose sleep is over is due, whatever else it waits for and whoever is there", () => {
  const wait = { kind: "signal", signal: "a", since, until: null } as const;
  for (const waits of [[], [wait]])
    expect(spokenStanding(run({ sleepsUntil: now - 5_000, waits }), reader)).toBe(
      "overdue by 5 s, waits for a worker",
    );
});

test("words without durations stay the same while nothing happens", () => {
  const sleepsUntil = now - 5_000;
  const paused = run({
    status: "paused",
    interruption: { kind: "paused", since },
  });
  const waits = [{ kind: "child", child, function: "charge", since }] as const;
  const said = [run({ sleepsUntil }), run({ waits }), paused].map((each) =>
    spokenStanding(each, { ...reader, withoutDurations: true }),
  );
  expect(said).toEqual(["due, waits for a worker", "waits for charge (order-42.o:1_1)", "paused"]);
});

describe("where else a run stands", () => {
  const finished = {
    pending: { kind: "finished", finishedAt: now - hour, resultKind: "failed" },
  } as const;
  const late = { pending: { ...due, dueAt: now - 5_000 } };
  const later = { pending: { ...due, dueAt: now + 12 * hour } };
  test.each([
    [run({ status: "failed", state: finished }), "failed today 20:00, after 4 h"],
    [run({ status: "timedOut", state: finished }), "timed out today 20:00, after 4 h"],
    [run({ status: "pending" }), "due, waits for a worker"],
    [run({ status: "pending", state: late }), "overdue by 5 s, waits for a worker"],
    [
      run({ status: "unserved", state: late }),
      "overdue by 5 s, and no worker serves orders/fulfil",
    ],
    [run({ status: "scheduled", state: later }), "starts tomorrow 09:00"],
    [
      run({
        status: "scheduled",
        state: { ...later, role: "activity", failures: 2 },
      }),
      "retries tomorrow 09:00 (2 attempts failed)",
    ],
    [run({ status: "running" }), "runs"],
    [run({ status: "running", state: { role: "activity", failures: 1 } }), "runs, attempt 2"],
    [run({ status: "paused", interruption: { kind: "paused", since } }), "paused 2 h ago"],
    [run({ status: "paused" }), "paused"],
    [
      run({
        status: "cancelling",
        interruption: {
          kind: "cancelling",
          since,
          reason: "too late",
          cause: "request",
        },
      }),
      "cancelling for 2 h: too late",
    ],
    [
      run({
        status: "cancelling",
        interruption: {
          kind: "cancelling",
          since,
          reason: null,
          cause: "deadline",
        },
      }),
      "cancelling for 2 h: its deadline has passed",
    ],
    [
      run({
        status: "parked",
        interruption: {
          kind: "parked",
          since,
          code: "NONDETERMINISM",
          reason: "…",
          codeVersion: null,
        },
      }),
      "parked 2 h ago: NONDETERMINISM",
    ],
  ])("%j", (standing, said) => {
    expect(spokenStanding(standing, reader)).toBe(said);
  });
});
