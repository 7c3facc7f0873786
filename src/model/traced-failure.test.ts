import { describe, expect, test, vi } from "vitest";
import { HoldfastError } from "./errors.ts";
import { tracedFailure } from "./traced-failure.ts";

function failure(): HoldfastError {
  return new HoldfastError("DATABASE_BUSY", "Try again.", { budgetMs: 5 }, { cause: "a lock" });
}

/** A call that fails later, when whoever made it is no longer on the stack. */
function failing(error: unknown): Promise<never> {
  return new Promise((resolve) => {
    setImmediate(() => resolve(tracedFailure(error)));
  });
}

async function passingOn(error: unknown): Promise<never> {
  return failing(error);
}

async function caught(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => undefined,
    (error: unknown) => error,
  );
}

async function firstCaller(error: unknown): Promise<void> {
  await passingOn(error);
}

async function secondCaller(error: unknown): Promise<void> {
  await failing(error);
}

describe("a failure that is told to a caller", () => {
  test("shows the caller's line behind those of where it was made", async () => {
    const error = failure();
    const made = error.stack ?? "";
    const told = (await caught(firstCaller(error))) as HoldfastError;
    expect(told).toBe(error);
    expect(told.stack?.startsWith(made)).toBe(true);
    expect(told.stack?.slice(made.length)).toMatch(
      /at (async )?firstCaller \(.*traced-failure\.test\.ts:\d+:\d+\)/,
    );
  });

  test("is an error of its own for each of several callers", async () => {
    const error = failure();
    const first = (await caught(firstCaller(error))) as HoldfastError;
    const second = (await caught(secondCaller(error))) as HoldfastError;
    expect(first.stack).toContain("firstCaller");
    expect(first.stack).not.toContain("secondCaller");
    expect(second.stack).toContain("secondCaller");
    expect(second.stack).not.toContain("firstCaller");
    expect(second).not.toBe(first);
    expect(second).toMatchObject({
      name: "HoldfastError",
      code: "DATABASE_BUSY",
      message: "Try again.",
      details: { budgetMs: 5 },
      cause: "a lock",
      retryable: true,
    });
  });

  test("stays as it is when it is not ours, or nobody awaits it", async () => {
    const other = new Error("of the caller");
    const { stack } = other;
    expect(await caught(firstCaller(other))).toBe(other);
    expect(other.stack).toBe(stack);
    expect(await caught(firstCaller("a text"))).toBe("a text");
    const error = failure();
    const made = error.stack;
    const told = await new Promise((resolve) => {
      failing(error).catch(resolve);
    });
    expect(told).toBe(error);
    expect(error.stack).toBe(made);
  });

  test("may be frozen, or of a class that somebody made", async () => {
    const frozen = Object.freeze(failure());
    const { stack } = frozen;
    expect(await caught(firstCaller(frozen))).toBe(frozen);
    expect(frozen.stack).toBe(stack);
    class OwnError extends HoldfastError {}
    const own = new OwnError("ABORTED", "Mine.");
    expect(await caught(firstCaller(own))).toBe(own);
    expect(own.stack).toContain("firstCaller");
    expect(await caught(secondCaller(own))).toBe(own);
  });

  test("of a promise that was settled before troubles nobody", async () => {
    const unhandled = vi.fn();
    process.on("unhandledRejection", unhandled);
    try {
      const settled = new Promise<number>((resolve) => {
        resolve(1);
        resolve(tracedFailure(failure()));
      });
      expect(await settled).toBe(1);
      await new Promise((resolve) => setImmediate(resolve));
      await new Promise((resolve) => setImmediate(resolve));
      expect(unhandled).not.toHaveBeenCalled();
    } finally {
      process.off("unhandledRejection", unhandled);
    }
  });

  test("keeps properties that are not listed unlisted", async () => {
    const error = failure();
    await caught(firstCaller(error));
    expect(Object.keys(error)).toEqual(["code", "details", "retryable"]);
  });
});
