import { describe, expect, test } from "vitest";
import { manualClock, type ManualClock } from "../../../src/model/time/clock.ts";
import type { RunSchedule } from "../../../src/index.ts";
import { activity, signal, workflow } from "../../../src/runtime/definition/definitions.ts";
import type { Holdfast } from "../../../src/runtime/client/holdfast.ts";
import type { PayloadCodec } from "../../../src/model/values/payload-codec.ts";
import type { Database } from "../../../src/sql/database.ts";
import { rows, run as execute } from "../../../src/sql/operation.ts";
import { sql } from "../../../src/sql/statement.ts";
import { schedule, type ScheduleOptions } from "../../../src/runtime/schedules/schedule.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { onRuntime } from "./fixture.ts";
import { gate, until, warningsIn } from "./waiting.ts";

/** Wednesday, 18 November 2026, 00:00 UTC. */
const midnight = Date.UTC(2026, 10, 18);
const hour = 3_600_000;
const day = 24 * hour;

const hourly: ScheduleOptions = { cron: "0 * * * *" };
const skipping: Pick<ScheduleOptions, "overlap"> = { overlap: "skip" };
/** Longer than any test lets pass: what is held stays so, however the clock is set. */
const forLong = { lease: "90 days" } as const;
const go = signal("go");
/** Runs until it is sent a signal. */
const patient = workflow("patient", async (ctx) => {
  await ctx.receive(go);
});

export function runtimeSchedulesSuite(backend: Backend): void {
  describe("a schedule", () => {
    startsRuns(backend);
  });
  describe("runs of a schedule that would overlap", () => {
    overlapping(backend);
  });
  describe("the page of schedules", () => {
    pageOfSchedules(backend);
  });
  describe("a schedule in the database", () => {
    givenAgain(backend);
  });
}

