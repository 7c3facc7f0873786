import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { HoldfastError } from "../../model/errors.ts";
import type { ErrorCode } from "../../model/errors.ts";
import { Pool } from "./pool.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A pool whose server never answers, with somebody who wants a connection all the time. */
function downPool(code: ErrorCode): {
  readonly attempts: () => number;
  readonly told: string[];
} {
  let attempts = 0;
  const told: string[] = [];
  const pool = new Pool(
    () => {
      attempts += 1;
      return Promise.reject(new HoldfastError(code, "no"));
    },
    4,
    {
      onRoom: () => pool.grow(1),
      onDown: (error) => told.push(error.code),
    },
  );
  pool.grow(1);
  return { attempts: () => attempts, told };
}

describe("a server that cannot be reached", () => {
  test("is tried again, ever more slowly, and callers are told after 15 seconds", async () => {
    const { attempts, told } = downPool("DATABASE_UNREACHABLE");
    await vi.advanceTimersByTimeAsync(1_000);
    expect(attempts()).toBeGreaterThanOrEqual(4);
    await vi.advanceTimersByTimeAsync(13_000);
    expect(attempts()).toBeLessThan(25);
    expect(told).toEqual([]);
    await vi.advanceTimersByTimeAsync(3_000);
    expect(told[0]).toBe("DATABASE_UNREACHABLE");
  });

  test("for a reason that does not go away by itself is told at once", async () => {
    const { told } = downPool("DATABASE_ACCESS_DENIED");
    await vi.advanceTimersByTimeAsync(0);
    expect(told).toEqual(["DATABASE_ACCESS_DENIED"]);
  });
});
