import { expect, test } from "vitest";
import { isRecord, spokenKind } from "./spoken-kind.ts";

test("every value has a kind, and none is repeated", () => {
  const kinds = [
    [null, "null"],
    [undefined, "undefined"],
    [["secret"], "an array"],
    ["secret", "a string"],
    [{ secret: 1 }, "an object"],
    [Object.create(null), "an object"],
    [5, "a number"],
    [true, "a boolean"],
    [5n, "a bigint"],
    [Symbol("secret"), "a symbol"],
    [() => "secret", "a function"],
  ] as const;
  for (const [value, kind] of kinds) expect(spokenKind(value)).toBe(kind);
});

test("only objects with fields are records", () => {
  expect([{}, Object.create(null)].every(isRecord)).toBe(true);
  expect([null, undefined, [], "x", 5, () => 1].some(isRecord)).toBe(false);
});
