import { expect, test } from "vitest";
import type { ExecutionId } from "../ids/execution-id.ts";
import type { JoinSetId } from "../ids/join-set-id.ts";
import type { ExecutionEvent } from "./event.ts";
import type { ExecutionState } from "./state.ts";
import { afterEvent } from "./transition.ts";

const before: ExecutionState = {
  role: "workflow",
  version: 3,
  pending: { kind: "pending", dueAt: 90, leaseUntil: null, lastLock: null },
  lifecycle: "active",
  failures: 0,
  deaths: 2,
  aloneDeaths: 0,
  retry: null,
  codeVersion: null,
  incompatible: [],
  historyFrom: 0,
  responsesFrom: 0,
  continuations: 0,
  responses: 2,
};

const tried = (outcome: "found" | "pending"): ExecutionEvent => ({
  kind: "joinNextTried",
  joinSet: "n:y" as JoinSetId,
  outcome,
  call: 1,
  seen: 2,
});
const patched = (seen: number): ExecutionEvent => ({
  kind: "patched",
  patch: "p",
  call: 1,
  seen,
});

function after(event: ExecutionEvent, answeredAt: number | null): ExecutionState {
  const id = "a" as ExecutionId;
  return afterEvent(id, before, { at: 100, event, answeredAt, ordinal: 1 });
}

test.each([
  ["what was found", tried("found"), 60],
  ["that nothing was found", tried("pending"), null],
  ["having seen all there is", patched(2), null],
])("recording %s is progress and moves nothing else", (_, event, answeredAt) => {
  expect(after(event, answeredAt)).toEqual({
    ...before,
    version: 4,
    deaths: 0,
    aloneDeaths: 0,
  });
});

test.each([
  ["found what has not come", tried("found")],
  ["seen more than there is", patched(3)],
  ["asked a set of another run", { ...tried("pending"), joinSet: "n1:y" }],
] as const)("nobody can have %s", (_, event) => {
  expect(() => after(event as ExecutionEvent, null)).toThrow(
    expect.objectContaining({ code: "EVENTS_INVALID" }),
  );
});
