import { describe, expect, test } from "vitest";
import {
  decideCancellation,
  decideDeadline,
  decideExpiredLock,
  decideOwnerDeath,
} from "./decisions.ts";
import type { ExecutionRole, Holder } from "./event.ts";
import type { ExecutionState, PendingState } from "./state.ts";
import type { ExecutorId, RunId } from "../ids/prefixed-id.ts";

const holder: Holder = {
  executor: "Exr_me" as ExecutorId,
  run: "Run_1" as RunId,
  owner: null,
};
/** Locked by the event of version 3, beside other work. */
const locked: PendingState = {
  kind: "locked",
  holder,
  leaseUntil: 100,
  lockVersion: 3,
  isAlone: false,
};
const pending: PendingState = {
  kind: "pending",
  dueAt: 5,
  leaseUntil: null,
  lastLock: holder,
};
const kept: PendingState = {
  kind: "blocked",
  on: { kind: "responses", seen: 0 },
  leaseUntil: 100,
  lastLock: holder,
};
const finished: PendingState = {
  kind: "finished",
  finishedAt: 1,
  resultKind: "failed",
};

function state(role: ExecutionRole, changes: Partial<ExecutionState> = {}): ExecutionState {
  return {
    role,
    version: 3,
    pending: locked,
    lifecycle: "active",
    failures: 0,
    deaths: 0,
    aloneDeaths: 0,
    retry: { maxRetries: 2, backoffMs: 100, backoffMaxMs: 60_000 },
    codeVersion: null,
    incompatible: [],
    historyFrom: 0,
    responsesFrom: 0,
    continuations: 0,
    responses: 0,
    ...changes,
  };
}

/** Of a lock at 1,000, without jitter. */
const lost = { at: 1_000, random: 0, hasRecorded: false };
const alone: PendingState = { ...locked, isAlone: true };

const ends = (resultKind: string) => ({ kind: "finish", resultKind });
const resumes = (dueAt: number, counts: string) => ({ kind: "resume", dueAt, counts });

describe("the loss of a worker at 1,000", () => {
  test.each([
    ["of a first attempt", state("activity"), resumes(1_100, "death")],
    ["of an attempt behind errors", state("activity", { failures: 2 }), resumes(1_100, "death")],
    ["of the third in a row", state("activity", { deaths: 2 }), resumes(1_400, "death")],
    ["of a cancelled activity", state("activity", { lifecycle: "cancelling" }), ends("cancelled")],
    ["of a workflow", state("workflow"), resumes(1_100, "death")],
    ["of a workflow's fourth", state("workflow", { deaths: 3 }), resumes(1_800, "death")],
    ["of a workflow's fiftieth", state("workflow", { deaths: 49 }), resumes(61_000, "death")],
    [
      "of one that ran alone",
      state("workflow", { deaths: 3, pending: alone }),
      resumes(1_800, "aloneDeath"),
    ],
    [
      "of one that ran alone for the fourth time",
      state("activity", { deaths: 6, aloneDeaths: 3, pending: alone }),
      resumes(7_400, "aloneDeath"),
    ],
    [
      "of one that ran alone for the fifth time",
      state("workflow", { deaths: 7, aloneDeaths: 4, pending: alone }),
      { kind: "park", counts: "aloneDeath" },
    ],
    [
      "of an activity that ran alone for the fifth time",
      state("activity", { deaths: 7, aloneDeaths: 4, pending: alone }),
      { kind: "park", counts: "aloneDeath" },
    ],
    [
      "of one that ran beside others, and four times alone before",
      state("workflow", { deaths: 7, aloneDeaths: 4 }),
      resumes(13_800, "death"),
    ],
    [
      "of a paused one that ran alone for the fifth time",
      state("workflow", { lifecycle: "paused", deaths: 4, aloneDeaths: 4, pending: alone }),
      resumes(2_600, "aloneDeath"),
    ],
    [
      "of a cancelled workflow that ran alone for the fifth time",
      state("workflow", { lifecycle: "cancelling", deaths: 4, aloneDeaths: 4, pending: alone }),
      resumes(2_600, "aloneDeath"),
    ],
  ])("%s", (_, given, decision) => {
    expect(decideOwnerDeath(given, lost)).toEqual(decision);
    expect(decideExpiredLock(given, { ...lost, isOwnerAlive: false })).toEqual(decision);
  });

  test("[RN14] of one that ran alone for the fifth time cancels a workflow that wants it, and parks an activity", () => {
    const fifth = { deaths: 7, aloneDeaths: 4, pending: alone };
    const wish = { ...lost, whenPoisoned: "cancel" } as const;
    for (const [role, kind] of [
      ["workflow", "cancel"],
      ["activity", "park"],
    ] as const) {
      const decision = { kind, counts: "aloneDeath" };
      expect(decideOwnerDeath(state(role, fifth), wish)).toEqual(decision);
      const silent = { ...wish, isOwnerAlive: false };
      expect(decideExpiredLock(state(role, fifth), silent)).toEqual(decision);
    }
    const fourth = state("workflow", { deaths: 6, aloneDeaths: 3, pending: alone });
    expect(decideOwnerDeath(fourth, wish)).toEqual(resumes(7_400, "aloneDeath"));
  });

  test("of an activity that may be attempted once ends it, and of a workflow does not", () => {
    const retry = { maxRetries: 0, backoffMs: 100, backoffMaxMs: 60_000 };
    const silent = { ...lost, isOwnerAlive: false };
    expect(decideOwnerDeath(state("activity", { retry }), lost)).toEqual(ends("failed"));
    expect(decideExpiredLock(state("activity", { retry }), silent)).toEqual(ends("timedOut"));
    expect(decideOwnerDeath(state("workflow", { retry }), lost)).toEqual(resumes(1_100, "death"));
    expect(decideExpiredLock(state("workflow", { retry }), silent)).toEqual(
      resumes(1_100, "death"),
    );
  });

  test("is nothing to a workflow that has recorded something", () => {
    const recorded = { ...lost, hasRecorded: true };
    expect(decideOwnerDeath(state("workflow"), recorded)).toEqual(resumes(1_000, "nothing"));
    expect(decideExpiredLock(state("workflow"), { ...recorded, isOwnerAlive: false })).toEqual({
      kind: "unlock",
      dueAt: 1_000,
      reason: "the lock expired after progress",
    });
  });

  test("is nothing to what was not running", () => {
    expect(decideOwnerDeath(state("workflow", { pending: kept }), lost)).toEqual(
      resumes(1_000, "nothing"),
    );
    expect(decideOwnerDeath(state("activity", { pending }), lost)).toEqual(
      resumes(1_000, "nothing"),
    );
  });

  test("is spread by up to a quarter", () => {
    expect(decideOwnerDeath(state("activity"), { ...lost, random: 0.5 })).toEqual(
      resumes(1_088, "death"),
    );
  });
});

