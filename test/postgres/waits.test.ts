import { describe, expect, test } from "vitest";
import { operation, row, run, sql, type Database } from "../../src/kernel.ts";
import { appendEntry, createHead } from "../fixtures/append-entry.ts";
import { Barrier } from "./barrier.ts";
import { withCable } from "./cable.ts";
import { listen } from "./listen.ts";
import { createHeads, logOf } from "./log.ts";
import { rejection } from "../conformance/backend.ts";
import { until, withPlace } from "./place.ts";
import type { Place } from "./place.ts";

/** Keeps one connection for a while. */
function slow(database: Database, seconds = 0.3): Promise<unknown> {
  return database.read("slow", () => row(sql`SELECT pg_sleep(${seconds})`));
}

/** How many sessions of ours there are in the end: closed ones go in a moment. */
async function sessionsLeft(place: Place): Promise<number> {
  const shell = place.shell();
  let left = -1;
  await until(async () => {
    const [found] = await shell<{ n: number }[]>`
      SELECT count(*)::int AS n FROM pg_stat_activity
      WHERE application_name = ${place.app} AND pid <> pg_backend_pid()`;
    left = found?.n ?? -1;
    return left === 0;
  });
  return left;
}

describe("waiting for a connection", () => {
  test("can be given up by signal and by timeout; what was taken is not", () =>
    withPlace(async (place) => {
      const database = await place.open({ poolSize: 1 });
      const [head = 0] = await createHeads(database, 1);
      const entry = { head, expectedVersion: 0, payload: "p" };
      const abort = new AbortController();
      const barrier = await Barrier.raise(place);
      const taken = database.read(
        "taken",
        function* () {
          yield* barrier.stop();
          return yield* row(sql`SELECT 1 AS one`);
        },
        { signal: abort.signal, timeout: "2s" },
      );
      await barrier.stopped(1);
      const aborted = rejection(database.write(appendEntry, entry, { signal: abort.signal }));
      const late = rejection(database.write(appendEntry, entry, { timeout: "2s" }));
      const lateRead = rejection(
        database.read("late", () => row(sql`SELECT 1`), { timeout: "50ms" }),
      );
      // Then the time of the one that was taken is over too.
      expect(await late).toMatchObject({
        code: "DEADLINE_EXCEEDED",
        retryable: true,
      });
      expect(await lateRead).toMatchObject({ code: "DEADLINE_EXCEEDED" });
      abort.abort(new Error("enough"));
      expect(await aborted).toMatchObject({ code: "ABORTED" });
      await barrier.lift();
      expect(await taken).toMatchObject({ one: 1 });
      expect(await logOf(database)).toBe("");
      expect(database.stats().queueDepth).toBe(0);
    }));

  test("lets the calls behind one that gave up go on, in order", () =>
    withPlace(async (place) => {
      const database = await place.open({ poolSize: 1 });
      const [head = 0] = await createHeads(database, 1);
      const abort = new AbortController();
      const busy = slow(database);
      const write = (expectedVersion: number, signal?: AbortSignal) =>
        database.write(
          appendEntry,
          { head, expectedVersion, payload: `p${expectedVersion}` },
          { signal },
        );
      const first = write(0);
      const ready = rejection(write(1, abort.signal));
      const behind = [write(1), rejection(write(2, abort.signal)), write(2)];
      abort.abort();
      expect(await ready).toMatchObject({ code: "ABORTED" });
      expect(await first).toEqual({ version: 1 });
      expect(await Promise.all(behind)).toMatchObject([
        { version: 2 },
        { code: "ABORTED" },
        { version: 3 },
      ]);
      await busy;
      expect(await logOf(database)).toBe("1:1 p0, 1:2 p1, 1:3 p2");
    }));

  test("is bounded: one call too many is refused, and writable() waits for room", () =>
    withPlace(async (place) => {
      const database = await place.open({ poolSize: 1, queueCallsMax: 4 });
      const barrier = await Barrier.raise(place);
      const busy = database.read("held", () => barrier.stop());
      await barrier.stopped(1);
      const reads = Array.from({ length: 4 }, () => slow(database, 0));
      expect(database.stats().queueDepth).toBe(4);
      const refused = await rejection(slow(database, 0));
      expect(refused).toMatchObject({
        code: "QUEUE_FULL",
        retryable: true,
        details: { limit: 4 },
      });
      expect(refused.message).toContain("writable()");
      expect(await rejection(database.writable({ timeout: "20ms" }))).toMatchObject({
        code: "DEADLINE_EXCEEDED",
      });
      await barrier.lift();
      await database.writable();
      expect(database.stats().queueDepth).toBeLessThanOrEqual(2);
      await Promise.all([busy, ...reads]);
    }));
});

