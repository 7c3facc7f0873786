import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { canonicalText, hashInput } from "./canonical.ts";
import { defaultValueLimits } from "./value-limits.ts";
import { writeValue } from "./value-writer.ts";
import { decodeValue, encodeValue } from "./values.ts";

describe("the canonical text", () => {
  // Hashes of these are on users' disks: a change here needs a new version.
  test.each<[string, unknown, string]>([
    ["sorts keys at every level", { b: { d: 1, c: 2 }, a: 3 }, '{"a":3,"b":{"c":2,"d":1}}'],
    ["sorts numbers among keys as text", { 10: 1, 9: 2, a: 3 }, '{"10":1,"9":2,"a":3}'],
    [
      "sorts by UTF-16 code unit, as in RFC 8785",
      {
        "\ufb33": 7,
        "\ud83d\ude00": 6,
        "\u20ac": 5,
        ö: 4,
        "\u0080": 3,
        1: 2,
        "\r": 1,
      },
      '{"\\r":1,"1":2,"\u0080":3,"ö":4,"€":5,"😀":6,"\ufb33":7}',
    ],
    [
      "writes numbers as in RFC 8785",
      [333333333.3333333, 1e30, 4.5, 2e-3, 1e-27, -0],
      "[333333333.3333333,1e+30,4.5,0.002,1e-27,0]",
    ],
    [
      "keeps the order of lists, maps and sets",
      [
        2,
        1,
        new Map([
          ["b", 1],
          ["a", 2],
        ]),
        new Set([2, 1]),
      ],
      '[2,1,{"$holdfast":"map","value":[["b",1],["a",2]]},{"$holdfast":"set","value":[2,1]}]',
    ],
    ["tells undefined from absent", { a: undefined }, '{"a":{"$holdfast":"undefined"}}'],
    [
      "sorts inside an escape",
      { b: 1, $holdfast: 2, a: 3 },
      '{"$holdfast":"object","value":{"$holdfast":2,"a":3,"b":1}}',
    ],
    [
      "leaves stacks out",
      new Error("x", { cause: new TypeError("y") }),
      '{"$holdfast":"error","value":{"cause":{"message":"y","name":"TypeError"},"message":"x","name":"Error"}}',
    ],
  ])("%s", (_, value, text) => {
    expect(canonicalText(value)).toBe(text);
  });

  test("refuses what cannot be stored", () => {
    expect(() => canonicalText({ a: Number.NaN })).toThrow(
      expect.objectContaining({ code: "NOT_SERIALIZABLE" }),
    );
    expect(() => canonicalText("abc", { charactersMax: 4 })).toThrow(
      expect.objectContaining({ code: "VALUE_TOO_LARGE" }),
    );
  });

  test("does not depend on the order of keys, and survives storage", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (value) => {
        const reversed = Object.fromEntries(Object.entries(value).toReversed());
        const text = canonicalText(value);
        expect(canonicalText(reversed)).toBe(text);
        expect(canonicalText(decodeValue(encodeValue(value)))).toBe(text);
        expect(decodeValue(text)).toEqual(decodeValue(encodeValue(value)));
      }),
    );
  });
});

test("plain JSON is written as the writer of all values writes it", () => {
  const key = fc.oneof(
    fc.string(),
    fc.constantFrom("__proto__", "10", "9", "01", "a", "b", "$holdfast"),
  );
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      fc.jsonValue({ maxDepth: 0 }),
      fc.array(tie("value"), { maxLength: 4 }),
      fc
        .array(fc.tuple(key, tie("value")), { maxLength: 5 })
        .map((entries) => Object.fromEntries(entries)),
    ),
  }));
  fc.assert(
    fc.property(value, (given) => {
      expect(canonicalText(given)).toBe(writeValue(given, "canonical", defaultValueLimits));
    }),
  );
});

test("the text to hash names its domain and version", () => {
  expect(hashInput("input", 1, { b: new Date(0), a: 1 })).toBe(
    'holdfast:input:1:{"a":1,"b":{"$holdfast":"date","value":"1970-01-01T00:00:00.000Z"}}',
  );
});
