import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { encodeUlid, isUlid, ulidTimeMs } from "./ulid.ts";

const hex = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text, "hex"));

describe("the text of a ULID", () => {
  // Computed by an independent implementation.
  test.each([
    [1_469_922_850_259, "d6764c61efb99302bd5b", "01ARZ3NDEKTSV4RRFFQ69G5FAV"],
    [1_700_000_000_000, "0102030405060708090a", "01HF7YAT00041061050R3GG28A"],
    [0, "00000000000000000000", "00000000000000000000000000"],
    [2 ** 48 - 1, "ffffffffffffffffffff", "7ZZZZZZZZZZZZZZZZZZZZZZZZZ"],
  ])("of %d ms and %s is %s", (timeMs, random, text) => {
    expect(encodeUlid(timeMs, hex(random))).toBe(text);
    expect(isUlid(text)).toBe(true);
    expect(ulidTimeMs(text)).toBe(timeMs);
  });
});

test.each([
  ["lower case", "01arz3ndektsv4rrffq69g5fav"],
  ["a time beyond 48 bits", "80000000000000000000000000"],
  ["a letter outside the alphabet", "01ARZ3NDEKTSV4RRFFQ69G5FAU"],
  ["too few characters", "01ARZ3NDEKTSV4RRFFQ69G5FA"],
  ["too many characters", "01ARZ3NDEKTSV4RRFFQ69G5FAVV"],
  ["a line break at the end", "01ARZ3NDEKTSV4RRFFQ69G5FAV\n"],
  ["nothing", ""],
])("text with %s is no ULID", (_, text) => {
  expect(isUlid(text)).toBe(false);
});

test.each([-1, 0.5, Number.NaN, 2 ** 48])("a time of %d ms has no ULID", (timeMs) => {
  expect(() => encodeUlid(timeMs, new Uint8Array(10))).toThrow(
    expect.objectContaining({ code: "TIME_OUT_OF_RANGE" }),
  );
});

test("texts order as time and random part do", () => {
  const parts = fc.tuple(
    fc.integer({ min: 0, max: 2 ** 48 - 1 }),
    fc.uint8Array({ minLength: 10, maxLength: 10 }),
  );
  fc.assert(
    fc.property(parts, parts, ([timeA, randomA], [timeB, randomB]) => {
      const order = timeA - timeB || Buffer.compare(randomA, randomB);
      const a = encodeUlid(timeA, randomA);
      const b = encodeUlid(timeB, randomB);
      expect(a < b).toBe(order < 0);
      expect(a === b).toBe(order === 0);
      expect(isUlid(a) && ulidTimeMs(a) === timeA).toBe(true);
    }),
  );
});