// A close that waits for an answer would wait for ever, so the test's own
// limit is what tells them apart.
describe("closing on a silent network", () => {
  test("lets go of a database that is idle and subscribed", () =>
    withCable(async (place, cable) => {
      const database = await place.open({}, cable.urlFor(place.url));
      await listen(database);
      cable.freeze();
      await database.close({ timeout: "50ms" });
      expect(await rejection(slow(database))).toMatchObject({
        code: "DATABASE_CLOSED",
      });
    }));

  test("lets go of one that is telling others of a commit", () =>
    withCable(async (place, cable) => {
      const database = await place.open({}, cable.urlFor(place.url));
      await createHeads(database, 1);
      await database.write(createHead, { id: "last" });
      cable.freeze();
      await database.close({ timeout: "50ms" });
      expect(await rejection(slow(database))).toMatchObject({
        code: "DATABASE_CLOSED",
      });
    }));

  test("lets go of connections that are being made, and refuses who waits for them", () =>
    withCable(async (place, cable) => {
      const database = await place.open({}, cable.urlFor(place.url));
      cable.freeze();
      database.subscribe(() => undefined);
      const reads = [1, 2, 3].map(() => rejection(slow(database, 0)));
      await database.close({ timeout: "50ms" });
      for (const error of await Promise.all(reads))
        expect(error).toMatchObject({ code: "DATABASE_CLOSED" });
    }));
});

describe("closing", () => {
  test("drains what was called, refuses what comes later, and may be repeated", () =>
    withPlace(async (place) => {
      const database = await place.open({ poolSize: 2 });
      const heads = await createHeads(database, 40);
      const calls = heads.map((head) =>
        database.write(appendEntry, { head, expectedVersion: 0, payload: "p" }),
      );
      const closing = database.close();
      expect(await rejection(logOf(database))).toMatchObject({
        code: "DATABASE_CLOSED",
      });
      await Promise.all([closing, database.close()]);
      await Promise.all(calls);
      const again = await place.open();
      expect((await logOf(again)).split(", ")).toHaveLength(40);
    }));

  test("cuts what runs on after the time is over, and it leaves no trace", () =>
    withPlace(async (place) => {
      const database = await place.open({ poolSize: 1 });
      await createHeads(database, 0);
      const stuck = rejection(
        database.write("stuck", function* () {
          yield* run(sql`INSERT INTO app_log (head, version, payload) VALUES (1, 1, 'p')`);
          yield* row(sql`SELECT pg_sleep(30)`);
        }),
      );
      const waiting = rejection(slow(database, 0));
      await until(() => database.stats().queueDepth <= 1);
      await database.close({ timeout: "50ms" });
      expect(await stuck).toMatchObject({ code: "DATABASE_CLOSED" });
      expect(await waiting).toMatchObject({ code: "DATABASE_CLOSED" });
      // The server notices within about a second, not when the statement ends.
      expect(await sessionsLeft(place)).toBe(0);
      expect(await logOf(await place.open())).toBe("");
    }));

  test("refuses what waits behind a call of the same key", () =>
    withPlace(async (place) => {
      const database = await place.open();
      const [head = 0] = await createHeads(database, 1);
      const barrier = await Barrier.raise(place);
      const runs: number[] = [];
      const append = operation("append", {
        key: () => "one key",
        *one(expectedVersion: number) {
          runs.push(expectedVersion);
          yield* barrier.stop();
          yield* appendEntry({ head, expectedVersion, payload: "p" });
        },
      });
      const calls = Array.from({ length: 20 }, (_, index) =>
        rejection(database.write(append, index)),
      );
      await barrier.stopped(1);
      await database.close({ timeout: 0 });
      for (const error of await Promise.all(calls))
        expect(error).toMatchObject({ code: "DATABASE_CLOSED" });
      expect(runs).toEqual([0]);
      await barrier.lift();
      expect(await logOf(await place.open())).toBe("");
    }));

  test("leaves no session behind", () =>
    withPlace(async (place) => {
      const database = await place.open();
      database.subscribe(() => undefined);
      const heads = await createHeads(database, 10);
      await Promise.all(
        heads.map((head) =>
          database.write(appendEntry, {
            head,
            expectedVersion: 0,
            payload: "p",
          }),
        ),
      );
      await database.close();
      expect(await sessionsLeft(place)).toBe(0);
    }));

  test("with a wrong timeout is refused, and the database stays open", () =>
    withPlace(async (place) => {
      const database = await place.open();
      await expect(database.close({ timeout: "soon" as "1s" })).rejects.toMatchObject({
        code: "DURATION_INVALID",
      });
      await slow(database, 0);
    }));
});
