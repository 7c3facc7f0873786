import { expect, test } from "vitest";
import { isExecutionStatus, statusOf } from "./status.ts";
import type { ExecutionState } from "./state.ts";

type Standing = Pick<ExecutionState, "pending" | "lifecycle">;

const due = (dueAt: number): Standing["pending"] => ({
  kind: "pending",
  dueAt,
  leaseUntil: null,
  lastLock: null,
});
const asleep = (wakeAt: number): Standing["pending"] => ({
  kind: "pending",
  dueAt: wakeAt,
  leaseUntil: null,
  lastLock: null,
  seen: 0,
  wakeAt,
});
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
  ["blocked", { lifecycle: "active", pending: blocked }],
  ["blocked", { lifecycle: "active", pending: asleep(11) }],
  ["pending", { lifecycle: "active", pending: asleep(10) }],
  ["paused", { lifecycle: "paused", pending: due(10) }],
  ["cancelling", { lifecycle: "cancelling", pending: blocked }],
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
