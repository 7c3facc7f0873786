import { describe, expect, test } from "vitest";
import { HoldfastError } from "../../../src/model/errors.ts";
import { run, sql } from "../../../src/kernel.ts";
import { dueSchedules } from "../../../src/stores/schedule/fire.ts";
import type { FireSchedule } from "../../../src/stores/schedule/schedule-row.ts";
import type { Backend } from "../backend.ts";
import { until } from "../lease/leased-sessions.ts";
import {
  fired,
  hour,
  inTriggers,
  monday,
  noteInstant,
  side,
  whileRunning,
} from "../trigger/fixture.ts";
import type { InTriggers } from "../trigger/fixture.ts";

export function schedulerSuite(backend: Backend): void {
  const fixture = inTriggers(backend);
  describe("a scheduler", () => {
    firingTests(fixture);
    orderTests(fixture);
    endTests(fixture);
  });
  describe("a schedule that fails", () => {
    failureTests(fixture);
  });
}

function firingTests(fixture: InTriggers): void {
  test(
    "fires each instant once, at that instant, and sleeps in between",
    fixture(async ({ mine, clock }) => {
      await mine.schedules.put("test", "a", { cron: "0 * * * *" });
      await mine.schedules.put("test", "b", { every: "90 min" });
      await mine.schedules.put("unknown", "c", { every: "1 min" });
      await whileRunning([mine], async () => {
        for (let quarter = 0; quarter < 16; quarter += 1) {
          expect(clock.sleepers).toBe(1);
          clock.advance(hour / 4);
          await mine.quiet();
        }
      });
      const at = (hours: number) => monday + hours * hour;
      expect(await fired(mine, "a")).toEqual([at(1), at(2), at(3), at(4)]);
      expect(await fired(mine, "b")).toEqual([at(1.5), at(3)]);
      expect(await fired(mine, "c")).toEqual([]);
      expect(await mine.schedules.get("test", "a")).toMatchObject({
        nextAt: at(5),
        lastAt: at(4),
        firedAt: at(4),
        skipped: null,
      });
    }),
  );

  test(
    "with a second one beside it fires each instant once",
    fixture(async ({ mine, theirs, clock }) => {
      await mine.schedules.put("test", "a", { cron: "0 * * * *" });
      await whileRunning([mine, theirs], async () => {
        for (let hours = 0; hours < 5; hours += 1) {
          clock.advance(hour);
          await mine.quiet();
          await theirs.quiet();
        }
      });
      expect(await fired(mine)).toEqual([1, 2, 3, 4, 5].map((hours) => monday + hours * hour));
    }),
  );

  test(
    "hears of a schedule that another process makes, changes or resumes",
    fixture(async ({ mine, theirs, clock }) => {
      const asleep = () => until(() => clock.sleepers === 1);
      await whileRunning([mine], async () => {
        expect(clock.sleepers).toBe(0);
        await theirs.schedules.put("test", "a", { every: "10h" });
        await asleep();
        clock.advance(hour);
        await theirs.schedules.put("test", "b", { every: "1h" });
        // Whether it was heard shows in what the scheduler does then.
        clock.set(monday + 2 * hour);
        while ((await fired(mine)).length === 0) await mine.quiet();
        await theirs.schedules.pause("test", "b");
      });
      expect(await fired(mine)).toEqual([monday + 2 * hour]);
    }),
  );

  test(
    "does not fire an instant again after the clock was set back, nor lose one",
    fixture(async ({ mine, clock }) => {
      await mine.schedules.put("test", "a", { cron: "0 * * * *" });
      await whileRunning([mine], async () => {
        for (const hours of [1, 2, 0.5, 1.5, 2.5, 3, 1, 3.5, 4]) {
          clock.set(monday + hours * hour);
          await mine.quiet();
        }
      });
      expect(await fired(mine)).toEqual([1, 2, 3, 4].map((hours) => monday + hours * hour));
    }),
  );

  test(
    "does not fire an instant again after the clock was set back between the look and the plan",
    fixture(async ({ mine, clock }) => {
      let back = 0;
      const unsteady = side(mine.database, clock, () => {
        const by = back;
        back = 0;
        if (by > 0) clock.set(clock.now() - by);
      });
      await mine.schedules.put("test", "a", { cron: "0 * * * *" });
      await mine.schedules.put("test", "b", { every: "1h", catchUp: "all" });
      await whileRunning([unsteady], async () => {
        clock.set(monday + 4.5 * hour);
        await unsteady.quiet();
        back = 2.25 * hour;
        clock.set(monday + 5 * hour);
        await unsteady.quiet();
        expect(clock.now()).toBe(monday + 2.75 * hour);
        for (const hours of [3, 4, 5, 6]) {
          clock.set(monday + hours * hour);
          await unsteady.quiet();
        }
      });
      const at = (hours: number) => monday + hours * hour;
      expect(await fired(mine, "a")).toEqual([at(4), at(5), at(6)]);
      expect(await fired(mine, "b")).toEqual([1, 2, 3, 4, 5, 6].map(at));
    }),
  );

  test(
    "does not fire an instant again when the schedule is changed after the clock was set back",
    fixture(async ({ mine, clock }) => {
      await mine.schedules.put("test", "a", { cron: "0 * * * *" });
      await whileRunning([mine], async () => {
        clock.set(monday + 2 * hour);
        await mine.quiet();
        clock.set(monday + hour / 2);
        expect(await mine.schedules.put("test", "a", { cron: "0,30 * * * *" })).toMatchObject({
          nextAt: monday + 2.5 * hour,
        });
      });
    }),
  );
}

