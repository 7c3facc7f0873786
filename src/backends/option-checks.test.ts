import { describe, expect, test } from "vitest";
import { oneOf, refuseUnknown, wholeNumber } from "./option-checks.ts";

describe("an option that is refused", () => {
  const refused = (message: string): unknown =>
    expect.objectContaining({ code: "OPTION_INVALID", message });

  test("is named beside the known options", () => {
    expect(() => refuseUnknown({ readonly: 1 }, ["clock", "readOnly"])).toThrow(
      refused('Unknown option "readonly". The options are: clock, readOnly.'),
    );
    expect(() => refuseUnknown("fast", ["clock", "readOnly"])).toThrow(
      refused('Expected an object with options (clock, readOnly), got "fast".'),
    );
  });

  test("gets a message with its range, whose upper bound appears only if it has one", () => {
    expect(() => wholeNumber("rows", 0)).toThrow(
      refused("Option rows is 0; expected a whole number, 1 or more."),
    );
    expect(() => wholeNumber("rows", 9, 1, 8)).toThrow(
      refused("Option rows is 9; expected a whole number, 1 to 8."),
    );
  });

  test.each<[unknown, string]>([
    ["no", '"no"'],
    [null, "null"],
    [() => "the source of a function", "a function"],
    [{ a: "what it holds" }, "an object"],
    [Object.create(null), "an object"],
    [new Map(), "an object (Map)"],
  ])("%s is shown as %s, without what it holds", (found, shown) => {
    expect(() => oneOf<unknown>("full", found, [false, true])).toThrow(
      refused(`Option full is ${shown}; expected false or true.`),
    );
  });
});
