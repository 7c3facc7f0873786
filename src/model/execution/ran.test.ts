import { expect, test } from "vitest";
import { isRan, ranBefore, recordedLater } from "./ran.ts";
import type { ExecutionEvent } from "./event.ts";

test.each([
  ["before its event", 1_000, 699, 998, [-301, -2]],
  ["up to its event", 1_000, 700, 1_000, [-300, 0]],
  ["in no time", 1_000, 1_000, 1_000, [0, 0]],
  ["while the clock was set back behind its beginning", 1_000, 1_200, 900, [-100, -100]],
  ["before the clock was set back", 1_000, 1_100, 1_200, [0, 0]],
] as const)("[RN1] a body that ran %s", (_, at, began, ended, expected) => {
  expect(ranBefore(at, began, ended)).toEqual(expected);
  expect(isRan(ranBefore(at, began, ended))).toBe(true);
});

test("[RN1] an event that is recorded later names the same instants, and one without a body nothing", () => {
  const patched = { kind: "patched", patch: "p", call: 1, seen: 0 } as ExecutionEvent;
  const step = { ...patched, kind: "stepFinished", ran: [-301, -2] } as unknown as ExecutionEvent;
  expect(recordedLater(step, 40)).toEqual({ ...step, ran: [-341, -42] });
  expect(recordedLater(step, 0)).toBe(step);
  expect(recordedLater(patched, 40)).toBe(patched);
});
