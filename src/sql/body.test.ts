import { expect, test } from "vitest";
import { startedBody } from "./body.ts";
import { run, type Tx } from "./operation.ts";
import { sql } from "./statement.ts";

const instead = /cannot await\. Write a generator function instead, `function\* \(\) \{ … \}`/;

const started = (body: unknown): unknown => startedBody("pay", body as () => Tx<unknown>);

test("an async function is not called, and its refusal says what to write", () => {
  let calls = 0;
  const body = async (): Promise<void> => {
    calls += 1;
  };
  async function* generator(): AsyncGenerator<void> {
    calls += 1;
  }
  expect(() => started(body)).toThrow(instead);
  expect(() => started(generator)).toThrow(instead);
  expect(calls).toBe(0);
});

test("a function that returns a promise is refused, and the promise disturbs nobody when it rejects", async () => {
  const unhandled: unknown[] = [];
  const note = (reason: unknown): void => void unhandled.push(reason);
  process.on("unhandledRejection", note);
  try {
    expect(() => started(() => Promise.reject(new Error("late")))).toThrow(instead);
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(unhandled).toEqual([]);
  } finally {
    process.off("unhandledRejection", note);
  }
});

test("other bodies that are no generators are refused, whatever they say of themselves", () => {
  const strange = Object.defineProperty(() => 1, Symbol.toStringTag, {
    get: () => {
      throw new Error("no");
    },
  });
  for (const body of [() => 1, () => null, () => [1], strange])
    expect(() => started(body)).toThrow(/not a generator function/);
});

test("a generator, and a function that returns one, are bodies", () => {
  const body = function* (): Tx<number> {
    return yield* run(sql`DELETE FROM account`);
  };
  expect(started(body)).toHaveProperty("next");
  expect(started(() => body())).toHaveProperty("next");
});
