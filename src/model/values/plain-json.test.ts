import { describe, expect, test } from "vitest";
import { isPlainJson } from "./plain-json.ts";

describe("values that JSON.stringify writes faithfully", () => {
  test.each<[string, unknown]>([
    ["null", null],
    ["a boolean", false],
    ["a number", -1.5e300],
    ["text", "text"],
    ["an empty array", []],
    ["nested data", { a: [{ b: null }], "": [[]] }],
    ["an object without prototype", Object.create(null)],
    ["a __proto__ key", JSON.parse('{"__proto__":1}')],
  ])("%s", (_, value) => {
    expect(isPlainJson(value, 1_000)).toBe(true);
  });
});

describe("values that take the slow way", () => {
  const cycle: unknown[] = [];
  cycle.push(cycle);
  test.each<[string, unknown]>([
    ["undefined", undefined],
    ["undefined in an object", { a: undefined }],
    ["a hole", [, 1]], // oxlint-disable-line no-sparse-arrays
    ["NaN", [Number.NaN]],
    ["a bigint", 1n],
    ["a date", new Date(0)],
    ["a function", () => 1],
    ["a symbol key", { [Symbol("s")]: 1 }],
    ["a toJSON of an array", Object.assign([1], { toJSON: () => 2 })],
    ["the marker", { $holdfast: 1 }],
    [
      "a class instance",
      new (class A {
        a = 1;
      })(),
    ],
    ["a cycle", cycle],
  ])("%s", (_, value) => {
    expect(isPlainJson(value, 1_000)).toBe(false);
  });
});

test("size is bounded from below, so only what is surely too large is out", () => {
  expect(isPlainJson("abc", 5)).toBe(true);
  expect(isPlainJson("abc", 4)).toBe(false);
  expect(isPlainJson({ ab: [1, 2] }, 12)).toBe(true);
  expect(isPlainJson({ ab: [1, 2] }, 11)).toBe(false);
});

test("parts shared a thousand million million times over end the walk early", () => {
  let pair: unknown = [1];
  for (let level = 0; level < 50; level += 1) pair = [pair, pair];
  expect(isPlainJson(pair, 1_000_000)).toBe(false);
});