function orderTests(fixture: InTriggers): void {
  test(
    "deals with those first that wait longest, whatever their kind",
    fixture(async ({ mine, clock }) => {
      const { schedules, database } = mine;
      for (const [kind, name, from] of [
        ["x", "third", 3],
        ["x", "fifth", 5],
        ["y", "second", 2],
        ["y", "fourth", 4],
        ["z", "first", 1],
      ] as const)
        await schedules.put(kind, name, {
          every: "10h",
          from: monday + from * hour,
        });
      clock.advance(6 * hour);
      const found = await database.read(dueSchedules, {
        kinds: ["x", "y", "z"],
        now: clock.now(),
        limit: 3,
      });
      expect(found.due.map(({ name }) => name.name)).toEqual(["first", "second", "third"]);
      expect(found.earliest).toBe(monday + hour);
    }),
  );
}

function endTests(fixture: InTriggers): void {
  test(
    "stops when it is closed or its signal says so, and leaves nobody asleep",
    fixture(async ({ mine, clock }) => {
      await mine.schedules.put("test", "a", { every: "1h" });
      const end = new AbortController();
      const first = mine.schedules.run({ test: noteInstant }, { signal: end.signal });
      await until(() => clock.sleepers === 1);
      end.abort();
      await first.stopped;
      expect(clock.sleepers).toBe(0);
      const aborted = mine.schedules.run({ test: noteInstant }, { signal: end.signal });
      await aborted.stopped;
      const second = mine.schedules.run({ test: noteInstant });
      await until(() => clock.sleepers === 1);
      await second.close();
      await second.close();
      clock.advance(hour);
      await mine.quiet();
      expect(await fired(mine)).toEqual([]);
    }),
  );

  test(
    "finishes what it is firing when it is closed",
    fixture(async ({ mine, clock }) => {
      await mine.schedules.put("test", "a", { every: "1h" });
      clock.advance(hour);
      const running = mine.schedules.run({ test: noteInstant });
      await running.close();
      const { nextAt } = (await mine.schedules.get("test", "a")) ?? {};
      const instants = await fired(mine);
      expect([instants, nextAt]).toEqual(
        instants.length === 0 ? [[], monday + hour] : [[monday + hour], monday + 2 * hour],
      );
    }),
  );
}

