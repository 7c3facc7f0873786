import { describe, expect, test } from "vitest";
import { errorCodes, HoldfastError, isOfTheStore, originOf } from "./errors.ts";
import type { ErrorCode } from "./errors.ts";

const isStore = (code: ErrorCode): boolean => isOfTheStore(new HoldfastError(code, "Not now."));

describe("whom a failure tells about", () => {
  test("every code is classified, and those that pass are of the store", () => {
    expect(errorCodes.filter((code) => originOf(code) === undefined)).toEqual([]);
    for (const code of errorCodes)
      if (new HoldfastError(code, "").retryable)
        expect([code, originOf(code)]).toEqual([code, "store"]);
  });

  test.each([
    "LOCK_LOST",
    "VERSION_CONFLICT",
    "SCHEMA_OUTDATED",
    "SCHEMA_NEWER",
    "DATABASE_ACCESS_DENIED",
    "DATABASE_NOT_WRITABLE",
    "DRIVER_MISSING",
    "ATTACHMENT_FOLDER_WRONG",
    "EFFECT_NOT_RECORDED",
    "EFFECT_RESULT_UNSTORABLE",
    "CORRUPT_ROW",
    "DATABASE_CLOSED",
    "OUTCOME_UNKNOWN",
  ] as const)("%s: the store", (code) => {
    expect(isStore(code)).toBe(true);
  });

  test.each([
    "SESSION_NOT_FOUND",
    "PROCESS_CONFLICT",
    "EXECUTION_NOT_FOUND",
    "EFFECT_CONFLICT",
    "OPTION_INVALID",
    "CRON_INVALID",
  ] as const)("%s: what was asked", (code) => {
    expect(isStore(code)).toBe(false);
  });

  test("what is no error of ours is the function's own", () => {
    expect(isOfTheStore(new Error("no"))).toBe(false);
    expect(isOfTheStore(undefined)).toBe(false);
  });
});