function startsRuns(backend: Backend): void {
  test(
    "starts one run for each instant, called after it, with the input it was given",
    onRuntime(backend, async ({ another }) => {
      const clock = manualClock(midnight);
      const holdfast = await another({ clock });
      const inputs: unknown[] = [];
      const report = workflow("report", async (_, input: { since: Date }) => {
        inputs.push(input);
        return input.since.getTime();
      });
      const since = new Date(0);
      await holdfast.work(
        [report, schedule("reports/nightly", { cron: "0 9 * * *" }, report, { since })],
        forLong,
      );
      for (const days of [0, 1, 2]) {
        await passTo(holdfast, clock, midnight + days * day + 9 * hour);
        await allEnded(holdfast, "reports/nightly");
      }
      expect(inputs).toEqual([{ since }, { since }, { since }]);
      expect(await idsOf(holdfast, "reports/nightly")).toEqual([
        "reports/nightly@2026-11-18T09:00:00Z",
        "reports/nightly@2026-11-19T09:00:00Z",
        "reports/nightly@2026-11-20T09:00:00Z",
      ]);
      const run = holdfast.get(report, "reports/nightly@2026-11-20T09:00:00Z");
      expect(await run.result()).toBe(0);
    }),
  );

  test(
    "starts activities too, and functions that only another process runs",
    onRuntime(backend, async ({ another }) => {
      const clock = manualClock(midnight);
      const elsewhere = await another({ clock });
      const holdfast = await another({ clock });
      const beat = activity("beat", async () => "beaten");
      await holdfast.work(
        [schedule("heart", { every: "1500 ms", overlap: "allow" }, beat)],
        forLong,
      );
      await passTo(holdfast, clock, midnight + 1_500);
      await passTo(holdfast, clock, midnight + 3_000);
      await elsewhere.work([beat], forLong);
      expect(await idsOf(holdfast, "heart")).toEqual([
        "heart@2026-11-18T00:00:01_500Z",
        "heart@2026-11-18T00:00:03Z",
      ]);
      const run = elsewhere.get(beat, "heart@2026-11-18T00:00:01_500Z");
      expect(await run.result()).toBe("beaten");
    }),
  );

  test(
    "starts each instant of a month once, whoever is there: two workers, a change of clocks and three days without any",
    onRuntime(backend, async ({ another, said }) => {
      const from = Date.UTC(2026, 2, 14, 12);
      const begun: string[] = [];
      const report = workflow("report", async (ctx) => {
        await ctx.step("begin", () => void begun.push(ctx.id));
      });
      // As a program writes it: every start of a process makes it anew.
      const nightly = () =>
        schedule("nightly", { cron: "30 2 * * *", timeZone: "Europe/Berlin" }, report);
      const clock = manualClock(from);
      const start = async (): Promise<Holdfast> => {
        const holdfast = await another({ clock });
        await holdfast.work([report, nightly()], forLong);
        return holdfast;
      };
      const [first, second] = [await start(), await start()];
      const passDays = async (holdfast: Holdfast, last: number): Promise<void> => {
        while (clock.now() < last) {
          await passTo(holdfast, clock, clock.now() + day);
          await allEnded(holdfast, "nightly");
        }
      };
      await passDays(first, Date.UTC(2026, 3, 1, 12));
      await first.close();
      await second.close();
      clock.set(Date.UTC(2026, 3, 5, 12));
      const third = await start();
      await passTo(third, clock, clock.now());
      await allEnded(third, "nightly");
      await passDays(third, Date.UTC(2026, 3, 14, 12));
      const expected = [
        // 02:30 is 01:30 UTC until clocks go forward on 29 March, when it does not exist.
        ...datesOf("2026-03", 15, 28).map((text) => `nightly@${text}T01:30:00Z`),
        "nightly@2026-03-29T01:00:00Z",
        ...datesOf("2026-03", 30, 31).map((text) => `nightly@${text}T00:30:00Z`),
        "nightly@2026-04-01T00:30:00Z",
        // Of the nights of 2 to 5 April, when nobody was there, the last is made up for.
        ...datesOf("2026-04", 5, 14).map((text) => `nightly@${text}T00:30:00Z`),
      ];
      expect(begun.toSorted()).toEqual(expected);
      expect(await idsOf(third, "nightly")).toEqual(expected);
      expect(warningsIn(said)).toEqual([]);
      expect(said.filter(({ message }) => message.includes("skips its instants"))).toMatchObject([
        {
          level: "info",
          details: {
            schedule: "nightly",
            from: Date.UTC(2026, 3, 2, 0, 30),
            before: Date.UTC(2026, 3, 5, 0, 30),
          },
        },
      ]);
    }),
  );

  test(
    "passes over an instant whose id another run has, and goes on with the next",
    onRuntime(backend, async ({ another, said }) => {
      const clock = manualClock(midnight);
      const holdfast = await another({ clock });
      const other = workflow("other", async () => 1);
      const report = workflow("report", async () => 2);
      await holdfast.start(other, undefined, {
        id: "hourly@2026-11-18T01:00:00Z",
      });
      await holdfast.work([other, report, schedule("hourly", hourly, report)], forLong);
      await passTo(holdfast, clock, midnight + hour);
      await passTo(holdfast, clock, midnight + 2 * hour);
      await allEnded(holdfast, "hourly");
      expect(await idsOf(holdfast, "hourly")).toEqual(["hourly@2026-11-18T02:00:00Z"]);
      expect(await shown(holdfast)).toMatchObject({
        skipped: { count: 1, instant: midnight + hour, reason: "taken" },
      });
      await until(() => warningsIn(said).length > 0);
      expect(warningsIn(said)).toMatchObject([
        { details: { schedule: "hourly", reason: "taken" } },
      ]);
    }),
  );
}

