import { expect, test } from "vitest";
import { parseExecutionId } from "../../model/ids/execution-id.ts";
import { lockOf } from "./renewals.ts";

const going = {
  id: parseExecutionId("a"),
  locked: { key: 1 },
  leaseUntil: 1_000,
  isWaiting: false,
  isOver: false,
  isAppending: false,
};

test.each([
  ["a run that goes on is lost with its lock", {}, 1],
  [
    "a run whose append is under way is not: the append tells what became of it",
    { isAppending: true },
    0,
  ],
  ["a run that rests is not lost by an answer about the lock that it had", { isWaiting: true }, 0],
  ["a run that is over is not lost", { isOver: true }, 0],
  [
    "a run that was locked anew is not lost by an answer about the lock before",
    { leaseUntil: 2_000 },
    0,
  ],
])("%s", (_, meanwhile, times) => {
  const state = { ...going };
  let lost = 0;
  const lock = lockOf(state, () => (lost += 1));
  Object.assign(state, meanwhile);
  lock.lost();
  expect(lost).toBe(times);
});
