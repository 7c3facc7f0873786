import { describe, expect, test } from "vitest";
import { checkParameters, checkValue } from "./parameters.ts";
import { sql } from "./statement.ts";
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

test("a list for Postgres is measured before it is walked", () => {
  let looks = 0;
  const lying = new Proxy(["a"], {
    get(list, name) {
      looks += 1;
      if (looks > 1_000) throw new Error("Walked.");
      if (name === "length") return 2 ** 32 - 1;
      return typeof name === "string" && /^\d+$/.test(name)
        ? "a"
        : (Reflect.get(list, name) as unknown);
    },
  });
  expect(() => checkParameters(sql`SELECT unnest(${lying}::text[])`)).toThrow(
    expect.objectContaining({
      code: "PARAMETER_INVALID",
      details: { position: 1, found: "a long list" },
    }),
  );
  expect(() => checkParameters(sql`SELECT unnest(${new Array(2)}::text[])`)).toThrow(
    expect.objectContaining({ details: { position: 1, found: "undefined" } }),
  );
});