function overlapping(backend: Backend): void {
  test(
    "are skipped by default, which is told and shown",
    onRuntime(backend, async ({ another, said }) => {
      const clock = manualClock(midnight);
      const holdfast = await another({ clock });
      await holdfast.work([patient, schedule("hourly", hourly, patient)], forLong);
      for (const hours of [1, 2, 3]) await passTo(holdfast, clock, midnight + hours * hour);
      expect(await idsOf(holdfast, "hourly")).toEqual(["hourly@2026-11-18T01:00:00Z"]);
      expect(await shown(holdfast)).toMatchObject({
        lastAt: midnight + 3 * hour,
        lastRun: "hourly@2026-11-18T01:00:00Z",
        skipped: {
          count: 2,
          instant: midnight + 3 * hour,
          reason: "unfinished",
        },
      });
      const skips = () => said.filter(({ details }) => details["kind"] === "skipped");
      // They are told of once the worker knows that they are recorded.
      await until(() => skips().length >= 2);
      expect(skips()).toMatchObject([
        { level: "info", details: { instant: midnight + 2 * hour } },
        { level: "info", details: { instant: midnight + 3 * hour } },
      ]);
      await ended(holdfast, "hourly@2026-11-18T01:00:00Z");
      await passTo(holdfast, clock, midnight + 4 * hour);
      expect(await idsOf(holdfast, "hourly")).toEqual([
        "hourly@2026-11-18T01:00:00Z",
        "hourly@2026-11-18T04:00:00Z",
      ]);
    }),
  );

  test(
    "are started side by side when that is allowed",
    onRuntime(backend, async ({ another }) => {
      const clock = manualClock(midnight);
      const holdfast = await another({ clock });
      await holdfast.work(
        [patient, schedule("hourly", { ...hourly, overlap: "allow" }, patient)],
        forLong,
      );
      for (const hours of [1, 2, 3]) await passTo(holdfast, clock, midnight + hours * hour);
      expect(await idsOf(holdfast, "hourly")).toEqual([
        "hourly@2026-11-18T01:00:00Z",
        "hourly@2026-11-18T02:00:00Z",
        "hourly@2026-11-18T03:00:00Z",
      ]);
      expect(await shown(holdfast)).toMatchObject({
        waiting: 0,
        skipped: null,
      });
    }),
  );

  test(
    "are started in order, each when the one before has ended, with queue",
    onRuntime(backend, async ({ another }) => {
      const clock = manualClock(midnight);
      const workers = [await another({ clock }), await another({ clock })];
      const [holdfast] = workers as [Holdfast, Holdfast];
      for (const worker of workers)
        await worker.work(
          [patient, schedule("hourly", { ...hourly, overlap: "queue" }, patient)],
          forLong,
        );
      for (const hours of [1, 2, 3]) await passTo(holdfast, clock, midnight + hours * hour);
      expect(await idsOf(holdfast, "hourly")).toEqual(["hourly@2026-11-18T01:00:00Z"]);
      expect(await shown(holdfast)).toMatchObject({
        waiting: 2,
        skipped: null,
      });
      await ended(holdfast, "hourly@2026-11-18T01:00:00Z");
      await until(async () => (await shown(holdfast)).waiting === 1);
      expect(await idsOf(holdfast, "hourly")).toEqual([
        "hourly@2026-11-18T01:00:00Z",
        "hourly@2026-11-18T02:00:00Z",
      ]);
      // Somebody who waits is before somebody who comes.
      await passTo(holdfast, clock, midnight + 4 * hour);
      await ended(holdfast, "hourly@2026-11-18T02:00:00Z");
      await ended(holdfast, "hourly@2026-11-18T03:00:00Z");
      await ended(holdfast, "hourly@2026-11-18T04:00:00Z");
      expect(await shown(holdfast)).toMatchObject({
        waiting: 0,
        lastRun: "hourly@2026-11-18T04:00:00Z",
      });
    }),
  );

  test.each([
    ["wait by default when all instants are made up for", {}, 2, 0],
    ["are skipped even then when that is asked for", skipping, 0, 2],
  ] as const)("%s", (_, overlap, waiting, skipped) =>
    onRuntime(backend, async ({ another }) => {
      const clock = manualClock(midnight);
      const all = { ...hourly, catchUp: "all", ...overlap } as const;
      const start = async (): Promise<Holdfast> => {
        const holdfast = await another({ clock });
        await holdfast.work([patient, schedule("hourly", all, patient)], forLong);
        return holdfast;
      };
      await (await start()).close();
      clock.set(midnight + 3 * hour);
      const holdfast = await start();
      await passTo(holdfast, clock, midnight + 3 * hour);
      const { waiting: waits, skipped: passed } = await shown(holdfast);
      expect([waits, passed?.count ?? 0]).toEqual([waiting, skipped]);
      await ended(holdfast, "hourly@2026-11-18T01:00:00Z");
      if (waiting === 0) return;
      await ended(holdfast, "hourly@2026-11-18T02:00:00Z");
      await ended(holdfast, "hourly@2026-11-18T03:00:00Z");
    })(),
  );

  test(
    "wait up to a hundred, and go on waiting when all workers were gone",
    onRuntime(backend, async ({ another, said }) => {
      const clock = manualClock(midnight);
      const hourlyPatient = () =>
        schedule("hourly", { ...hourly, overlap: "queue", catchUp: "all" }, patient);
      const first = await another({ clock });
      await first.work([patient, hourlyPatient()], forLong);
      await passTo(first, clock, midnight + hour);
      await passTo(first, clock, midnight + 101 * hour);
      await passTo(first, clock, midnight + 103 * hour);
      expect(await shown(first)).toMatchObject({
        waiting: 100,
        skipped: { count: 2, instant: midnight + 103 * hour, reason: "full" },
      });
      await until(() => warningsIn(said).length >= 2);
      expect(warningsIn(said)).toHaveLength(2);
      await first.close();
      const second = await another({ clock });
      await second.get(patient, "hourly@2026-11-18T01:00:00Z").signal(go);
      await second.work([patient, hourlyPatient()], forLong);
      await until(async () => (await shown(second)).waiting === 99);
      expect(await shown(second)).toMatchObject({
        lastRun: "hourly@2026-11-18T02:00:00Z",
      });
    }),
  );

  test(
    "wait on when their schedule cannot be read, which is told once and holds up no other",
    onRuntime(backend, async ({ another, database, said }) => {
      const clock = manualClock(midnight);
      const holdfast = await another({ clock });
      const queued = { ...hourly, overlap: "queue" } as const;
      await holdfast.work(
        [patient, schedule("bad", queued, patient), schedule("good", queued, patient)],
        forLong,
      );
      await passTo(holdfast, clock, midnight + hour);
      await passTo(holdfast, clock, midnight + 2 * hour);
      await database.write("damage", () =>
        execute(sql`UPDATE holdfast_schedule_function SET function = 'a b' WHERE name = 'bad'`),
      );
      await ended(holdfast, "bad@2026-11-18T01:00:00Z");
      await ended(holdfast, "good@2026-11-18T01:00:00Z");
      await until(async () => {
        // What cannot be started is tried again after a pause.
        clock.advance(1_000);
        return (await idsOf(holdfast, "good")).length === 2;
      });
      const { items, damaged } = await holdfast.schedules.list();
      expect(items.map(({ name }) => name)).toEqual(["good"]);
      expect(damaged).toEqual([{ table: "holdfast_schedule_function", key: "bad" }]);
      await until(() => warningsIn(said).length > 0);
      expect(warningsIn(said)).toMatchObject([
        { details: { schedule: "bad", code: "NAME_INVALID" } },
      ]);
    }),
  );

  test(
    "are asked to cancel, and followed by the newest when they have cleaned up, with cancelPrevious",
    onRuntime(backend, async ({ another }) => {
      const clock = manualClock(midnight);
      const holdfast = await another({ clock });
      const done: string[] = [];
      const cleaned = gate();
      // The clock goes on by an hour while it cleans up.
      const unhurried = { cleanupTimeout: "1 day" } as const;
      const tidy = workflow("tidy", unhurried, async (ctx) => {
        await ctx.step("begin", () => void done.push(`begin ${ctx.id}`));
        try {
          await ctx.receive(go);
        } finally {
          await ctx.step("clean", () => cleaned.opened);
          done.push(`end ${ctx.id}`);
        }
      });
      await holdfast.work(
        [tidy, schedule("hourly", { ...hourly, overlap: "cancelPrevious" }, tidy)],
        forLong,
      );
      await passTo(holdfast, clock, midnight + hour);
      await until(() => done.length === 1);
      await passTo(holdfast, clock, midnight + 2 * hour);
      const first = holdfast.get(tidy, "hourly@2026-11-18T01:00:00Z");
      expect(await first.status()).toBe("cancelling");
      await passTo(holdfast, clock, midnight + 3 * hour);
      expect(await shown(holdfast)).toMatchObject({
        waiting: 1,
        lastRun: "hourly@2026-11-18T01:00:00Z",
        skipped: {
          count: 1,
          instant: midnight + 2 * hour,
          reason: "replaced",
        },
      });
      cleaned.open();
      await until(() => done.length === 3);
      expect(done).toEqual([
        "begin hourly@2026-11-18T01:00:00Z",
        "end hourly@2026-11-18T01:00:00Z",
        "begin hourly@2026-11-18T03:00:00Z",
      ]);
      expect(await first.status()).toBe("cancelled");
    }),
  );

  test(
    "that nobody has begun end at once with cancelPrevious, and the next starts in the same moment",
    onRuntime(backend, async ({ another }) => {
      const clock = manualClock(midnight);
      const holdfast = await another({ clock });
      await holdfast.work(
        [schedule("hourly", { ...hourly, overlap: "cancelPrevious" }, patient)],
        forLong,
      );
      await passTo(holdfast, clock, midnight + hour);
      await passTo(holdfast, clock, midnight + 2 * hour);
      const statuses = ["01", "02"].map((at) =>
        holdfast.get(patient, `hourly@2026-11-18T${at}:00:00Z`).status(),
      );
      const [before, after] = await Promise.all(statuses);
      expect(before).toBe("cancelled");
      expect(["pending", "unserved"]).toContain(after);
    }),
  );
}