describe("a lock that a living worker let run out", () => {
  const slow = { ...lost, isOwnerAlive: true };
  test.each([
    ["of a workflow", state("workflow", { deaths: 4 }), resumes(1_100, "nothing")],
    ["of an activity", state("activity", { failures: 2 }), resumes(1_100, "nothing")],
    [
      "of one that ran alone",
      state("activity", { deaths: 7, aloneDeaths: 4, pending: alone }),
      resumes(1_100, "nothing"),
    ],
    [
      "of an activity that may be attempted once",
      state("activity", { retry: { maxRetries: 0, backoffMs: 100, backoffMaxMs: 60_000 } }),
      ends("timedOut"),
    ],
  ])("counts for nothing: %s", (_, given, decision) => {
    expect(decideExpiredLock(given, slow)).toEqual(decision);
  });
});

describe("a request to cancel", () => {
  test.each([
    ["what has finished", state("workflow", { pending: finished }), "alreadyFinished"],
    [
      "what is being cancelled",
      state("workflow", { lifecycle: "cancelling" }),
      "alreadyCancelling",
    ],
    ["a workflow that runs", state("workflow"), "mark"],
    ["a workflow that has run", state("workflow", { pending }), "finish"],
    ["a workflow that its worker keeps in memory", state("workflow", { pending: kept }), "mark"],
    ["a workflow that never ran", state("workflow", { pending, retry: null }), "finish"],
    ["an activity that runs", state("activity"), "mark"],
    ["an activity between attempts", state("activity", { pending }), "finish"],
    [
      "an external execution",
      state("external", {
        pending: { ...kept, leaseUntil: null },
        retry: null,
      }),
      "finish",
    ],
    [
      "a paused workflow that never ran",
      state("workflow", { pending, retry: null, lifecycle: "paused" }),
      "finish",
    ],
  ])("of %s", (_, given, decision) => {
    const without = { at: 50, hasBegun: false };
    expect(decideCancellation(given, without)).toBe(decision);
    expect(decideCancellation(given, { at: 50, hasBegun: true })).toBe(
      decision === "finish" ? "mark" : decision,
    );
  });
});

describe("a deadline that has passed", () => {
  test.each([
    ["a workflow that runs", state("workflow"), "mark", "mark"],
    ["a workflow that nobody has", state("workflow", { pending }), "finish", "mark"],
    ["an activity that runs", state("activity"), "finish", "mark"],
    [
      "what is being cancelled",
      state("workflow", { lifecycle: "cancelling" }),
      "nothing",
      "nothing",
    ],
    ["what has finished", state("workflow", { pending: finished }), "nothing", "nothing"],
  ])("of %s", (_, given, without, begun) => {
    expect(decideDeadline(given, { at: 50, hasBegun: false })).toBe(without);
    expect(decideDeadline(given, { at: 50, hasBegun: true })).toBe(begun);
  });
});
