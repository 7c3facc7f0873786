import { describe, expect, test } from "vitest";
import { differenceOf, envelopeDifference, refuseBytes } from "./envelope.ts";

describe("the difference of two values", () => {
  test.each([
    [1, 1],
    ["a", "a"],
    [null, null],
    [undefined, undefined],
    [10n, 10n],
    [new Date(5), new Date(5)],
    [
      { a: 1, b: [2, { c: 3 }] },
      { b: [2, { c: 3 }], a: 1 },
    ],
    [new Map([["a", 1]]), new Map([["a", 1]])],
    [new Set([1, 2]), new Set([1, 2])],
    [new TypeError("x"), new TypeError("x")],
  ])("is none between %o and %o", (a, b) => {
    expect(differenceOf(a, b)).toBeUndefined();
  });

  test.each([
    ["$", 1, 2],
    ["$", 1, "1"],
    ["$", null, {}],
    ["$", [], {}],
    ["$", 10n, 11n],
    ["$", new Date(5), new Date(6)],
    ["$", new TypeError("x"), new RangeError("x")],
    ["$.input.model", { input: { model: "a" } }, { input: { model: "b" } }],
    ["$.b", { a: 1 }, { a: 1, b: undefined }],
    ["$.a", { a: 1, z: 1 }, { z: 2 }],
    ["$[1].x", [{ x: 1 }, { x: 2 }], [{ x: 1 }, { x: 3 }]],
    ["$[2]", [1, 2], [1, 2, 3]],
    ["$[10]", Array(11).fill(0), [...Array<number>(10).fill(0), 1]],
    ['$["unit price"]', { "unit price": 1 }, { "unit price": 2 }],
    [
      "$.keys()[1]",
      new Map([
        ["a", 1],
        ["b", 2],
      ]),
      new Map([
        ["a", 1],
        ["c", 2],
      ]),
    ],
    ["$.values()[0]", new Map([["a", 1]]), new Map([["a", 2]])],
    ["$.values()[1]", new Set([1, 2]), new Set([1, 3])],
    ["$.values()[1]", new Set([1]), new Set([1, 3])],
  ])("is at %s", (path, a, b) => {
    expect(differenceOf(a, b)).toBe(path);
    expect(differenceOf(b, a)).toBe(path);
  });
});

test("of two envelopes the kind is named first, and then the place in the input", () => {
  const a = { kind: "a", input: { x: 1 } };
  expect(envelopeDifference(a, { kind: "a", input: { x: 1 } })).toBeUndefined();
  expect(envelopeDifference(a, { kind: "b", input: { x: 2 } })).toBe("$.kind");
  expect(envelopeDifference(a, { kind: "a", input: { x: 2 } })).toBe("$.input.x");
});

test("bytes are found wherever they are", () => {
  expect(() => refuseBytes({ a: [1, "text", new Map([[1, 2]])] })).not.toThrow();
  for (const [path, value] of [
    ["$", new Uint8Array(1)],
    ["$.input.files[1]", { input: { files: [1, new Uint8Array(1)] } }],
    ["$.values()[0]", new Map([["a", new Uint8Array(1)]])],
    ["$.values()[1].b", new Set([1, { b: new Uint8Array(1) }])],
  ] as const)
    expect(() => refuseBytes(value)).toThrow(
      expect.objectContaining({
        code: "NOT_SERIALIZABLE",
        details: { path, found: "bytes" },
      }),
    );
});
