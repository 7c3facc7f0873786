// oxlint-disable unicorn/no-thenable -- a keyword of JSON Schema.
import { describe, expect, test } from "vitest";
import { checkedJsonSchema } from "./check-schema.ts";
import { schemaFault } from "./schema-fault.ts";

function fault(schema: unknown, value: unknown): string {
  const found = schemaFault(checkedJsonSchema(schema), value);
  return found === undefined ? "fits" : `${found.path} ${found.message}`;
}

const user = {
  type: "object",
  properties: {
    name: { type: "string", minLength: 1 },
    age: { type: "integer", minimum: 0 },
  },
  required: ["name"],
  additionalProperties: false,
};
const tree = {
  $ref: "#/$defs/node",
  $defs: {
    node: {
      type: "object",
      properties: { kids: { type: "array", items: { $ref: "#/$defs/node" } } },
      required: ["kids"],
    },
  },
};

describe("a value of a schema", () => {
  test.each([
    [{}, undefined, "fits"],
    [{ type: "string" }, "a", "fits"],
    [{ type: "string" }, 1, "$ must be string"],
    [{ type: "integer" }, 1, "fits"],
    [{ type: "integer" }, 1.5, "$ must be integer"],
    [{ type: "number" }, Number.NaN, "fits"],
    [{ type: "number", minimum: 0 }, Number.NaN, "$ must be at least 0"],
    [{ type: ["string", "null"] }, null, "fits"],
    [{ type: "string", nullable: true }, null, "fits"],
    [{ type: "string", nullable: false }, null, "$ must be string"],
    [{ type: "object" }, [], "$ must be object"],
    [{ type: "object" }, null, "$ must be object"],
    [{ type: "object" }, new Date(0), "$ must be object"],
    [{ type: "array" }, {}, "$ must be array"],
    [{ enum: ["a", { b: [1] }] }, { b: [1] }, "fits"],
    [{ enum: ["a"] }, "b", "$ is none of the allowed values"],
    [{ const: null }, null, "fits"],
    [{ const: { a: 1, b: 2 } }, { b: 2, a: 1 }, "fits"],
    [{ const: 1 }, "1", "$ is not the allowed value"],
    [{ minimum: 3, maximum: 3 }, 3, "fits"],
    [{ exclusiveMinimum: 3 }, 3, "$ must be above 3"],
    [{ exclusiveMaximum: 3 }, 3, "$ must be below 3"],
    [{ maximum: 3 }, 4, "$ must be at most 3"],
    [{ multipleOf: 0.1 }, 0.3, "fits"],
    [{ multipleOf: 0.01 }, 1.005, "$ must be a multiple of 0.01"],
    [{ multipleOf: 5e-324 }, 1e308, "fits"],
    [{ multipleOf: 3 }, -9, "fits"],
    [{ minLength: 2, maxLength: 2 }, "😀x", "fits"],
    [{ minLength: 2 }, "😀", "$ must have at least 2 characters"],
    [{ maxLength: 1 }, "ab", "$ must have at most 1 characters"],
    [{ pattern: "^a+$" }, "aa", "fits"],
    [{ pattern: "^a+$" }, "ab", "$ must match the pattern ^a+$"],
    [{ pattern: "^a+$" }, 1, "fits"],
    [{ format: "email" }, "no address", "fits"],
    [{ items: { type: "number" } }, [1, "2"], "$[1] must be number"],
    [{ prefixItems: [{ type: "string" }], items: false }, ["a", 1], "$[1] is not allowed"],
    [{ prefixItems: [{ type: "string" }], minItems: 1 }, [], "$ must have at least 1 items"],
    [{ items: [{ type: "string" }], additionalItems: false }, ["a", 1], "$[1] is not allowed"],
    [{ items: [{ type: "string" }] }, ["a", 1], "fits"],
    [{ maxItems: 1 }, [1, 2], "$ must have at most 1 items"],
    [
      { uniqueItems: true },
      [
        { a: 1, b: 2 },
        { b: 2, a: 1 },
      ],
      "$ must not contain the same item twice",
    ],
    [{ uniqueItems: true }, [1, "1", [1], { 0: 1 }], "fits"],
    [{ contains: { type: "string" } }, [1], "$ must have at least 1 items that fit contains"],
    [{ contains: true, minContains: 0 }, [], "fits"],
    [
      { contains: { const: 1 }, maxContains: 1 },
      [1, 1],
      "$ must have at most 1 items that fit contains",
    ],
    [user, { name: "ada", age: 3 }, "fits"],
    [user, { name: "ada", age: undefined }, "fits"],
    [user, {}, "$.name is required"],
    [user, { name: undefined }, "$.name is required"],
    [user, { name: "" }, "$.name must have at least 1 characters"],
    [user, { name: "ada", toString: 1 }, "$.toString is not allowed"],
    [{ required: ["toString"] }, {}, "$.toString is required"],
    [{ properties: { a: false } }, { a: 1 }, "$.a is not allowed"],
    [{ additionalProperties: { type: "number" } }, { a: "x" }, "$.a must be number"],
    [{ properties: {} }, JSON.parse('{"__proto__":1}'), "fits"],
    [{ additionalProperties: false }, JSON.parse('{"__proto__":1}'), "$.__proto__ is not allowed"],
    [
      { patternProperties: { "^n": { type: "number" } }, additionalProperties: false },
      { n1: 1, x: 1 },
      "$.x is not allowed",
    ],
    [{ propertyNames: { maxLength: 1 } }, { ab: 1 }, "$.ab has a name that is not allowed"],
    [{ minProperties: 1 }, {}, "$ must have at least 1 properties"],
    [{ maxProperties: 1 }, { a: 1, b: undefined }, "fits"],
    [{ dependentRequired: { a: ["b"] } }, { a: 1 }, "$.b is required"],
    [{ dependentRequired: { a: ["b"] } }, { c: 1 }, "fits"],
    [{ anyOf: [{ type: "string" }, { type: "number" }] }, true, "$ fits none of the alternatives"],
    [{ oneOf: [{ minimum: 1 }, { minimum: 2 }] }, 3, "$ fits more than one of the alternatives"],
    [{ oneOf: [{ minimum: 1 }, { minimum: 2 }] }, 1, "fits"],
    [{ oneOf: [{ minimum: 1 }] }, 0, "$ fits none of the alternatives"],
    [{ allOf: [{ minimum: 1 }, { maximum: 2 }] }, 3, "$ must be at most 2"],
    [{ not: {} }, 1, "$ fits a schema that it must not fit"],
    [{ not: { type: "string" } }, 1, "fits"],
    [
      { if: { minimum: 5 }, then: { multipleOf: 5 }, else: { maximum: 3 } },
      6,
      "$ must be a multiple of 5",
    ],
    [
      { if: { minimum: 5 }, then: { multipleOf: 5 }, else: { maximum: 3 } },
      4,
      "$ must be at most 3",
    ],
    [{ if: false, then: false }, 1, "fits"],
    [tree, { kids: [{ kids: [] }] }, "fits"],
    [tree, { kids: [{ kids: [{}] }] }, "$.kids[0].kids[0].kids is required"],
    [
      { $defs: { "a/b~c d": { type: "string" } }, $ref: "#/$defs/a~1b~0c%20d" },
      1,
      "$ must be string",
    ],
  ])("%j of %j: %s", (schema, value, expected) => {
    expect(fault(schema, value)).toBe(expected);
  });

  test("is checked with bounded work, whatever the schema", () => {
    const $defs: Record<string, unknown> = { d30: { type: "string" } };
    for (let level = 0; level < 30; level += 1) {
      const $ref = `#/$defs/d${level + 1}`;
      $defs[`d${level}`] = { anyOf: [{ $ref }, { $ref }] };
    }
    const doubled = { $ref: "#/$defs/d0", $defs };
    expect(fault(doubled, 1)).toBe("$ takes too much work to check; shorten it");
    expect(fault({ pattern: "^(a+)+$" }, `${"a".repeat(50)}!`)).toBe(
      "$ must match the pattern ^(a+)+$",
    );
    expect(fault({ pattern: "(?:a?){500}$" }, `${"a".repeat(20_000)}!`)).toBe(
      "$ takes too much work to check; shorten it",
    );
    expect(
      fault(
        { uniqueItems: true },
        Array.from({ length: 100_000 }, (_, n) => n),
      ),
    ).toBe("fits");
  });

  test("may nest deeply", () => {
    let deep: unknown = { kids: [] };
    for (let level = 0; level < 400; level += 1) deep = { kids: [deep] };
    expect(fault(tree, deep)).toBe("fits");
    for (let level = 0; level < 10_000; level += 1) deep = { kids: [deep] };
    expect(fault(tree, deep)).toBe("$ takes too much work to check; shorten it");
  });
});
