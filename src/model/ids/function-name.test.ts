import { expect, test } from "vitest";
import { parseFunctionName } from "./function-name.ts";

test.each([
  "orders/fulfil",
  "orders.fulfil",
  "a",
  ".",
  "snake_case",
  "kebab-case",
  "x".repeat(128),
])("a function may be named %s", (name) => {
  expect(parseFunctionName(name)).toBe(name);
});

test.each(["", "a:b", "a b", "é", "a\n", "x".repeat(129)])(
  "a function cannot be named %j",
  (name) => {
    expect(() => parseFunctionName(name)).toThrow(
      expect.objectContaining({ code: "NAME_INVALID" }),
    );
  },
);

test.each([undefined, null, 5, true, [], {}, Object.create(null)])(
  "what is no text names no function",
  (name) => {
    expect(() => parseFunctionName(name as unknown as string)).toThrow(
      expect.objectContaining({ code: "NAME_INVALID" }),
    );
  },
);
