import { describe, expect, test } from "vitest";
import { checkedSchema, schemaViolation } from "./payload-schema.ts";

describe("holding a payload to a schema", () => {
  test.each([
    [{}, { anything: [1] }],
    [{ type: "integer" }, 3],
    [{ type: ["null", "string"] }, null],
    [{ anyOf: [{ type: "string" }, { minimum: 3, type: "number" }] }, 3],
    [{ oneOf: [{ type: "string" }, { enum: ["a", "b"] }] }, "a"],
    [{ anyOf: [{ type: "number" }], oneOf: [{ minimum: 3 }] }, 3],
    [{ enum: [{ a: 1, b: 2 }] }, { b: 2, a: 1 }],
    [{ minLength: 2, maxLength: 2 }, "😀x"],
    [{ items: { type: "number" }, minItems: 1, maxItems: 2 }, [1, 2]],
    [{ properties: { a: {} }, additionalProperties: true }, { b: 1 }],
    [
      { properties: { a: {} }, additionalProperties: { type: "string" } },
      { a: 1, b: "x" },
    ],
    [{ additionalProperties: { type: "number" } }, { a: 1 }],
    [{ required: ["__proto__"] }, JSON.parse('{"__proto__":1}')],
  ])("%j takes %j", (schema, value) => {
    expect(schemaViolation(checkedSchema(schema, ["schema"]), value)).toBeUndefined();
  });

  test.each([
    [{ type: "integer" }, 1.5, "$", "type is not integer"],
    [{ type: "number" }, "1", "$", "type is not number"],
    [{ type: "object" }, [], "$", "type is not object"],
    [{ type: "object" }, new Date(0), "$", "type is not object"],
    [{ anyOf: [{ type: "string" }] }, 1, "$", "it fits none of the alternatives"],
    [
      { anyOf: [{ type: "number" }], oneOf: [{ minimum: 3 }] },
      2,
      "$",
      "it fits none of the alternatives",
    ],
    [
      { anyOf: [{ type: "string" }], oneOf: [{ minimum: 3 }] },
      3,
      "$",
      "it fits none of the alternatives",
    ],
    [{ enum: [1] }, 2, "$", "it is none of the values in enum"],
    [{ minimum: 3 }, 2, "$", "minimum is 3"],
    [{ maxLength: 1 }, "ab", "$", "maxLength is 1"],
    [{ minItems: 1 }, [], "$", "minItems is 1"],
    [{ items: { type: "string" } }, ["a", 1], "$[1]", "type is not string"],
    [{ required: ["a"] }, {}, "$.a", "it is required"],
    [{ required: ["toString"] }, {}, "$.toString", "it is required"],
    [{ properties: { a: {} } }, { b: 1 }, "$.b", "no property of that name is declared"],
    [
      { properties: { a: { properties: { b: { maximum: 1 } } } } },
      { a: { b: 2 } },
      "$.a.b",
      "maximum is 1",
    ],
  ])("%j refuses %j at %s: %s", (schema, value, path, rule) => {
    expect(schemaViolation(checkedSchema(schema, ["schema"]), value)).toEqual({
      path,
      rule,
    });
  });

  test.each([
    [null, "$.schema"],
    [{ pattern: "a" }, "$.schema.pattern"],
    [{ type: "date" }, "$.schema.type"],
    [{ anyOf: [] }, "$.schema.anyOf"],
    [{ items: [1] }, "$.schema.items"],
    [{ properties: { a: 1 } }, "$.schema.properties.a"],
    [{ minimum: "1" }, "$.schema.minimum"],
    [{ required: [1] }, "$.schema.required"],
  ])("the schema %j is refused at %s", (schema, path) => {
    expect(() => checkedSchema(schema, ["schema"])).toThrow(
      expect.objectContaining({
        code: "PROCESS_INVALID",
        details: expect.objectContaining({ path }),
      }),
    );
  });

  test.each([
    ["required", "a"],
    ["type", "string"],
    ["anyOf", { type: "string" }],
    ["oneOf", { type: "string" }],
  ])("a list of false length or with holes in %s is refused, not walked", (word, item) => {
    let looks = 0;
    const lying = new Proxy([item], {
      get(list, name) {
        looks += 1;
        if (looks > 1_000) throw new Error("Walked.");
        if (name === "length") return 2 ** 32 - 1;
        return typeof name === "string" && /^\d+$/.test(name)
          ? item
          : (Reflect.get(list, name) as unknown);
      },
      has: () => true,
    });
    const sparse = new Array<unknown>(1_001);
    sparse.fill(item, 0, 3);
    for (const list of [lying, sparse])
      expect(() => checkedSchema({ [word]: list }, ["schema"])).toThrow(
        expect.objectContaining({
          code: "PROCESS_INVALID",
          details: expect.objectContaining({ path: `$.schema.${word}` }),
        }),
      );
  });

  test("a schema that names one part again and again on every level is refused, not walked", () => {
    let schema: object = { type: "string" };
    for (let level = 0; level < 14; level += 1) schema = { anyOf: new Array(100).fill(schema) };
    expect(() => checkedSchema(schema, ["schema"])).toThrow(
      expect.objectContaining({ code: "PROCESS_INVALID" }),
    );
  });

  test("a schema that holds itself is refused, not followed for ever", () => {
    const schema: Record<string, unknown> = {};
    schema["items"] = schema;
    expect(() => checkedSchema(schema, ["schema"])).toThrow(
      expect.objectContaining({ code: "PROCESS_INVALID" }),
    );
  });
});
