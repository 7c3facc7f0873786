import { describe, expect, test } from "vitest";
import { isHoldfastError } from "../errors.ts";
import { checkedJsonSchema } from "./check-schema.ts";

function refusal(schema: unknown): string {
  try {
    checkedJsonSchema(schema);
  } catch (error) {
    if (isHoldfastError(error) && error.code === "OPTION_INVALID") return error.message;
    throw error;
  }
  return "accepted";
}

describe("a schema", () => {
  test("is copied, so that it cannot change after its check", () => {
    const properties = { a: { type: "string" } };
    const schema = { type: "object", properties };
    const copy = checkedJsonSchema(schema);
    properties.a.type = "nonsense";
    expect(copy).toEqual({ type: "object", properties: { a: { type: "string" } } });
  });

  test("may have notes, whatever they hold", () => {
    const schema = {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      $id: "https://example.com/a",
      title: 1,
      description: "d",
      default: { type: "nonsense" },
      examples: [{ $ref: "nowhere" }],
      format: "email",
      "x-order": 3,
    };
    expect(checkedJsonSchema(schema)).toEqual(schema);
  });

  test.each([
    ["a text", "string", "must be an object"],
    ["nothing", undefined, "must be plain JSON"],
    ["a list", [], "must be an object"],
    ["a boolean", true, "must be an object"],
    ["a Date", new Date(0), "must be plain JSON"],
    ["a function", () => true, "must be plain JSON"],
    ["an undefined field", { type: undefined }, "must be plain JSON"],
    ["65,536 characters", { title: "x".repeat(65_536) }, "must be plain JSON of at most 65536"],
    ["a list of any length", { enum: new Proxy([], { get: () => 2 ** 40 }) }, "must be"],
    ["an unknown keyword", { unevaluatedProperties: false }, "is a keyword that is not supported"],
    ["a typo", { properties: { a: { mininum: 1 } } }, "$.properties.a.mininum is a keyword"],
    ["an inner $id", { items: { $id: "x" } }, "$.items.$id is a keyword"],
    ["an anchor", { $anchor: "a" }, "is a keyword that is not supported"],
    ["an unknown type", { type: "date" }, "must be one or more of null"],
    ["no type", { type: [] }, "must be one or more of null"],
    ["properties in a list", { properties: [] }, "must be an object of schemas"],
    ["a property that is no schema", { properties: { a: 1 } }, "$.properties.a is not a schema"],
    ["an empty anyOf", { anyOf: [] }, "must be a list of one or more schemas"],
    ["a length below 0", { minLength: -1 }, "must be a whole number from 0"],
    ["half an item", { maxItems: 1.5 }, "must be a whole number from 0"],
    ["a limit as text", { minimum: "1" }, "must be a number"],
    ["OpenAPI's exclusiveMinimum", { exclusiveMinimum: true }, "must be a number"],
    ["a multiple of 0", { multipleOf: 0 }, "must be a number above 0"],
    ["names in a text", { required: "a" }, "must be a list of names"],
    ["a pattern that is no text", { pattern: 1 }, "must be a text"],
    ["an invalid pattern", { pattern: "(" }, "$.pattern is an invalid regular expression"],
    ["a pattern of names", { patternProperties: { "(": true } }, "is an invalid regular"],
    ["a backreference", { pattern: "(a)\\1" }, "has a backreference"],
    ["nullable alone", { nullable: true, anyOf: [true] }, "$.nullable needs a type beside it"],
    ["a reference to nothing", { $ref: "#/$defs/a" }, "must name a schema of the same document"],
    ["a remote reference", { $ref: "https://example.com/a" }, "must name a schema"],
    ["a reference to no schema", { $ref: "#/enum", enum: [1] }, "must name a schema"],
    ["a malformed reference", { $ref: "#/%" }, "must name a schema"],
    ["a reference to itself", { $ref: "#" }, "refers to itself for the same value"],
    [
      "a circle of references",
      {
        $ref: "#/$defs/a",
        $defs: { a: { anyOf: [{ $ref: "#/$defs/b" }] }, b: { $ref: "#/$defs/a" } },
      },
      "refers to itself for the same value",
    ],
  ])("with %s is refused", (_, schema, why) => {
    expect(refusal(schema)).toContain(why);
  });

  test("that nests deeply is refused, not walked to the end of the stack", () => {
    let deep: object = {};
    for (let level = 0; level < 10_000; level += 1) deep = { not: deep };
    expect(refusal(deep)).toContain("must be plain JSON");
    let nested: object = {};
    for (let level = 0; level < 100; level += 1) nested = { not: nested };
    expect(refusal(nested)).toContain("nests deeper than 64");
  });

  test("that throws when it is read is refused", () => {
    const circle: Record<string, unknown> = {};
    circle["not"] = circle;
    expect(refusal(circle)).toContain("must be plain JSON");
    const thrower = {
      get type(): string {
        throw new Error("no");
      },
    };
    expect(refusal(thrower)).toContain("must be plain JSON");
  });

  test("may refer to itself for parts of a value", () => {
    const tree = {
      type: "object",
      properties: { children: { type: "array", items: { $ref: "#" } } },
    };
    expect(checkedJsonSchema(tree)).toEqual(tree);
  });
});
