import { describe, expect, test } from "vitest";
import { seededEntropy } from "./entropy.ts";

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");

describe("seeded entropy", () => {
  // Computed by an independent implementation; replays depend on these bytes.
  test.each([
    [0, "c37fe0c2f67a351938288b3175b82f56"],
    [7, "5b58ed6a0082ff7622caa6ab9d16ec87"],
    [-1, "342d4526d039c01dffc35be5ed815502"],
    [0x1234_5678_9abc_def0n, "fd8ecb9e7bde4f3afc34db6ee386700f"],
  ])("gives the pinned bytes for seed %s", (seed, expected) => {
    expect(hex(seededEntropy(seed).bytes(16))).toBe(expected);
  });

  test("takes a number and the equal bigint for the same seed", () => {
    expect(hex(seededEntropy(7n).bytes(4))).toBe("5b58ed6a");
    expect(hex(seededEntropy(2n ** 64n - 1n).bytes(4))).toBe("342d4526");
  });

  test("starts every call on a fresh word, so alignment does not leak between callers", () => {
    const entropy = seededEntropy(7);
    expect(hex(entropy.bytes(1))).toBe("5b");
    expect(hex(entropy.bytes(6))).toBe("0082ff7622ca");
    expect(hex(entropy.bytes(0))).toBe("");
    expect(hex(entropy.bytes(4))).toBe("9d16ec87");
  });

  test("hands out arrays that the caller may change", () => {
    const entropy = seededEntropy(7);
    entropy.bytes(4).fill(0);
    expect(hex(entropy.bytes(4))).toBe("0082ff76");
  });

  test.each([0.5, Number.NaN, 2 ** 53])("refuses %d as a seed", (seed) => {
    expect(() => seededEntropy(seed)).toThrow(expect.objectContaining({ code: "OPTION_INVALID" }));
  });
});
