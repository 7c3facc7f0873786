import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { HoldfastError } from "../../model/errors.ts";
import type { ErrorCode } from "../../model/errors.ts";
import type { Connection } from "./connection.ts";
import { Pool } from "./pool.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A pool whose server never answers, with constant demand for a connection. */
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
  test("is retried ever more slowly, and calls fail after 15 seconds", async () => {
    const { attempts, told } = downPool("DATABASE_UNREACHABLE");
    await vi.advanceTimersByTimeAsync(1_000);
    expect(attempts()).toBeGreaterThanOrEqual(4);
    await vi.advanceTimersByTimeAsync(13_000);
    expect(attempts()).toBeLessThan(25);
    expect(told).toEqual([]);
    await vi.advanceTimersByTimeAsync(3_000);
    expect(told[0]).toBe("DATABASE_UNREACHABLE");
  });

  test("for a lasting reason is reported at once", async () => {
    const { told } = downPool("DATABASE_ACCESS_DENIED");
    await vi.advanceTimersByTimeAsync(0);
    expect(told).toEqual(["DATABASE_ACCESS_DENIED"]);
  });
});

describe("an outage that is over", () => {
  test("does not count when the next one comes, though no call was made in between", async () => {
    const told: string[] = [];
    const pool = new Pool(
      () => Promise.reject(new HoldfastError("DATABASE_UNREACHABLE", "no")),
      4,
      { onRoom: () => undefined, onDown: ({ code }) => told.push(code) },
    );
    pool.grow(1);
    await vi.advanceTimersByTimeAsync(3_600_000);
    pool.grow(1);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(told).toEqual([]);
  });
});

describe("closing while connections are being made", () => {
  test("calls off those that are on their way", async () => {
    let calledOff = 0;
    const pool = new Pool(
      (signal) =>
        new Promise((_, reject) =>
          signal.addEventListener("abort", () => {
            calledOff += 1;
            reject(new HoldfastError("DATABASE_UNREACHABLE", "called off"));
          }),
        ),
      4,
      { onRoom: () => undefined, onDown: () => undefined },
    );
    pool.grow(3);
    await pool.close();
    expect(calledOff).toBe(3);
  });

  test("waits for one that arrives all the same, and ends it", async () => {
    let arrive: (connection: Connection) => void = () => undefined;
    let ended = false;
    const pool = new Pool(() => new Promise<Connection>((resolve) => (arrive = resolve)), 4, {
      onRoom: () => undefined,
      onDown: () => undefined,
    });
    pool.grow(1);
    const closing = pool.close();
    arrive({
      isLost: false,
      end: async () => {
        await Promise.resolve();
        ended = true;
      },
    } as unknown as Connection);
    await closing;
    expect(ended).toBe(true);
  });
});
