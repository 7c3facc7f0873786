import { expect, test } from "vitest";
import { mix64, splitmix64 } from "./splitmix.ts";

test("the sequence is the published one for seed 1234567", () => {
  expect(splitmix64(1_234_567n, 5)).toEqual([
    6457827717110365317n,
    3203168211198807973n,
    9817491932198370423n,
    4593380528125082431n,
    16408922859458223821n,
  ]);
});

test("seeds beyond 64 bits and below zero wrap around", () => {
  expect(splitmix64(2n ** 64n, 1)).toEqual([0xe220_a839_7b1d_cdafn]);
  expect(splitmix64(-(2n ** 64n), 1)).toEqual([0xe220_a839_7b1d_cdafn]);
});

test("mixing stays within 64 bits", () => {
  for (const word of [0n, 1n, 2n ** 63n, 2n ** 64n - 1n]) {
    expect(mix64(word)).toBeGreaterThanOrEqual(0n);
    expect(mix64(word)).toBeLessThan(2n ** 64n);
  }
});
