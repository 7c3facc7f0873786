import { expect, test } from "vitest";
import { excerpt } from "./excerpt.ts";

test("short text is quoted whole, with control characters escaped", () => {
  expect(excerpt("order-42")).toBe('"order-42"');
  expect(excerpt('a"b\n\u0000')).toBe('"a\\"b\\n\\u0000"');
});

test("text beyond 80 characters is cut and says so", () => {
  expect(excerpt("x".repeat(80))).toBe(`"${"x".repeat(80)}"`);
  expect(excerpt("x".repeat(81))).toBe(`"${"x".repeat(80)}…"`);
});
