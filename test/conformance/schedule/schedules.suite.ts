import { describe, expect, test } from "vitest";
import { run, sql } from "../../../src/kernel.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import {
  hour,
  inTriggers,
  lateSide,
  monday,
  noteInstant,
  storedSchedules,
} from "../trigger/fixture.ts";
import type { InTriggers } from "../trigger/fixture.ts";

export function schedulesSuite(backend: Backend): void {
  const fixture = inTriggers(backend);
  describe("putting a schedule", () => {
    refusalTests(fixture);
    putTests(fixture);
    lateTests(fixture);
  });
}

function refusalTests(fixture: InTriggers): void {
  test(
    "with terms or a name that make no sense is refused and leaves nothing",
    fixture(async ({ mine }) => {
      for (const [code, kind, name, draft] of [
        ["CRON_INVALID", "test", "a", { cron: "61 * * * *" }],
        ["TIME_ZONE_INVALID", "test", "a", { cron: "0 * * * *", timeZone: "Mars/Base" }],
        ["INTERVAL_INVALID", "test", "a", { every: 10 }],
        ["DURATION_INVALID", "test", "a", { every: "soon" }],
        ["TIME_OUT_OF_RANGE", "test", "a", { every: "1h", from: null }],
        ["OPTION_INVALID", "test", "a", { every: "1h", catchUp: "some" }],
        ["OPTION_INVALID", "test", "a", { every: "1h", catchUpMax: 0 }],
        ["OPTION_INVALID", "test", "a", { every: "1h", catchUpMax: 1_001 }],
        ["OPTION_INVALID", "test", "a", { cron: "0 * * * *", timezone: "Europe/Berlin" }],
        ["OPTION_INVALID", "test", "a", {}],
        ["OPTION_INVALID", "test", "a", null],
        ["NAME_INVALID", "", "a", { every: "1h" }],
        ["NAME_INVALID", "test", "a\0", { every: "1h" }],
        ["NAME_INVALID", "test", undefined, { every: "1h" }],
      ] as const)
        expect(
          await rejection(mine.schedules.put(kind, name as string, draft as never)),
        ).toMatchObject({ code, retryable: false });
      expect(await storedSchedules(mine)).toEqual([]);
      const asynchronous = async () => Promise.reject(new Error("Not now."));
      for (const fire of [5, asynchronous])
        expect(() => mine.schedules.run({ test: fire as never })).toThrow(
          expect.objectContaining({ code: "OPTION_INVALID" }),
        );
    }),
  );

  test(
    "of a subscription is refused, and so is all that would change or fire it",
    fixture(async ({ mine, clock }) => {
      const { schedules, triggers } = mine;
      await triggers.subscribe({
        key: "a",
        source: { cron: "0 * * * *" },
        target: { kind: "report" },
      });
      const before = await storedSchedules(mine);
      for (const call of [
        () => schedules.put("trigger", "0/a", { every: "1h" }),
        () => schedules.put("trigger", "b", { every: "1h" }),
        () => schedules.pause("trigger", "0/a"),
        () => schedules.remove("trigger", "0/a"),
      ])
        expect(await rejection(call())).toMatchObject({
          code: "NAME_INVALID",
          details: { kind: "trigger" },
        });
      expect(() => schedules.run({ trigger: noteInstant })).toThrow(
        expect.objectContaining({ code: "NAME_INVALID" }),
      );
      expect(await storedSchedules(mine)).toEqual(before);
      expect(await schedules.get("trigger", "0/a")).toMatchObject({
        nextAt: monday + hour,
      });
      expect((await schedules.list("trigger")).items).toHaveLength(1);
      expect(clock.sleepers).toBe(0);
    }),
  );
}

function lateTests(fixture: InTriggers): void {
  test(
    "counts from when its turn has come, however long it waited for that",
    fixture(async ({ mine, clock }) => {
      const at = (hours: number) => monday + hours * hour;
      const { schedules } = lateSide(mine, clock, 2.5 * hour);
      const cron = { cron: "0 * * * *" };
      expect(await schedules.put("test", "a", cron)).toMatchObject({
        nextAt: at(3),
      });
      expect(await schedules.pause("test", "a")).toBe(true);
      const skipped = { from: at(3), before: at(5) + 1 };
      expect(await schedules.get("test", "a")).toMatchObject({ skipped });
      expect(await schedules.put("test", "a", cron)).toMatchObject({
        nextAt: at(8),
      });
      const half = { cron: "30 * * * *" };
      expect(await schedules.put("test", "a", half)).toMatchObject({
        nextAt: at(10.5),
      });
      expect(await schedules.get("test", "a")).toMatchObject({
        skipped: { from: at(8), before: at(10) + 1 },
        changedAt: at(10),
      });
    }),
  );

  test(
    "of a subscription does so too, when it is made, disabled, enabled and revised",
    fixture(async ({ mine, clock }) => {
      const at = (hours: number) => monday + hours * hour;
      const { triggers, schedules } = lateSide(mine, clock, 2.5 * hour);
      const target = { kind: "report" };
      const hourly = { source: { cron: "0 * * * *" }, target };
      const next = async () => (await schedules.get("trigger", "0/a"))?.nextAt;
      await triggers.subscribe({ key: "a", ...hourly });
      expect(await next()).toBe(at(3));
      await triggers.disable("a");
      expect(await schedules.get("trigger", "0/a")).toMatchObject({
        nextAt: null,
        skipped: { from: at(3), before: at(5) + 1 },
      });
      await triggers.enable("a");
      expect(await next()).toBe(at(8));
      await triggers.revise("a", { target, source: { cron: "30 * * * *" } });
      expect(await next()).toBe(at(10.5));
      expect(await triggers.get("a")).toMatchObject({
        createdAt: at(2.5),
        changedAt: at(10),
      });
    }),
  );
}