function pageOfSchedules(backend: Backend): void {
  test(
    "shows what a schedule is, its next five instants and what it has done",
    onRuntime(backend, async ({ another }) => {
      const clock = manualClock(midnight);
      const holdfast = await another({ clock });
      const report = workflow("report", async () => 1);
      await holdfast.work(
        [
          report,
          schedule("weekdays", { cron: "30 9 * * 1-5", timeZone: "Asia/Tokyo" }, report),
          schedule(
            "often",
            { every: "1 day", overlap: "queue", catchUp: "all", catchUpMax: 7 },
            report,
          ),
        ],
        forLong,
      );
      const { items, next, damaged } = await holdfast.schedules.list();
      expect({ next, damaged }).toEqual({ next: undefined, damaged: [] });
      expect(items).toEqual([
        {
          name: "often",
          function: "report",
          cadence: {
            kind: "interval",
            everyMs: day,
            anchor: midnight + day,
          },
          overlap: "queue",
          catchUp: "all",
          catchUpMax: 7,
          isPaused: false,
          next: [1, 2, 3, 4, 5].map((days) => midnight + days * day),
          lastAt: null,
          lastRun: null,
          waiting: 0,
          skipped: null,
          missed: null,
          failure: null,
        },
        {
          name: "weekdays",
          function: "report",
          cadence: {
            kind: "cron",
            expression: "30 9 * * 1-5",
            timeZone: "Asia/Tokyo",
          },
          overlap: "skip",
          catchUp: "latest",
          catchUpMax: 100,
          isPaused: false,
          // Wednesday to Friday, Monday and Tuesday.
          next: [18, 19, 20, 23, 24].map((on) => Date.UTC(2026, 10, on, 0, 30)),
          lastAt: null,
          lastRun: null,
          waiting: 0,
          skipped: null,
          missed: null,
          failure: null,
        },
      ]);
      const page = await holdfast.schedules.list({ limit: 1 });
      expect(page.items.map(({ name }) => name)).toEqual(["often"]);
      const rest = await holdfast.schedules.list({ after: page.next ?? "" });
      expect(rest.items.map(({ name }) => name)).toEqual(["weekdays"]);
    }),
  );

  test(
    "pauses a schedule, also for workers that start later, and lets it go on",
    onRuntime(backend, async ({ another }) => {
      const clock = manualClock(midnight);
      const holdfast = await another({ clock });
      const report = workflow("report", async () => 1);
      const given = (cron: string) => [report, schedule("hourly", { cron }, report)];
      await holdfast.work(given("0 * * * *"), forLong);
      expect(await holdfast.schedules.pause("hourly")).toBe(true);
      expect(await holdfast.schedules.pause("hourly")).toBe(false);
      const second = await another({ clock });
      await second.work(given("0 * * * *"), forLong);
      expect(await shown(holdfast)).toMatchObject({ isPaused: true, next: [] });
      // Other terms are taken over, and wait as well.
      const third = await another({ clock });
      await third.work(given("30 * * * *"), forLong);
      clock.set(midnight + 5 * hour);
      expect(await shown(holdfast)).toMatchObject({
        isPaused: true,
        cadence: { expression: "30 * * * *" },
        lastAt: null,
      });
      expect(await holdfast.schedules.resume("hourly")).toBe(true);
      expect(await holdfast.schedules.resume("hourly")).toBe(false);
      await passTo(holdfast, clock, midnight + 5.5 * hour);
      expect(await idsOf(holdfast, "hourly")).toEqual(["hourly@2026-11-18T05:30:00Z"]);
    }),
  );

  test(
    "keeps what waits while a schedule is paused",
    onRuntime(backend, async ({ another }) => {
      const clock = manualClock(midnight);
      const holdfast = await another({ clock });
      await holdfast.work(
        [patient, schedule("hourly", { ...hourly, overlap: "queue" }, patient)],
        forLong,
      );
      await passTo(holdfast, clock, midnight + hour);
      await passTo(holdfast, clock, midnight + 2 * hour);
      await holdfast.schedules.pause("hourly");
      await ended(holdfast, "hourly@2026-11-18T01:00:00Z");
      expect(await shown(holdfast)).toMatchObject({ waiting: 1 });
      await holdfast.schedules.resume("hourly");
      await until(async () => (await shown(holdfast)).waiting === 0);
      expect(await idsOf(holdfast, "hourly")).toHaveLength(2);
    }),
  );

  test(
    "fires a run outside of the cadence, once for a key, which counts as unfinished afterwards",
    onRuntime(backend, async ({ another }) => {
      const clock = manualClock(midnight);
      const holdfast = await another({ clock });
      await holdfast.work([patient, schedule("hourly", hourly, patient)], forLong);
      const page = (await another({ clock })).schedules;
      const run = await page.fire("hourly", { key: "by-hand" });
      expect(run.id).toBe("hourly@fire:by-hand");
      expect((await page.fire("hourly", { key: "by-hand" })).id).toBe(run.id);
      await passTo(holdfast, clock, midnight + hour);
      expect(await shown(holdfast)).toMatchObject({
        lastRun: "hourly@fire:by-hand",
        skipped: { count: 1, reason: "unfinished" },
      });
      await page.pause("hourly");
      const another1 = await page.fire("hourly");
      expect(another1.id).toMatch(/^hourly@fire:[0-9A-Z]{26}$/);
      await ended(holdfast, run.id);
      await ended(holdfast, another1.id);
      expect(await idsOf(holdfast, "hourly")).toEqual([run.id, another1.id].toSorted());
    }),
  );

  test(
    "removes a schedule, and its runs go on",
    onRuntime(backend, async ({ another }) => {
      const clock = manualClock(midnight);
      const holdfast = await another({ clock });
      const given = () => schedule("hourly", { ...hourly, overlap: "queue" }, patient);
      await holdfast.work([patient, given()], forLong);
      await passTo(holdfast, clock, midnight + hour);
      await passTo(holdfast, clock, midnight + 2 * hour);
      expect(await holdfast.schedules.remove("hourly")).toBe(true);
      expect(await holdfast.schedules.remove("hourly")).toBe(false);
      expect(await holdfast.schedules.list()).toMatchObject({ items: [] });
      clock.set(midnight + 3 * hour);
      await ended(holdfast, "hourly@2026-11-18T01:00:00Z");
      expect(await idsOf(holdfast, "hourly")).toHaveLength(1);
      const report = await holdfast.maintenance.check();
      expect(report.damaged).toEqual([]);
      // Whoever is given it makes it again.
      await (await another({ clock })).work([given()], forLong);
      expect(await shown(holdfast)).toMatchObject({
        name: "hourly",
        lastRun: null,
        next: [4, 5, 6, 7, 8].map((hours) => midnight + hours * hour),
      });
    }),
  );

  test(
    "says which schedules there are not, and refuses what is no name, key or option",
    onRuntime(backend, async ({ holdfast }) => {
      const { schedules } = holdfast;
      for (const act of [
        () => schedules.pause("none"),
        () => schedules.resume("none"),
        () => schedules.fire("none"),
      ])
        expect(await rejection(act())).toMatchObject({
          code: "SCHEDULE_NOT_FOUND",
          details: { name: "none" },
        });
      for (const name of [undefined, null, 7, {}, "", "a b", "a@b", "E_x", "\0"])
        for (const act of ["pause", "resume", "fire", "remove"] as const)
          expect(await rejection(schedules[act](name as never))).toMatchObject({
            code: "NAME_INVALID",
          });
      for (const key of [null, 7, {}, "", "a b", "x".repeat(51)])
        expect(await rejection(schedules.fire("none", { key: key as never }))).toMatchObject({
          code: "OPTION_INVALID",
        });
      for (const options of [null, 7, { odd: 1 }]) {
        expect(await rejection(schedules.fire("none", options as never))).toMatchObject({
          code: "OPTION_INVALID",
        });
        expect(await rejection(schedules.list(options as never))).toMatchObject({
          code: "OPTION_INVALID",
        });
      }
      expect(await rejection(schedules.list({ after: "x" }))).toMatchObject({
        code: "CURSOR_INVALID",
      });
    }),
  );
}

