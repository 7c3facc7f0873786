import { expect, test } from "vitest";
import { ByCall } from "./by-call.ts";

const item = (call: number, name = `${call}`) => ({ call, name });
const names = (items: ByCall<{ call: number; name: string }>): string[] =>
  items.all().map(({ name }) => name);

test("what is put comes in the order of its calls, whatever the order it came in", () => {
  const items = new ByCall<{ call: number; name: string }>();
  for (const call of [4, 1, 9, 2]) items.put(item(call));
  expect(names(items)).toEqual(["1", "2", "4", "9"]);
  expect(items.size).toBe(4);
});

test("a call has one thing at a time", () => {
  const items = new ByCall<{ call: number; name: string }>();
  for (const call of [1, 2, 3]) items.put(item(call));
  items.put(item(2, "second"));
  items.put(item(3, "third"));
  expect(names(items)).toEqual(["1", "second", "third"]);
});

test("what is taken is gone, from the end, the start and the middle, and the rest is found", () => {
  const items = new ByCall<{ call: number; name: string }>();
  for (const call of [1, 3, 5, 7, 9]) items.put(item(call));
  expect([9, 1, 5].map((call) => items.take(call)?.name)).toEqual(["9", "1", "5"]);
  expect([1, 5, 9, 4].map((call) => items.get(call))).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
  expect(items.take(4)).toBeUndefined();
  expect([3, 7].map((call) => items.get(call)?.name)).toEqual(["3", "7"]);
  items.clear();
  expect([items.size, items.get(3)]).toEqual([0, undefined]);
});
