import { describe, expect, test } from "vitest";
import { monotonicMs } from "../../host/timers.ts";
import { HoldfastError } from "../../model/errors.ts";
import type { ErrorCode } from "../../model/errors.ts";
import { operation, plainOperation } from "../../sql/operation.ts";
import { callable } from "../callable.ts";
import { Call } from "./call.ts";
import { pauseBeforeRetry } from "./retries.ts";

const forms = { key: () => "k", *one() {} };
const nothing = operation("nothing", forms);
const nothingOfOurs = plainOperation("nothing", forms);

function pause(
  code: ErrorCode,
  state: {
    readonly attempts?: number;
    readonly waitedMs?: number;
    readonly access?: "read" | "write";
    readonly hasBegun?: boolean;
    readonly isOurs?: boolean;
  },
): number | undefined {
  const { attempts = 0, waitedMs = 0, access = "write", hasBegun } = state;
  const body = callable(state.isOurs ? nothingOfOurs : nothing, undefined);
  const noop = (): void => undefined;
  const call = new Call(body, access, undefined, undefined, noop, noop);
  call.attempts = attempts;
  call.firstTakenMs = monotonicMs() - waitedMs;
  return pauseBeforeRetry(call, new HoldfastError(code, "why"), hasBegun);
}

describe("running a call again", () => {
  test("is done for 15 seconds after conflicts, with pauses that stay short", () => {
    expect(pause("TRANSACTION_CONFLICT", { attempts: 0 })).toBeLessThan(2);
    const late = pause("TRANSACTION_CONFLICT", {
      attempts: 1_000,
      waitedMs: 14_000,
    });
    expect(late).toBeGreaterThanOrEqual(32);
    expect(late).toBeLessThanOrEqual(64);
    expect(pause("TRANSACTION_CONFLICT", { waitedMs: 15_001 })).toBeUndefined();
  });

  test("is done for 15 seconds while a lock is held", () => {
    const state = { attempts: 20, waitedMs: 14_000 };
    const ours = pause("DATABASE_BUSY", { ...state, isOurs: true });
    expect(ours).toBeGreaterThanOrEqual(500);
    expect(ours).toBeLessThanOrEqual(1_000);
    // Users' transactions have waited less.
    const users = pause("DATABASE_BUSY", state);
    expect(users).toBeGreaterThanOrEqual(100);
    expect(users).toBeLessThanOrEqual(200);
    for (const isOurs of [true, false])
      expect(pause("DATABASE_BUSY", { waitedMs: 15_001, isOurs })).toBeUndefined();
  });

  test("after a lost connection is done only for reads", () => {
    expect(pause("CONNECTION_LOST", { access: "read" })).toBe(0);
    expect(pause("CONNECTION_LOST", { access: "read", attempts: 3 })).toBeUndefined();
    expect(pause("CONNECTION_LOST", {})).toBeUndefined();
  });

  test("of an attempt that had not begun is done for writes too, ever more slowly, and ends", () => {
    expect(pause("CONNECTION_LOST", { hasBegun: false })).toBeLessThan(2);
    expect(pause("CONNECTION_LOST", { hasBegun: false, attempts: 14 })).toBeGreaterThanOrEqual(500);
    expect(pause("CONNECTION_LOST", { hasBegun: false, attempts: 15 })).toBeUndefined();
    expect(pause("STATEMENT_FAILED", { hasBegun: false })).toBeUndefined();
  });

  test("is not done for anything else", () => {
    expect(pause("CONSTRAINT_VIOLATED", {})).toBeUndefined();
  });
});
