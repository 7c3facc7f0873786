import { describe, expect, test } from "vitest";
import { intervalInstants } from "./schedule-cadence.ts";
import type { Search } from "./schedule-cadence.ts";
import { backoffMs, planDue } from "./schedule-plan.ts";
import type { CatchUp, SchedulePlan } from "./schedule-plan.ts";

/** Every 10 seconds from 100 s on. */
const instants = intervalInstants(10_000, 100_000);

function plan(
  now: number,
  catchUp: CatchUp,
  { nextAt = 100_000, catchUpMax = 3 } = {},
): SchedulePlan {
  return found(planDue(instants, { nextAt, catchUp, catchUpMax }, now));
}

function found<T>(search: Search<T>): T {
  const step = search.next();
  return step.done === true ? step.value : found(search);
}

describe("a schedule that is due", () => {
  test.each<CatchUp>(["skip", "latest", "all"])(
    "fires the one instant that has come, whatever the policy (%s)",
    (catchUp) => {
      expect(plan(100_000, catchUp)).toEqual({
        fire: [100_000],
        skipped: undefined,
        next: 110_000,
      });
      expect(plan(109_999, catchUp).fire).toEqual([100_000]);
    },
  );

  test("fires only the last of several, and names the others", () => {
    for (const catchUp of ["skip", "latest"] as const)
      expect(plan(135_000, catchUp)).toEqual({
        fire: [130_000],
        skipped: { from: 100_000, before: 130_000 },
        next: 140_000,
      });
  });

  test("fires all of them with `all`, up to a bound, the newest ones", () => {
    expect(plan(125_000, "all")).toEqual({
      fire: [100_000, 110_000, 120_000],
      skipped: undefined,
      next: 130_000,
    });
    expect(plan(145_000, "all")).toEqual({
      fire: [120_000, 130_000, 140_000],
      skipped: { from: 100_000, before: 120_000 },
      next: 150_000,
    });
  });

  test("fires with `skip` what is a minute late, and nothing later", () => {
    const daily = intervalInstants(86_400_000, 100_000);
    const late = (now: number) =>
      found(planDue(daily, { nextAt: 100_000, catchUp: "skip", catchUpMax: 1 }, now));
    expect(late(160_000).fire).toEqual([100_000]);
    expect(late(160_001)).toEqual({
      fire: [],
      skipped: { from: 100_000, before: 86_500_000 },
      next: 86_500_000,
    });
  });

  test("keeps an instant that its cadence no longer has", () => {
    expect(plan(107_000, "latest", { nextAt: 105_000 })).toEqual({
      fire: [105_000],
      skipped: undefined,
      next: 110_000,
    });
    expect(plan(111_000, "all", { nextAt: 105_000 }).fire).toEqual([105_000, 110_000]);
  });

  test.each<CatchUp>(["skip", "latest", "all"])(
    "fires its instant, and none before it, by a clock that was set back (%s)",
    (catchUp) => {
      expect(plan(103_000, catchUp, { nextAt: 130_000 })).toEqual({
        fire: [130_000],
        skipped: undefined,
        next: 140_000,
      });
    },
  );

  test("that fails waits a second, then twice as long each time, up to a minute", () => {
    expect([0, 1, 2, 5, 6, 7, 1_000_000].map(backoffMs)).toEqual([
      1_000, 2_000, 4_000, 32_000, 60_000, 60_000, 60_000,
    ]);
  });
});
