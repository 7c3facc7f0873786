import { describe, expect, test } from "vitest";
import type { Backend } from "../backend.ts";
import { fired, hour, inTriggers, monday, side, whileRunning } from "../trigger/fixture.ts";
import type { InTriggers } from "../trigger/fixture.ts";

export function scheduleCatchUpSuite(backend: Backend): void {
  const fixture = inTriggers(backend);
  describe("after a time without anybody", () => {
    catchUpTests(fixture);
    turnTests(fixture);
  });
}

function catchUpTests(fixture: InTriggers): void {
  test.each([
    ["latest", [6], { from: 1, before: 6 }],
    ["skip", [], { from: 1, before: 7 }],
    ["all", [4, 5, 6], { from: 1, before: 4 }],
  ] as const)(
    "`%s` fires hours %j and tells which it passed over",
    (catchUp, hours, { from, before }) =>
      fixture(async ({ mine, clock }) => {
        await mine.schedules.put("test", "a", {
          cron: "0 * * * *",
          catchUp,
          catchUpMax: 3,
        });
        clock.advance(6.5 * hour);
        const told: unknown[] = [];
        await whileRunning([mine], () => mine.quiet(), {
          onSkipped: ({ name }, skipped) => told.push(name, skipped),
        });
        const skipped = {
          from: monday + from * hour,
          before: monday + before * hour,
        };
        expect(told).toEqual(["a", skipped]);
        expect(await fired(mine)).toEqual(hours.map((each) => monday + each * hour));
        expect(await mine.schedules.get("test", "a")).toMatchObject({
          nextAt: monday + 7 * hour,
          skipped,
        });
      })(),
  );

  test(
    "`all` goes through a long backlog in order, beside others",
    fixture(async ({ mine, theirs, clock }) => {
      await mine.schedules.put("test", "a", {
        every: "1 min",
        catchUp: "all",
        catchUpMax: 1_000,
      });
      await mine.schedules.put("test", "b", { every: "30 min" });
      clock.advance(40 * 60_000);
      const order: number[] = [];
      await whileRunning(
        [mine, theirs],
        async () => {
          await mine.quiet();
          await theirs.quiet();
        },
        { onFired: ({ name, instant }) => name === "a" && order.push(instant) },
      );
      const minutes = Array.from({ length: 40 }, (_, index) => monday + (index + 1) * 60_000);
      expect(await fired(mine, "a")).toEqual(minutes);
      expect(order.toSorted((a, b) => a - b)).toEqual(minutes);
      expect(await fired(mine, "b")).toEqual([monday + hour / 2]);
    }),
  );
}

function turnTests(fixture: InTriggers): void {
  test(
    "`all` fires the newest, also when much time passes while it catches up",
    fixture(async ({ mine, clock }) => {
      await mine.schedules.put("test", "a", {
        cron: "* * * * *",
        catchUp: "all",
        catchUpMax: 40,
      });
      const minutes = (first: number, count: number) =>
        Array.from({ length: count }, (_, index) => monday + (first + index) * 60_000);
      clock.advance(100 * 60_000);
      const order: number[] = [];
      await whileRunning([mine], () => mine.quiet(), {
        onFired: ({ instant }) => {
          order.push(instant);
          // The first round ends here.
          if (order.length === 32) clock.advance(900 * 60_000);
        },
      });
      expect(order).toEqual([...minutes(61, 32), ...minutes(961, 40)]);
      expect(await mine.schedules.get("test", "a")).toMatchObject({
        skipped: { from: monday + 93 * 60_000, before: monday + 961 * 60_000 },
      });
    }),
  );

  test(
    "`all` of a cron expression is planned once, and lets others have their turn meanwhile",
    fixture(async ({ mine, clock }) => {
      let pauses = 0;
      let pausesBefore = 0;
      const database = new Proxy(mine.database, {
        get(target, name) {
          if (name === "pause") pauses += 1;
          return Reflect.get(target, name, target) as unknown;
        },
      });
      const other = side(database, clock);
      await mine.schedules.put("test", "a", {
        cron: "* * * * *",
        catchUp: "all",
        catchUpMax: 200,
      });
      clock.advance(30 * 24 * hour);
      const order: number[] = [];
      await whileRunning([other], () => other.quiet(), {
        onFired: ({ instant }) => {
          pausesBefore ||= pauses;
          order.push(instant);
        },
      });
      const last = monday + 30 * 24 * hour;
      expect(order).toEqual(
        Array.from({ length: 200 }, (_, index) => last - (199 - index) * 60_000),
      );
      // It looks for 200 instants forwards and, since there are more, for 200 backwards.
      expect(pausesBefore).toBeGreaterThanOrEqual(400 / 16);
      // Seven rounds of 32 follow, and what they find is not looked for again.
      expect(pauses).toBeLessThanOrEqual(400 / 16 + 10);
    }),
  );
}
