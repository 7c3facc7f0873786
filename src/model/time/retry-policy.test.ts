import { describe, expect, test } from "vitest";
import { jittered, retryPauseMs, retryPolicyFor } from "./retry-policy.ts";

describe("what a role gets unless told", () => {
  test.each([
    ["workflow", null],
    ["activity", 5],
    ["external", 5],
  ] as const)("a %s is retried %s times", (role, maxRetries) => {
    expect(retryPolicyFor(role)).toEqual({
      maxRetries,
      backoffMs: 100,
      backoffMaxMs: 60_000,
    });
  });
});

describe("the pause after a failure", () => {
  const table: [number | null, number, number, number, number | undefined][] = [
    // maxRetries, backoffMs, backoffMaxMs, failure, pause
    [3, 100, 60_000, 1, 100],
    [3, 100, 60_000, 2, 200],
    [3, 100, 60_000, 3, 400],
    [3, 100, 60_000, 4, undefined],
    [0, 100, 60_000, 1, undefined],
    [null, 100, 60_000, 10, 51_200],
    [null, 100, 60_000, 11, 60_000],
    [null, 100, 60_000, 1_000_000, 60_000],
    [null, 0, 60_000, 7, 0],
    [null, 100, 50, 1, 50],
    [null, 1, 2 ** 53 - 1, 53, 4_503_599_627_370_496],
    [null, 1, 2 ** 53 - 1, 99, 4_503_599_627_370_496],
  ];
  test.each(table)(
    "with %s retries, %i ms up to %i ms, of failure %i is %s",
    (maxRetries, backoffMs, backoffMaxMs, failure, pause) => {
      expect(retryPauseMs({ maxRetries, backoffMs, backoffMaxMs }, failure)).toBe(pause);
    },
  );
});

describe("a pause that is spread", () => {
  test.each([
    [100, 0, 100],
    [100, 0.5, 88],
    [100, 0.999, 76],
    [1, 0.999, 1],
    [0, 0.5, 0],
  ])("of %i ms by %d is %i ms", (pauseMs, random, spread) => {
    expect(jittered(pauseMs, random)).toBe(spread);
  });
});
