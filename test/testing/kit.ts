import { afterEach, vi } from "vitest";
import { testHoldfast, type TestHoldfast, type TestOptions } from "../../src/testing.ts";

/** When the tests begin. */
export const start: number = Date.UTC(2026, 0, 1);
export const dayMs = 86_400_000;

/** Opens kits that are closed after each test. */
export function opening(): (
  functions: Parameters<typeof testHoldfast>[0],
  options?: TestOptions,
) => Promise<TestHoldfast> {
  const opened: TestHoldfast[] = [];
  afterEach(async () => {
    vi.useRealTimers();
    await Promise.all(opened.splice(0).map((each) => each.close()));
  });
  return async (functions, options = {}) => {
    const made = await testHoldfast(functions, { now: start, ...options });
    opened.push(made);
    return made;
  };
}