function failureTests(fixture: InTriggers): void {
  test(
    "is told of, changes nothing, is tried again at the same instant, and does not stop the others",
    fixture(async ({ mine, clock }) => {
      const { schedules } = mine;
      await schedules.put("test", "bad", { cron: "0 * * * *" });
      await schedules.put("test", "good", { cron: "0 * * * *" });
      const told: unknown[] = [];
      const busy = new HoldfastError("REVISION_CONFLICT", "Try again.");
      let failure: Error | undefined = busy;
      const running = schedules.run(
        {
          *test(due) {
            yield* noteInstant(due);
            if (due.name === "bad" && failure) throw failure;
          },
        },
        {
          onError: (error, schedule) => told.push([(error as Error).message, schedule?.name]),
          onFired: () => {
            throw new Error("A listener that fails.");
          },
        },
      );
      await mine.quiet();
      clock.advance(hour);
      await mine.quiet();
      expect(await fired(mine, "good")).toEqual([monday + hour]);
      expect(await fired(mine, "bad")).toEqual([]);
      expect(await schedules.get("test", "bad")).toMatchObject({
        nextAt: monday + hour,
        failures: 1,
        failure: "REVISION_CONFLICT",
      });
      failure = new Error("other");
      clock.advance(1_000);
      await mine.quiet();
      expect(await schedules.get("test", "bad")).toMatchObject({
        failures: 2,
        failure: "UNKNOWN",
      });
      failure = busy;
      clock.advance(2_000);
      await mine.quiet();
      failure = undefined;
      clock.advance(3_999);
      await mine.quiet();
      expect(await fired(mine, "bad")).toEqual([]);
      clock.advance(1);
      await mine.quiet();
      expect(await fired(mine, "bad")).toEqual([monday + hour]);
      expect(told).toEqual([
        ["Try again.", "bad"],
        ["other", "bad"],
        ["Try again.", "bad"],
      ]);
      expect(await schedules.get("test", "bad")).toMatchObject({
        nextAt: monday + 2 * hour,
        failures: 0,
        failure: null,
      });
      await running.close();
    }),
  );

  test(
    "because its row makes no sense is told of and passed over",
    fixture(async ({ mine, clock }) => {
      const { schedules, database } = mine;
      for (const name of ["a", "b", "c"]) await schedules.put("test", name, { cron: "0 * * * *" });
      await database.write("damage", function* () {
        yield* run(sql`UPDATE holdfast_schedule SET cadence = 'nonsense' WHERE name = 'a'`);
        yield* run(
          sql`UPDATE holdfast_schedule SET cadence = '{"cron":"x","timeZone":"y"}' WHERE name = 'b'`,
        );
      });
      const told: unknown[] = [];
      await whileRunning(
        [mine],
        async () => {
          clock.advance(hour);
          await mine.quiet();
          clock.advance(hour);
          await mine.quiet();
        },
        {
          onError: (error, schedule) => told.push([(error as HoldfastError).code, schedule?.name]),
        },
      );
      expect(await fired(mine, "c")).toEqual([monday + hour, monday + 2 * hour]);
      expect(await fired(mine)).toHaveLength(2);
      expect(told).toContainEqual(["CORRUPT_ROW", "a"]);
      expect(told).toContainEqual(["TIME_ZONE_INVALID", "b"]);
    }),
  );

  test(
    "because what fires it is no generator function is told of",
    fixture(async ({ mine, clock }) => {
      const { schedules } = mine;
      await schedules.put("test", "a", { cron: "0 * * * *" });
      const told: unknown[] = [];
      const slip = (() => "done") as unknown as FireSchedule;
      const running = schedules.run(
        { test: slip },
        { onError: (error) => told.push((error as HoldfastError).code) },
      );
      clock.advance(hour);
      await mine.quiet();
      await running.close();
      expect(told).toEqual(["OPERATION_INVALID"]);
      expect(await schedules.get("test", "a")).toMatchObject({ failures: 1 });
    }),
  );

  test(
    "because it changes itself is told of, and nothing of that instant is written",
    fixture(async ({ mine, clock }) => {
      const { schedules } = mine;
      await schedules.put("test", "a", { cron: "0 * * * *" });
      const told: unknown[] = [];
      const running = schedules.run(
        {
          *test(due) {
            yield* noteInstant(due);
            yield* schedules.remove.prepare(due.kind, due.name)();
          },
        },
        {
          isolation: "readCommitted",
          onError: (error) => told.push((error as HoldfastError).code),
        },
      );
      await mine.quiet();
      clock.advance(hour);
      await mine.quiet();
      await running.close();
      expect(told).toEqual(["OPERATION_INVALID"]);
      expect(await fired(mine)).toEqual([]);
      expect(await schedules.get("test", "a")).toMatchObject({
        revision: 1,
        nextAt: monday + hour,
        failures: 1,
      });
    }),
  );
}
