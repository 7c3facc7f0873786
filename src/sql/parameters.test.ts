import { describe, expect, test } from "vitest";
import { checkValue } from "./parameters.ts";
import type { SqlValue } from "./statement.ts";

describe("a parameter that cannot be bound", () => {
  test.each<[string, unknown, string]>([
    ["undefined", undefined, "bind null"],
    ["a boolean", true, "bind 1 or 0"],
    ["a Date", new Date(0), "date.getTime()"],
    ["an array", [1, 2], "IN ${integersOf(items)} or IN ${textsOf(items)}"],
    ["a generator", [].values(), "yield*"],
    ["an object", { secret: "s3cret" }, "JSON text"],
    ["a function", () => "s3cret", "text, a number, bytes or null"],
    ["text with U+0000", "s3cret\0", "remove it"],
    ["text with a lone surrogate", "s3cret\ud800", "toWellFormed()"],
    ["NaN", Number.NaN, "null"],
  ])("as %s is told by kind, and what to bind instead", (found, value, hint) => {
    const refused = (): void => checkValue(value as SqlValue, 3);
    expect(refused).toThrow(
      expect.objectContaining({
        code: "PARAMETER_INVALID",
        details: { position: 3, found },
      }),
    );
    expect(refused).toThrow(`Parameter 3 of the statement is ${found}`);
    expect(refused).toThrow(hint);
    expect(refused).not.toThrow("s3cret");
  });
});
