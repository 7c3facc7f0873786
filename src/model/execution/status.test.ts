import { expect, test } from "vitest";
import { isExecutionStatus, statusOf } from "./status.ts";
import type { ExecutionState } from "./state.ts";
import type { ExecutorId, RunId } from "../ids/prefixed-id.ts";

type Standing = Pick<ExecutionState, "pending" | "lifecycle">;

const holder = {
  executor: "Exr_1" as ExecutorId,
  run: "Run_1" as RunId,
  owner: null,
};

const due = (dueAt: number, leaseUntil: number | null = null): Standing["pending"] => ({
  kind: "pending",
  dueAt,
  leaseUntil,
  lastLock: leaseUntil === null ? null : holder,
});
const asleep = (wakeAt: number, leaseUntil: number | null = null): Standing["pending"] => ({
  kind: "pending",
  dueAt: Math.max(wakeAt, leaseUntil ?? 0),
  leaseUntil,
  lastLock: leaseUntil === null ? null : holder,
  seen: 0,
  wakeAt,
});
const locked: Standing["pending"] = {
  kind: "locked",
  holder,
  leaseUntil: 9,
  lockVersion: 1,
  isAlone: false,
};
const blocked: Standing["pending"] = {
  kind: "blocked",
  on: { kind: "resolution" },
  leaseUntil: null,
  lastLock: null,
};
const failed: Standing["pending"] = {
  kind: "finished",
  finishedAt: 5,
  resultKind: "failed",
};

test.each<[string, Standing]>([
  ["pending", { lifecycle: "active", pending: due(10) }],
  ["scheduled", { lifecycle: "active", pending: due(11) }],
  ["running", { lifecycle: "active", pending: locked }],
  // Kept in memory: until its lease has passed the worker goes on with it.
  ["running", { lifecycle: "active", pending: due(11, 11) }],
  ["pending", { lifecycle: "active", pending: due(10, 10) }],
  ["blocked", { lifecycle: "active", pending: blocked }],
  ["blocked", { lifecycle: "active", pending: asleep(11) }],
  ["pending", { lifecycle: "active", pending: asleep(10) }],
  ["blocked", { lifecycle: "active", pending: asleep(11, 99) }],
  ["running", { lifecycle: "active", pending: asleep(10, 99) }],
  ["blocked", { lifecycle: "active", pending: { ...blocked, leaseUntil: 11 } }],
  ["paused", { lifecycle: "paused", pending: due(10) }],
  ["cancelling", { lifecycle: "cancelling", pending: blocked }],
  ["cancelling", { lifecycle: "cancelling", pending: due(11, 11) }],
  ["parked", { lifecycle: "parked", pending: due(11) }],
  ["failed", { lifecycle: "active", pending: failed }],
])("at 10 the status is %s", (status, state) => {
  expect(statusOf(state, 10)).toBe(status);
});

test("only a status is a status", () => {
  expect(isExecutionStatus("timedOut")).toBe(true);
  expect(isExecutionStatus("finished")).toBe(false);
  expect(isExecutionStatus("toString")).toBe(false);
});
