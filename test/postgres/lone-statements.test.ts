import { describe, expect, test } from "vitest";
import { executions } from "../../src/executions.ts";
import type { Executions } from "../../src/executions.ts";
import { row } from "../../src/sql/operation.ts";
import { sql } from "../../src/sql/statement.ts";
import type { Database } from "../../src/sql/database.ts";
import { rejection } from "../conformance/backend.ts";
import { holder } from "../fixtures/execution-parts.ts";
import { withCable } from "./cable.ts";
import { listen } from "./listen.ts";
import { until, withPlace } from "./place.ts";
import { questionsDuring } from "./round-trips.ts";

/** A run that a worker holds, and whose next event has the version 2. */
async function lockedRun(log: Executions, id: string): Promise<void> {
  await log.createLocked({ id, function: "f", input: 1 }, { holder, lease: "1 minute" });
}

/** Appends a step, whose name the server hears with every call. */
const append = (log: Executions, id: string, version: number, name = "s"): Promise<object> =>
  log.append(
    id,
    version,
    [
      {
        kind: "stepFinished",
        call: version,
        name,

        outcome: "completed",
        value: 1,
      },
    ],
    { fence: holder },
  );

/** The round trips of one call after the other on the connection of calls, in the mean. */
async function roundTripsOf(
  url: string,
  open: (url: string) => Promise<Database>,
  calls: (log: Executions) => Promise<(nth: number) => Promise<unknown>>,
): Promise<number> {
  let mean = 0;
  await questionsDuring(url, async (own, soFar) => {
    const database = await open(own);
    const call = await calls(executions(database));
    // A statement that is new to a session is described first.
    for (let nth = 0; nth < 3; nth += 1) await call(nth);
    const before = soFar();
    for (let nth = 3; nth < 13; nth += 1) await call(nth);
    // The first connection is that of calls; the others listen and poll.
    mean = ((soFar()[0] ?? 0) - (before[0] ?? 0)) / 10;
    await database.close();
  });
  return mean;
}

describe("one caller on Postgres", () => {
  // Commits are announced on another connection.
  test.each<[string, number, (log: Executions) => Promise<(nth: number) => Promise<unknown>>]>([
    [
      "append of a step",
      1,
      async (log) => {
        await lockedRun(log, "a");
        return (nth) => append(log, "a", nth + 2);
      },
    ],
    [
      "read",
      4, // Three statements, the first with BEGIN. The last round trip comes after the answer.
      async (log) => {
        await lockedRun(log, "a");
        return () => log.get("a");
      },
    ],
    ["creation", 4, async (log) => (nth) => log.create({ id: `c${nth}`, function: "f", input: 1 })],
    ["creation of a locked run", 4, async (log) => (nth) => lockedRun(log, `l${nth}`)],
    [
      "signal",
      7,
      async (log) => {
        await log.create({ id: "s", function: "f", input: 1 });
        return (nth) => log.signal("s", "go", nth);
      },
    ],
  ])("takes for one %s %i round trip(s)", (_, expected, calls) =>
    withPlace(async (place) => {
      const open = (url: string): Promise<Database> => place.open({ poolSize: 1 }, url);
      expect(await roundTripsOf(place.url, open, calls)).toBe(expected);
    }),
  );

  test.each([
    ["before the server hears it", 3],
    ["before the client hears the answer", 4],
  ] as const)("whose append is cut off %s learns the outcome by repeating it", (cutAt, version) =>
    withCable(async (place, cable) => {
      const direct = executions(await place.open());
      const log = executions(await place.open({}, cable.urlFor(place.url)));
      await lockedRun(direct, "a");
      // The first call also learns the codec of the database, and the second describes a statement.
      for (const at of [2, 3]) await append(log, "a", at);
      cable.cutAt("cut here", cutAt);
      const error = await rejection(append(log, "a", 4, "cut here"));
      expect(error).toMatchObject({ code: "OUTCOME_UNKNOWN", retryable: true });
      expect(cable.cuts).toBe(1);
      expect((await direct.get("a")).state.version).toBe(version);
      expect(await append(log, "a", 4, "cut here")).toMatchObject({ nextVersion: 5 });
      expect((await direct.get("a")).state.version).toBe(4);
    }),
  );

  test("is read committed in a session that the app has made serializable", () =>
    withPlace(async (place) => {
      const url = new URL(place.url);
      url.searchParams.set("default_transaction_isolation", "serializable");
      const database = await place.open({ poolSize: 1 }, url.href);
      const log = executions(database);
      await lockedRun(log, "a");
      expect(await append(log, "a", 2)).toMatchObject({ nextVersion: 3 });
      const isolation = database.read("isolation", () =>
        row<{ value: string }>(
          sql`SELECT current_setting('default_transaction_isolation') AS value`,
        ),
      );
      expect(await isolation).toEqual({ value: "read committed" });
    }));

  test.each([{ prepare: false }, { notify: "transactional" }] as const)(
    "appends with %o too, in a transaction",
    (options) =>
      withPlace(async (place) => {
        const log = executions(await place.open({ ...options, poolSize: 1 }));
        await lockedRun(log, "a");
        expect(await append(log, "a", 2)).toMatchObject({ nextVersion: 3 });
        expect(await rejection(append(log, "a", 9))).toMatchObject({ code: "VERSION_CONFLICT" });
      }),
  );

  test("notifies other processes of what it appends", () =>
    withPlace(async (place) => {
      const log = executions(await place.open());
      await lockedRun(log, "a");
      await append(log, "a", 2);
      const theirs = await place.open({ pollInterval: 2 ** 31 - 1 });
      const heard = await listen(theirs);
      await append(log, "a", 3);
      await until(() => heard.includes("appendEvents a"));
      expect(theirs.stats().polls).toBe(0);
    }));
});
