import { runInNewContext } from "node:vm";
import { describe, expect, test, vi } from "vitest";
import { canonicalText } from "./canonical.ts";
import { isHoldfastError } from "../errors.ts";
import { defaultValueLimits, depthMax } from "./value-limits.ts";
import { writeValue } from "./value-writer.ts";
import { encodeValue } from "./values.ts";

class Money {
  readonly amount = 1;
}

const cycle: { list: unknown[] } = { list: [] };
cycle.list.push({ back: cycle });
const mapCycle = new Map<string, unknown>();
mapCycle.set("self", mapCycle);

describe("what cannot be stored is named with its place", () => {
  test.each<[string, unknown, string, string]>([
    ["NaN", { items: [0, 0, 0, { price: Number.NaN }] }, "$.items[3].price", "NaN"],
    ["an infinity", [Number.NEGATIVE_INFINITY], "$[0]", "-Infinity"],
    ["a function", { run: () => 1 }, "$.run", "a function"],
    ["a symbol", Symbol("s"), "$", "a symbol"],
    ["a symbol as key", { a: { [Symbol("s")]: 1 } }, "$.a", "a property whose key is a symbol"],
    ["a class instance", { cost: new Money() }, "$.cost", "an instance of Money"],
    ["a subclass of Map", new (class Index extends Map {})(), "$", "an instance of Index"],
    ["a regular expression", [/x/], "$[0]", "an instance of RegExp"],
    ["another typed array", new Float64Array(1), "$", "an instance of Float64Array"],
    ["a promise", { "late value": Promise.resolve(1) }, '$["late value"]', "a promise"],
    ["an invalid date", { at: new Date(Number.NaN) }, "$.at", "an invalid Date"],
    ["a hole", { list: [1, , 2] }, "$.list[1]", "a hole in an array"], // oxlint-disable-line no-sparse-arrays
    ["a cycle", cycle, "$.list[0].back", "a cycle"],
    ["a cycle through a map", mapCycle, "$.values()[0]", "a cycle"],
    ["a toJSON method", { at: { toJSON: () => "x" } }, "$.at.toJSON", "a function"],
    ["a key of a map", new Map([[Symbol("k"), 1]]), "$.keys()[0]", "a symbol"],
    ["an item of a set", new Set([1, Number.NaN]), "$.values()[1]", "NaN"],
    ["a key next to the marker", { $holdfast: 1, f: () => 1 }, "$.f", "a function"],
    ["an object with an inherited field", Object.create({ a: 1 }), "$", "an instance of Object"],
    ["a generator", (function* () {})(), "$", "an instance of an unnamed class"],
  ])("%s", (_, value, path, found) => {
    expect(() => encodeValue(value)).toThrow(
      expect.objectContaining({
        code: "NOT_SERIALIZABLE",
        details: { path, found },
      }),
    );
  });

  test("with what to do about it", () => {
    expect(() => encodeValue({ items: [{ price: Number.NaN }] })).toThrow(
      "Cannot store NaN at $.items[0].price. Use null, or a string of your own.",
    );
    expect(() => encodeValue(cycle)).toThrow(
      "Cannot store a cycle at $.list[0].back. It leads back to $: store an id in place of the reference.",
    );
    expect(() => encodeValue([Promise.resolve(1)])).toThrow("Await it first.");
  });

  test("and never with the value itself", () => {
    const secret = { password: "hunter2", at: /hunter2/ };
    const error = thrownBy(() => encodeValue(secret));
    expect(isHoldfastError(error)).toBe(true);
    expect(JSON.stringify(error) + String(error)).not.toContain("hunter2");
  });
});