function givenAgain(backend: Backend): void {
  test(
    "goes on as it is when it is given with the same terms, and has new terms otherwise",
    onRuntime(backend, async ({ another, said }) => {
      const clock = manualClock(midnight);
      const report = workflow("report", async (_, days: number) => days);
      const work = async (options: ScheduleOptions, days: number): Promise<Holdfast> => {
        const holdfast = await another({ clock });
        await holdfast.work([report, schedule("often", options, report, days)], forLong);
        return holdfast;
      };
      const first = await work({ every: "1 hour" }, 1);
      clock.set(midnight + hour / 2);
      await work({ every: "1 hour" }, 1);
      expect((await shown(first)).next[0]).toBe(midnight + hour);
      await passTo(first, clock, midnight + hour);
      // An unfinished run would have the next instant skipped.
      await allEnded(first, "often");
      const last = await work({ every: "2 hours" }, 2);
      expect((await shown(first)).next[0]).toBe(midnight + 3 * hour);
      await passTo(first, clock, midnight + 3 * hour);
      const results = (await idsOf(last, "often")).map((id) => last.get(report, id).result());
      expect(await Promise.all(results)).toEqual([1, 2]);
      expect(
        said
          .filter(({ message }) => message.startsWith('Schedule "often" of'))
          .map(({ message }) => message),
      ).toEqual([
        'Schedule "often" of "report" was made.',
        'Schedule "often" of "report" was changed.',
      ]);
    }),
  );

  test(
    "is made with all others of its call to work, or none of them is",
    onRuntime(backend, async ({ another, database, said }) => {
      const given = (every: "1h" | "2h", ...names: readonly string[]) =>
        names.map((name) => schedule(name, { every }, patient));
      await (await another()).work([patient, ...given("1h", "b")], forLong);
      // It cannot be counted on, so a change of its terms fails.
      await database.write("spoil", () =>
        execute(sql`UPDATE holdfast_schedule SET revision = ${Number.MAX_SAFE_INTEGER}`),
      );
      const holdfast = await another();
      const abc = given("2h", "a", "b", "c");
      expect(await rejection(holdfast.work([patient, ...abc], forLong))).toMatchObject({
        code: "PARAMETER_INVALID",
      });
      expect(await holdfast.schedules.list()).toMatchObject({
        items: [{ name: "b" }],
      });
      await database.write("mend", () => execute(sql`UPDATE holdfast_schedule SET revision = 1`));
      await holdfast.work([patient, ...abc.toReversed()], forLong);
      expect(await holdfast.schedules.list()).toMatchObject({
        items: [{ name: "a" }, { name: "b" }, { name: "c" }],
      });
      const messages = said.map(({ message }) => message);
      expect(messages.filter((each) => each.startsWith("Schedule"))).toEqual([
        'Schedule "b" of "patient" was made.',
        'Schedule "c" of "patient" was made.',
        'Schedule "b" of "patient" was changed.',
        'Schedule "a" of "patient" was made.',
      ]);
    }),
  );

  test(
    "is refused when another one of its name was given, and nothing is written",
    onRuntime(backend, async ({ holdfast }) => {
      const one = schedule("hourly", hourly, patient);
      const other = schedule("hourly", hourly, patient);
      expect(await rejection(holdfast.work([one, other], forLong))).toMatchObject({
        code: "SCHEDULE_CONFLICT",
        details: { name: "hourly" },
      });
      expect(await holdfast.schedules.list()).toMatchObject({ items: [] });
      await holdfast.work([one, one], forLong);
      await holdfast.work([one], forLong);
      expect(await rejection(holdfast.work([other], forLong))).toMatchObject({
        code: "SCHEDULE_CONFLICT",
      });
    }),
  );

  test(
    "that no worker was given does not fire, and is warned about",
    onRuntime(backend, async ({ another, said }) => {
      const clock = manualClock(midnight);
      const first = await another({ clock });
      await first.work([patient, schedule("old", hourly, patient)], forLong);
      await first.close();
      const second = await another({ clock });
      await second.work([patient], forLong);
      clock.set(midnight + hour + 10 * 60_000);
      await until(() => {
        clock.advance(1_000);
        return warningsIn(said).length > 0;
      });
      expect(warningsIn(said)).toMatchObject([
        {
          message: expect.stringContaining('schedules.remove("old")') as string,
          details: { schedule: "old", dueAt: midnight + hour },
        },
      ]);
      expect(await idsOf(second, "old")).toEqual([]);
    }),
  );

  test(
    "is not made when its input is not right",
    onRuntime(backend, async ({ holdfast }) => {
      const input = {
        "~standard": {
          version: 1,
          vendor: "test",
          validate: (value: unknown) =>
            typeof value === "number"
              ? { value: value * 2 }
              : { issues: [{ message: "a number" }] },
        },
      } as const;
      const twice = workflow("twice", { input }, async (_, value: number) => value);
      const bad = schedule("bad", hourly, twice as never, "x");
      expect(await rejection(holdfast.work([bad], forLong))).toMatchObject({
        code: "INPUT_INVALID",
      });
      const odd = workflow("odd", async (_, value: unknown) => value);
      const code = schedule("code", hourly, odd, () => 1);
      expect(await rejection(holdfast.work([odd, code], forLong))).toMatchObject({
        code: "NOT_SERIALIZABLE",
      });
      expect(await holdfast.schedules.list()).toMatchObject({ items: [] });
      await holdfast.work([twice, schedule("good", hourly, twice, 21)], forLong);
      const run = await holdfast.schedules.fire("good");
      expect(await run.result()).toBe(42);
    }),
  );

  test(
    "stores its input with the codec that values go through",
    onRuntime(backend, async ({ another, database }) => {
      const holdfast = await another({ payload: shouting });
      const echo = workflow("echo", async (_, text: string) => text);
      await holdfast.work([echo, schedule("said", hourly, echo, "quiet")], forLong);
      const stored = await storedInputs(database);
      expect(stored).toContain("QUIET");
      const run = await holdfast.schedules.fire("said");
      expect(await run.result()).toBe("quiet");
    }),
  );
}

