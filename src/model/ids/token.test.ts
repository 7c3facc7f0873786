import { describe, expect, test } from "vitest";
import { seededEntropy } from "../entropy.ts";
import { isSameToken, newToken } from "./token.ts";

describe("a token", () => {
  test("has 128 random bits, and the next one has others", () => {
    const entropy = seededEntropy(1);
    const first = newToken(entropy);
    expect(first).toMatch(/^[0-9a-f]{32}$/);
    expect(newToken(entropy)).not.toBe(first);
  });

  test("keeps zeros in front", () => {
    const entropy = { bytes: (length: number) => new Uint8Array(length) };
    expect(newToken(entropy)).toBe("00000000000000000000000000000000");
  });

  test.each([
    ["abcd", "abcd", true],
    ["abcd", "Xbcd", false],
    ["abcd", "abcX", false],
    ["abcd", "abc", false],
    ["abcd", "abcde", false],
    ["", "", true],
  ])("%s and %s: %s", (a, b, expected) => {
    expect(isSameToken(a, b)).toBe(expected);
  });
});
