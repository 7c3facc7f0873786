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
/** Locked by the event of version 3; a later version is progress. */
const locked: PendingState = {
  kind: "locked",
  holder,
  leaseUntil: 100,
  lockVersion: 3,
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

const unlimited = { maxRetries: null, backoffMs: 100, backoffMaxMs: 60_000 };

describe("a lock that has run out at 1,000", () => {
  test.each([
    ["a first attempt", state("activity"), { kind: "retry", dueAt: 1_100 }],
    ["a second attempt", state("activity", { failures: 1 }), { kind: "retry", dueAt: 1_200 }],
    [
      "the last attempt",
      state("activity", { failures: 2 }),
      { kind: "finish", resultKind: "timedOut" },
    ],
    [
      "an activity never gets further",
      state("activity", { version: 4, failures: 2 }),
      { kind: "finish", resultKind: "timedOut" },
    ],
    [
      "a workflow that got further",
      state("workflow", { version: 4, failures: 9 }),
      {
        kind: "unlock",
        dueAt: 1_000,
        reason: "the lock expired after progress",
      },
    ],
    [
      "a workflow that did not",
      state("workflow", { retry: unlimited, failures: 3 }),
      { kind: "retry", dueAt: 1_800 },
    ],
    [
      "a workflow without terms",
      state("workflow", { retry: null }),
      { kind: "retry", dueAt: 1_100 },
    ],
    [
      "a cancelled activity",
      state("activity", { lifecycle: "cancelling" }),
      { kind: "finish", resultKind: "cancelled" },
    ],
    [
      "a cancelled workflow",
      state("workflow", { lifecycle: "cancelling", failures: 9 }),
      { kind: "retry", dueAt: 52_200 },
    ],
    [
      "a cancelled workflow that got further",
      state("workflow", { lifecycle: "cancelling", version: 4 }),
      {
        kind: "unlock",
        dueAt: 1_000,
        reason: "the lock expired after progress",
      },
    ],
    ["a workflow without retries left", state("workflow", { failures: 2 }), { kind: "giveUp" }],
    [
      "a workflow whose fifth worker in a row got nowhere",
      state("workflow", { retry: unlimited, failures: 4, deaths: 4 }),
      { kind: "park" },
    ],
    [
      "a paused one",
      state("workflow", { retry: unlimited, deaths: 4, lifecycle: "paused" }),
      { kind: "retry", dueAt: 1_100 },
    ],
    [
      "an activity, of whose workers nobody counts the deaths",
      state("activity", { retry: unlimited, deaths: 4 }),
      { kind: "retry", dueAt: 1_100 },
    ],
  ])("of %s", (_, given, decision) => {
    expect(decideExpiredLock(given, 1_000, 0)).toEqual(decision);
  });

  test("is spread by up to a quarter", () => {
    expect(decideExpiredLock(state("activity"), 1_000, 0.5)).toEqual({
      kind: "retry",
      dueAt: 1_088,
    });
  });
});

describe("the death of an owner at 1,000", () => {
  const free = { kind: "resume", dueAt: 1_000, counts: "nothing" };
  test.each([
    ["of a first attempt", state("activity"), { kind: "resume", dueAt: 1_100, counts: "attempt" }],
    [
      "of the last attempt",
      state("activity", { failures: 2 }),
      { kind: "finish", resultKind: "failed" },
    ],
    [
      "of a cancelled activity",
      state("activity", { lifecycle: "cancelling" }),
      { kind: "finish", resultKind: "cancelled" },
    ],
    ["of a workflow that got further", state("workflow", { version: 4, deaths: 4 }), free],
    [
      "of a cancelled workflow",
      state("workflow", { lifecycle: "cancelling", deaths: 4 }),
      { kind: "resume", dueAt: 2_600, counts: "death" },
    ],
    [
      "of a paused workflow",
      state("workflow", { lifecycle: "paused", deaths: 4 }),
      { kind: "resume", dueAt: 2_600, counts: "death" },
    ],
    [
      "of a cancelled workflow that got further",
      state("workflow", { lifecycle: "cancelling", version: 4, deaths: 4 }),
      free,
    ],
    ["of one it kept in memory", state("workflow", { pending: kept, deaths: 4 }), free],
    ["of an activity between attempts", state("activity", { pending }), free],
    [
      "the first without progress",
      state("workflow"),
      { kind: "resume", dueAt: 1_100, counts: "death" },
    ],
    // A workflow's deaths do not run out with its retries.
    [
      "the fourth without progress",
      state("workflow", { deaths: 3 }),
      { kind: "resume", dueAt: 1_800, counts: "death" },
    ],
    ["the fifth without progress", state("workflow", { deaths: 4 }), { kind: "park" }],
  ])("%s", (_, given, decision) => {
    expect(decideOwnerDeath(given, 1_000, 0)).toEqual(decision);
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
