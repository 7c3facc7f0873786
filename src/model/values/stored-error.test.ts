import { describe, expect, test } from "vitest";
import { isError, storedError } from "./stored-error.ts";

describe("an error as data", () => {
  test("has name, message, code, data, stack, cause and parts, and no other fields", () => {
    const error = Object.assign(
      new AggregateError([new RangeError("a"), "b"], "both", {
        cause: new Error("root"),
      }),
      { code: "ALL", data: { n: 1 }, socket: {}, secret: "s" },
    );
    expect(storedError(error, { stack: false })).toStrictEqual({
      name: "AggregateError",
      message: "both",
      code: "ALL",
      data: { n: 1 },
      cause: { name: "Error", message: "root" },
      errors: [
        { name: "RangeError", message: "a" },
        { name: "NonError", message: "b" },
      ],
    });
  });

  test("has its stack unless told otherwise", () => {
    const error = new Error("x");
    error.stack = "Error: x\n    at user.ts:1:1";
    expect(storedError(error)).toStrictEqual({
      name: "Error",
      message: "x",
      stack: "Error: x\n    at user.ts:1:1",
    });
  });

  test.each<[unknown, object]>([
    [7, { code: 7 }],
    ["", { code: "" }],
    [Number.NaN, {}],
    [{}, {}],
    ["x".repeat(257), {}],
  ])("keeps a code that is short text or a number: %j", (code, kept) => {
    const error = Object.assign(new Error("x"), { code });
    expect(storedError(error, { stack: false })).toStrictEqual({
      name: "Error",
      message: "x",
      ...kept,
    });
  });
});

describe("whatever is thrown can be recorded", () => {
  const circular: Record<string, unknown> = {};
  circular["self"] = circular;
  test.each<[string, unknown, string, unknown?]>([
    ["text", "just text", "just text"],
    ["undefined", undefined, "undefined"],
    ["null", null, "null"],
    ["a symbol", Symbol("s"), "Symbol(s)"],
    ["a bigint", 5n, "5"],
    ["an object", { status: 404 }, '{"status":404}', { status: 404 }],
    [
      "an object with a message",
      { message: "gone", status: 404 },
      "gone",
      { message: "gone", status: 404 },
    ],
    ["a cycle", circular, "[object Object]"],
    [
      "an object without text",
      Object.create(null, {
        a: {
          get: () => {
            throw new Error("unreadable");
          },
          enumerable: true,
        },
      }),
      "The thrown value cannot be read.",
    ],
    ["an object with a bigint", { a: 1n }, '{"a":"1"}', { a: "1" }],
    ["a sparse list", new Array(2 ** 32 - 1), "an array of 4294967295"],
    ["many bytes", new Uint8Array(2 ** 25), "33554432 bytes"],
  ])("%s", (_, thrown, message, data) => {
    expect(storedError(thrown)).toStrictEqual({
      name: "NonError",
      message,
      ...(data !== undefined && { data }),
    });
  });

  test.each<[string, unknown, unknown]>([
    ["values that JSON has", { a: [1, null, true, "x"] }, undefined],
    ["a text for a date", { at: new Date(0) }, { at: "1970-01-01T00:00:00.000Z" }],
    ["digits of a bigint", { n: 5n }, { n: "5" }],
    ["what toJSON gives", { x: { toJSON: () => 1 } }, { x: 1 }],
    ["no function and no undefined", { f: () => 1, u: undefined, v: 1 }, { v: 1 }],
    ["a key named __proto__", JSON.parse('{"__proto__":{"a":1}}'), undefined],
  ])("with its data: %s", (_, data, kept) => {
    const error = Object.assign(new Error("x"), { data });
    expect(storedError(error, { stack: false })).toStrictEqual({
      name: "Error",
      message: "x",
      data: kept ?? data,
    });
  });

  test.each<[string, unknown]>([
    ["too long", "x".repeat(20_000)],
    ["too many", Array.from({ length: 5_000 }, () => 0)],
    ["too large to be read at all", new Array(2 ** 31)],
    ["a cycle", circular],
    ["hostile", { toJSON: () => JSON.parse("{") as unknown }],
  ])("without data that is %s", (_, data) => {
    const error = Object.assign(new Error("x"), { data });
    expect(storedError(error, { stack: false })).toStrictEqual({
      name: "Error",
      message: "x",
    });
  });

  test("an error whose message cannot be read", () => {
    const hostile = Object.defineProperty(new Error("x"), "message", {
      get() {
        throw new Error("no");
      },
    });
    expect(storedError(hostile)).toStrictEqual({
      name: "NonError",
      message: "The thrown value cannot be read.",
    });
  });

  test("an error that is its own cause", () => {
    const error = new Error("loop");
    error.cause = error;
    expect(storedError(error, { stack: false })).toStrictEqual({
      name: "Error",
      message: "loop",
    });
  });

  test("errors inside errors without end", () => {
    const parts: Error[] = [];
    for (let depth = 0; depth < 50; depth += 1) {
      parts.unshift(new AggregateError([...parts], `${depth}`));
    }
    const text = JSON.stringify(storedError(parts[0], { stack: false }));
    expect(text.match(/"name"/g)).toHaveLength(16);
  });

  test("causes of causes, eight deep, of which the last is the first", () => {
    let error = new Error("0");
    for (let depth = 1; depth < 50; depth += 1) {
      error = new Error(`${depth}`, { cause: error });
    }
    const text = JSON.stringify(storedError(error, { stack: false }));
    expect(text.match(/"message":"[0-9]+"/g)).toEqual(
      ["49", "48", "47", "46", "45", "44", "43", "0"].map((message) => `"message":"${message}"`),
    );
  });

  test("the longest message, cut, so that a failure always fits", () => {
    const { message } = storedError(new Error("x".repeat(10_000)));
    expect(message).toBe(`${"x".repeat(8_192)}…`);
    const worst = Array.from({ length: 40 }, () => {
      const error = Object.assign(new Error("\u0000".repeat(10_000)), {
        data: "\u0000".repeat(9_000),
      });
      error.stack = "\u0000".repeat(10_000);
      return error;
    });
    const text = JSON.stringify(storedError(new AggregateError(worst, "all")));
    expect(text.length).toBeLessThan(2 * 1024 * 1024);
  });
});

test("an error is read in bounds, whatever it says of itself", () => {
  let looks = 0;
  const endless = new Proxy<unknown[]>([], {
    get(_, name) {
      looks += 1;
      return name === "length" ? 2 ** 32 : undefined;
    },
  });
  class Chained extends Error {
    override get cause(): Error {
      looks += 1;
      return new Chained("below");
    }
  }
  const parts = { errors: endless, data: endless };
  const stored = storedError(Object.assign(new Chained("top"), parts));
  expect(stored).toMatchObject({ message: "top", stack: expect.any(String) as string });
  expect(looks).toBeLessThan(5_000);
});

test("errors are recognised by what they are, not by how they look", () => {
  expect(isError(new DOMException("x"))).toBe(true);
  expect(isError(Object.create(Error.prototype))).toBe(true);
  expect(isError({ name: "Error", message: "x" })).toBe(false);
  expect(isError(null)).toBe(false);
});