test("objects, arrays, bytes and errors of another realm are taken", () => {
  const foreign: unknown = runInNewContext(
    "({ list: [1, { a: undefined }], bytes: Uint8Array.of(1) })",
  );
  expect(encodeValue(foreign)).toBe(
    '{"list":[1,{"a":{"$holdfast":"undefined"}}],"bytes":{"$holdfast":"bytes","value":"AQ=="}}',
  );
  const error: unknown = runInNewContext("new RangeError('far')");
  expect(encodeValue(error)).toMatch(
    /^\{"\$holdfast":"error","value":\{"name":"RangeError","message":"far"/,
  );
});

test("non-enumerable properties are left out, getters read", () => {
  const value = Object.defineProperty({ a: undefined }, "hidden", { value: 1 });
  Object.defineProperty(value, Symbol("hidden"), { value: 1 });
  expect(encodeValue(value)).toBe('{"a":{"$holdfast":"undefined"}}');
  const getter = {
    get a() {
      return 1;
    },
  };
  expect(encodeValue(getter)).toBe('{"a":1}');
});

describe("limits", () => {
  const nested = (levels: number, innermost: unknown): unknown => {
    let value = innermost;
    for (let level = 0; level < levels; level += 1) value = [value];
    return value;
  };

  test("200 levels are stored, also with a tag inside; one more is not", () => {
    expect(depthMax).toBe(200);
    expect(encodeValue(nested(200, 1))).toBe(`${"[".repeat(200)}1${"]".repeat(200)}`);
    expect(encodeValue(nested(200, 1n))).toContain('"bigint"');
    for (const value of [nested(201, 1), nested(201, 1n), nested(9_999, 1)]) {
      expect(() => encodeValue(value)).toThrow(
        expect.objectContaining({
          code: "VALUE_TOO_LARGE",
          details: expect.objectContaining({ limit: 200 }),
        }),
      );
    }
  });

  test("the size is counted in characters of text, on either way", () => {
    expect(encodeValue("abc", { charactersMax: 5 })).toBe('"abc"');
    expect(encodeValue(1n, { charactersMax: 34 })).toHaveLength(34);
    const tooLarge = expect.objectContaining({
      code: "VALUE_TOO_LARGE",
      details: { size: 5, limit: 4 },
    });
    expect(() => encodeValue("abc", { charactersMax: 4 })).toThrow(tooLarge);
    expect(() => encodeValue("\n\n", { charactersMax: 5 })).toThrow(
      expect.objectContaining({ details: { size: 6, limit: 5 } }),
    );
    expect(() => encodeValue(1n, { charactersMax: 33 })).toThrow(
      expect.objectContaining({ code: "VALUE_TOO_LARGE" }),
    );
  });

  test("the default is two million characters and a bit", () => {
    expect(defaultValueLimits).toEqual({ charactersMax: 2_097_152 });
    expect(encodeValue("x".repeat(2_097_150))).toHaveLength(2_097_152);
    expect(() => encodeValue("x".repeat(2_097_151))).toThrow(
      "The value takes at least 2097153 characters as text; the limit is 2097152.",
    );
  });

  test.each<readonly [string, (long: string) => unknown]>([
    ["a text", (long) => long],
    ["a text beside a bigint", (long) => [1n, { long }]],
    ["a key", (long) => ({ [long]: 1n })],
    ["the key of a Map", (long) => new Map([[long, 1]])],
    ["an item of a Set", (long) => new Set([long])],
  ])("%s of 100 MB is refused by its length, unwritten", (_, valueWith) => {
    const value = valueWith("x".repeat(100_000_000));
    const stringify = vi.spyOn(JSON, "stringify");
    try {
      for (const write of [encodeValue, canonicalText])
        expect(thrownBy(() => write(value))).toMatchObject({
          code: "VALUE_TOO_LARGE",
          details: { limit: 2_097_152 },
        });
      const written = stringify.mock.calls.map(([given]) => given as unknown);
      expect(written.filter((given) => String(given).length > 100)).toEqual([]);
    } finally {
      stringify.mockRestore();
    }
  });

  test("bytes of 100 MB are refused by their number, unwritten", () => {
    const bytes = new Uint8Array(100_000_000);
    const fill = vi.spyOn(Uint8Array.prototype, "fill");
    try {
      expect(thrownBy(() => encodeValue({ bytes }))).toMatchObject({
        code: "VALUE_TOO_LARGE",
        details: { limit: 2_097_152 },
      });
      expect(fill).not.toHaveBeenCalled();
      expect(encodeValue(new Uint8Array(3))).toContain('"AAAA"');
      expect(fill).toHaveBeenCalledOnce();
    } finally {
      fill.mockRestore();
    }
  });

  test("parts shared over and over end as too large, not as a hang", () => {
    let pair: unknown = [1n];
    for (let level = 0; level < 50; level += 1) pair = [pair, pair];
    expect(() => encodeValue(pair)).toThrow(expect.objectContaining({ code: "VALUE_TOO_LARGE" }));
  });
});

test("the slow way writes plain data as the fast way does", () => {
  const value = { b: [1, "é", null, true, {}, []], a: { "": -0 }, 1: 1e21 };
  expect(writeValue(value, "stored", defaultValueLimits)).toBe(
    '{"1":1e+21,"b":[1,"é",null,true,{},[]],"a":{"":0}}',
  );
});

function thrownBy(run: () => unknown): unknown {
  try {
    run();
  } catch (error) {
    return error;
  }
  throw new Error("Expected an error.");
}