function putTests(fixture: InTriggers): void {
  test(
    "twice is putting it once; other terms begin anew after now",
    fixture(async ({ mine: { schedules }, clock }) => {
      const cron = { cron: "0 9 * * *" };
      expect(await schedules.put("test", "a", cron)).toEqual({
        isChanged: true,
        revision: 1,
        nextAt: monday + 9 * hour,
      });
      clock.set(monday + 8 * hour);
      expect(await schedules.put("test", "a", cron)).toEqual({
        isChanged: false,
        revision: 1,
        nextAt: monday + 9 * hour,
      });
      expect(await schedules.put("test", "a", { ...cron, timeZone: "Asia/Tokyo" })).toEqual({
        isChanged: true,
        revision: 2,
        nextAt: monday + 24 * hour,
      });
      expect(await schedules.get("test", "a")).toEqual({
        kind: "test",
        name: "a",
        cadence: {
          kind: "cron",
          expression: "0 9 * * *",
          timeZone: "Asia/Tokyo",
        },
        catchUp: "latest",
        catchUpMax: 100,
        revision: 2,
        nextAt: monday + 24 * hour,
        lastAt: null,
        firedAt: null,
        skipped: null,
        failures: 0,
        failure: null,
        changedAt: monday + 8 * hour,
      });
    }),
  );

  test(
    "an interval without a beginning goes on from the one it has",
    fixture(async ({ mine: { schedules }, clock }) => {
      await schedules.put("test", "a", { every: "1h" });
      clock.advance(1_000);
      expect(await schedules.put("test", "a", { every: "1h" })).toMatchObject({
        isChanged: false,
        nextAt: monday + hour,
      });
      expect(await schedules.pause("test", "a")).toBe(true);
      expect(await schedules.pause("test", "a")).toBe(false);
      clock.advance(3 * hour);
      expect(await schedules.put("test", "a", { every: "1h" })).toMatchObject({
        isChanged: true,
        revision: 3,
        nextAt: monday + 4 * hour,
      });
      expect(await schedules.put("test", "a", { every: "1h", from: monday })).toMatchObject({
        isChanged: true,
        nextAt: monday + 4 * hour,
      });
    }),
  );

  test(
    "again, or pausing it, names the instants that were due and had not fired",
    fixture(async ({ mine: { schedules }, clock }) => {
      const skipped = async (name: string): Promise<unknown> =>
        (await schedules.get("test", name))?.skipped;
      for (const name of ["put", "paused", "early"])
        await schedules.put("test", name, { every: "1h" });
      await schedules.put("test", "early", { every: "3h" });
      expect(await skipped("early")).toBeNull();
      clock.advance(2.5 * hour);
      await schedules.put("test", "put", { every: "2h" });
      await schedules.pause("test", "paused");
      const due = { from: monday + hour, before: monday + 2.5 * hour + 1 };
      expect(await skipped("put")).toEqual(due);
      expect(await skipped("paused")).toEqual(due);
      // What passes while it is paused was never due.
      clock.advance(hour);
      await schedules.put("test", "paused", { every: "1h" });
      await schedules.put("test", "put", { every: "3h" });
      expect(await skipped("paused")).toEqual(due);
      expect(await skipped("put")).toEqual(due);
    }),
  );

  test(
    "lists those of one kind by name, in pages; what cannot be read is named",
    fixture(async ({ mine }) => {
      const { schedules, database } = mine;
      for (const name of ["c", "a", "b"]) await schedules.put("test", name, { every: "1h" });
      await schedules.put("other", "d", { every: "1h" });
      const first = await schedules.list("test", { limit: 2 });
      expect(first.items.map(({ name }) => name)).toEqual(["a", "b"]);
      const second = await schedules.list("test", { after: first.next ?? "" });
      expect(second.items.map(({ name }) => name)).toEqual(["c"]);
      expect(second.next).toBeUndefined();
      await database.write("damage", () =>
        run(sql`UPDATE holdfast_schedule SET cadence = '{}' WHERE name = 'b'`),
      );
      const damaged = await schedules.list("test");
      expect(damaged.items.map(({ name }) => name)).toEqual(["a", "c"]);
      expect(damaged.damaged).toMatchObject([{ table: "holdfast_schedule" }]);
      expect(await rejection(schedules.get("test", "b"))).toMatchObject({
        code: "CORRUPT_ROW",
      });
      expect(await schedules.remove("test", "b")).toBe(true);
      expect(await schedules.remove("test", "b")).toBe(false);
      expect(await schedules.get("test", "b")).toBeUndefined();
    }),
  );

  test(
    "tells beforehand when it would fire",
    fixture(async ({ mine: { schedules } }) => {
      expect(schedules.upcoming({ cron: "0 9 * * 1" }, { limit: 2 })).toEqual([
        monday + 9 * hour,
        monday + 177 * hour,
      ]);
      expect(schedules.upcoming({ every: "1h" }, { after: monday + 5 * hour })).toHaveLength(10);
      await Promise.resolve();
    }),
  );
}
