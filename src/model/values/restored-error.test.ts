import { describe, expect, test } from "vitest";
import { HoldfastError } from "../errors.ts";
import { isStoredError, restoredError, restoredFailure } from "./restored-error.ts";

describe("an error read back", () => {
  test.each([
    [EvalError],
    [RangeError],
    [ReferenceError],
    [SyntaxError],
    [TypeError],
    [URIError],
    [Error],
  ])("is of its built-in class: %o", (Class) => {
    const error = restoredError({ name: Class.name, message: "m" });
    expect(Object.getPrototypeOf(error)).toBe(Class.prototype);
    expect(error.message).toBe("m");
    expect(error).not.toHaveProperty("cause");
  });

  test("of another class is an Error with its name", () => {
    const error = restoredError({
      name: "PaymentDeclined",
      message: "no funds",
      code: 51,
      stack: "PaymentDeclined: no funds\n    at user.ts:1:1",
    });
    expect(String(error)).toBe("PaymentDeclined: no funds");
    expect(error).toBeInstanceOf(Error);
    expect(error).toHaveProperty("code", 51);
    expect(error.stack).toBe("PaymentDeclined: no funds\n    at user.ts:1:1");
    expect(Object.keys(error)).toEqual(["code"]);
  });

  test("without a stack does not show the stack of reading it", () => {
    const error = restoredError({ name: "TypeError", message: "m" });
    expect(error.stack).toBe("TypeError: m");
  });

  test("has its cause and its parts", () => {
    const error = restoredError({
      name: "AggregateError",
      message: "both",
      cause: { name: "Error", message: "root" },
      errors: [{ name: "TypeError", message: "a" }],
    });
    expect(error).toBeInstanceOf(AggregateError);
    expect(error.cause).toMatchObject({ message: "root" });
    expect((error as AggregateError).errors[0]).toBeInstanceOf(TypeError);
  });

  test("named like a method of objects is an Error all the same", () => {
    const error = restoredError({ name: "constructor", message: "m" });
    expect(Object.getPrototypeOf(error)).toBe(Error.prototype);
    expect(error.name).toBe("constructor");
  });
});

describe("a failure read back", () => {
  const refusal = {
    name: "HoldfastError",
    message: "There is none.",
    code: "PROCESS_NOT_FOUND",
    stack: "HoldfastError: There is none.\n    at user.ts:1:1",
  };

  test("is a HoldfastError again, with its details, when Holdfast refused", () => {
    const cause = { name: "TypeError", message: "root" };
    const details = { id: "p" };
    const error = restoredFailure({ ...refusal, cause, details });
    expect(error).toBeInstanceOf(HoldfastError);
    expect(error).toMatchObject({ ...refusal, details, retryable: false });
    expect(error.cause).toBeInstanceOf(TypeError);
  });

  test.each<[unknown]>([[undefined], [null], ["p"], [["p"]]])(
    "has no details when %j was recorded as such",
    (details) => {
      const error = restoredFailure({ ...refusal, details });
      expect(error).toMatchObject({ code: "PROCESS_NOT_FOUND", details: {} });
      expect(error).not.toHaveProperty("cause");
    },
  );

  test.each<[string, object]>([
    ["what the store once said of itself", { code: "DATABASE_CLOSED" }],
    ["what might have passed", { code: "PROCESS_LEASED" }],
    ["a code of others", { code: "ENOENT" }],
    ["a code by the name of a method", { code: "constructor" }],
    ["somebody else's error", { name: "PaymentDeclined" }],
  ])("is an Error with its name and code for %s", (_, other) => {
    const error = restoredFailure({ ...refusal, ...other });
    expect(Object.getPrototypeOf(error)).toBe(Error.prototype);
    expect(error).toMatchObject({ ...refusal, ...other });
  });
});

describe("the shape of a stored error", () => {
  const good = { name: "E", message: "m" };
  test.each<[unknown]>([
    [good],
    [{ ...good, code: "C", stack: "s", cause: good, errors: [good] }],
    [{ ...good, code: 1, errors: [] }],
  ])("holds for %j", (value) => {
    expect(isStoredError(value)).toBe(true);
  });

  test.each<[unknown]>([
    [null],
    ["E"],
    [{}],
    [{ name: "E" }],
    [{ ...good, message: 1 }],
    [{ ...good, code: {} }],
    [{ ...good, stack: 1 }],
    [{ ...good, cause: "c" }],
    [{ ...good, errors: {} }],
    [{ ...good, errors: [{}] }],
  ])("does not hold for %j", (value) => {
    expect(isStoredError(value)).toBe(false);
  });
});
