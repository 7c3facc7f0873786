import { expect, test } from "vitest";
import { roughBytes } from "./held-bytes.ts";

test.each<[string, unknown, number]>([
  ["a text", "x".repeat(100_000), 100_000],
  ["texts in lists", Array.from({ length: 100 }, () => "x".repeat(1_000)), 100_000],
  ["bytes", { at: new Uint8Array(100_000) }, 100_000],
  ["a map of sets", new Map([["a", new Set(["x".repeat(100_000)])]]), 100_000],
  [
    "more parts than are looked at",
    Array.from({ length: 50_000 }, () => "x".repeat(84)),
    5_000_000,
  ],
])("of %s", (_, value, bytes) => {
  expect(roughBytes(value)).toBeGreaterThan(bytes * 0.9);
  expect(roughBytes(value)).toBeLessThan(bytes * 1.2);
});

test("of small values are few", () => {
  for (const value of [undefined, null, 1, true, 5n, new Date(0), {}, []])
    expect(roughBytes(value)).toBeLessThan(50);
});
