import { describe, expect, test } from "vitest";
import { areBegunBodies, begunSteps, isActivityBegun, type BodyEvent } from "./begun.ts";

const list = (...events: readonly Partial<BodyEvent>[]): readonly BodyEvent[] =>
  events.map((event, index) => ({ version: index + 1, call: 0, kind: "", ...event }));
const began = { kind: "stepBegan", call: 2, name: "charge" };
const failedAttempt = { kind: "stepAttemptFailed", call: 2 };
const finished = (outcome: string) => ({ kind: "stepFinished", call: 2, outcome });
const continued = { kind: "continued" };
const charge = { call: 2, name: "charge" };

describe("[RN3] the steps that a retry may repeat", () => {
  test.each([
    ["began", [began], [charge]],
    ["failed", [began, failedAttempt], []],
    ["began again after it failed", [began, failedAttempt, began], [charge]],
    ["failed for good", [began, finished("failed")], []],
    ["completed behind the kept events", [began, finished("completed")], [charge]],
    ["do not belong to the next pass", [began, continued, { ...began, call: 3 }], [charge]],
  ])("are those that %s: %j", (_, events, steps) => {
    expect(begunSteps([], list(...events), 1)).toEqual(steps);
  });

  test("are not those whose outcome is kept", () => {
    const events = list(began, finished("completed"));
    expect(begunSteps([], events, 2)).toEqual([]);
  });

  test("include those of the run that was retried before, until they fail", () => {
    expect(begunSteps([charge], [], 1)).toEqual([charge]);
    expect(begunSteps([charge], list(failedAttempt), 1)).toEqual([]);
  });
});

describe("[RN3] an activity that a retry may repeat", () => {
  test.each([
    [false, []],
    [true, ["locked"]],
    [true, ["locked", "unlocked"]],
    [false, ["locked", "attemptFailed"]],
    [true, ["locked", "attemptFailed", "locked", "ownerDied"]],
    [false, ["locked", "failed"]],
    [true, ["locked", "attemptTimedOut", "failed"]],
    [true, ["locked", "cancelled"]],
    [false, ["failed"]],
  ])("has begun (%s) after %j", (isBegun, kinds) => {
    const events = kinds.map((kind) =>
      kind === "failed" || kind === "cancelled" ? { kind: "finished", outcome: kind } : { kind },
    );
    expect(isActivityBegun(false, list(...events))).toBe(isBegun);
  });

  test("has begun if it had before, until it fails", () => {
    expect(isActivityBegun(true, [])).toBe(true);
    expect(isActivityBegun(true, list({ kind: "locked" }, { kind: "attemptFailed" }))).toBe(false);
  });
});

test.each([
  [true, []],
  [true, [charge]],
  [false, {}],
  [false, [null]],
  [false, [{ call: 1 }]],
  [false, [{ call: "1", name: "charge" }]],
])("[RN3] a stored list of them is read only if it is one (%s): %j", (isOne, stored) => {
  expect(areBegunBodies(stored)).toBe(isOne);
});