/** Sets the clock, and waits until nothing is due at that time any more. */
async function passTo(holdfast: Holdfast, clock: ManualClock, instant: number): Promise<void> {
  clock.set(instant);
  await until(async () => {
    const { items } = await holdfast.schedules.list();
    return items.every(({ next: [next = Infinity] }) => next > instant);
  });
}

/** The ids of the runs of a schedule, in order. */
async function idsOf(holdfast: Holdfast, name: string): Promise<readonly string[]> {
  const { items } = await holdfast.runs.list({
    tag: `schedule:${name}`,
    limit: 1_000,
  });
  return items.map(({ id }) => id as string).toSorted();
}

/** Waits until all runs of a schedule have ended. */
async function allEnded(holdfast: Holdfast, name: string): Promise<void> {
  await until(async () => {
    const filter = { tag: `schedule:${name}`, limit: 1_000 };
    const { items } = await holdfast.runs.list(filter);
    return items.every(({ state }) => state.pending.kind === "finished");
  });
}

/** The only schedule there is. */
async function shown(holdfast: Holdfast): Promise<RunSchedule> {
  const { items } = await holdfast.schedules.list();
  expect(items).toHaveLength(1);
  return items[0] as RunSchedule;
}

/** Lets a patient run end, once it has been started. */
async function ended(holdfast: Holdfast, id: string): Promise<void> {
  const run = holdfast.get(patient, id);
  await until(async () => (await idsOf(holdfast, id.split("@")[0] ?? "")).includes(id));
  await run.signal(go);
  await run.result();
}

function datesOf(month: string, first: number, last: number): readonly string[] {
  return Array.from(
    { length: last - first + 1 },
    (_, index) => `${month}-${String(first + index).padStart(2, "0")}`,
  );
}

/** A codec of which one sees whether it was used. */
const shouting: PayloadCodec = {
  name: "shouting",
  encode: (text) => text.toUpperCase(),
  decode: (stored) => stored.toLowerCase(),
  hash: "sha256",
};

async function storedInputs(database: Database): Promise<string> {
  const found = await database.read("inputs", () =>
    rows<{ readonly input: string }>(sql`SELECT input FROM holdfast_schedule_function`),
  );
  return found.map(({ input }) => input).join();
}
