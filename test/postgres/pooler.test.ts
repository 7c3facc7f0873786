import { describe, expect, test } from "vitest";
import { holdfastOn } from "../../src/open/open-holdfast.ts";
import type { PostgresOptions } from "../../src/postgres.ts";
import { workflow } from "../../src/runtime/definition/definitions.ts";
import type { RuntimeEvent } from "../../src/runtime/runtime-event.ts";
import { type Database, type Warning, row, sql } from "../../src/kernel.ts";
import { rejection } from "../conformance/backend.ts";
import { LendingPooler } from "./lending-pooler.ts";
import { until, withPlace, type Place } from "./place.ts";

interface Given {
  readonly place: Place;
  readonly pooler: LendingPooler;
  readonly warnings: readonly Warning[];
  readonly open: (options?: PostgresOptions) => Promise<Database>;
}

async function withPooler(body: (given: Given) => Promise<void>): Promise<void> {
  await withPlace(async (place) => {
    const pooler = await LendingPooler.to(place.url);
    const warnings: Warning[] = [];
    const onWarning = (warning: Warning): void => void warnings.push(warning);
    const url = pooler.urlFor(place.url);
    try {
      await body({
        place,
        pooler,
        warnings,
        open: (options) => place.open({ onWarning, ...options }, url),
      });
    } finally {
      await place.close();
      await pooler.close();
    }
  });
}

/** Opening may meet the fault already. */
async function untilOpened(open: () => Promise<Database>): Promise<Database> {
  for (;;) {
    const database = await open().catch((error: unknown) => {
      expect(error).toMatchObject({ code: "PREPARED_STATEMENT_LOST" });
    });
    if (database !== undefined) return database;
  }
}

async function runSome(database: Database): Promise<void> {
  const holdfast = await holdfastOn(database, {}, () => undefined);
  const steps = workflow("steps", async (ctx) => {
    await ctx.step("first", () => 1);
    await ctx.sleep(20);
    return ctx.step("second", () => "done");
  });
  await holdfast.work([steps]);
  const runs = await holdfast.startMany(steps, [{}, {}, {}, {}, {}, {}, {}, {}]);
  for (const each of runs) expect(await each.result()).toBe("done");
  await holdfast.close();
}

describe("a pooler that lends sessions", () => {
  test("is found at open: runs complete without prepared statements, and a warning says so", () =>
    withPooler(async ({ open, warnings }) => {
      await runSome(await open());
      expect(warnings.map(({ code }) => code)).toEqual(["POOLER_FOUND"]);
    }));

  test("is as good when it was named, and nothing is told", () =>
    withPooler(async ({ open, warnings }) => {
      await runSome(await open({ prepare: false }));
      expect(warnings).toEqual([]);
    }));

  test("against prepared statements is refused with the option that helps", () =>
    withPooler(async ({ open }) => {
      const opened = open({ prepare: true });
      const error = await rejection(
        opened.then(async (database) => {
          for (let round = 0; round < 20; round += 1)
            await Promise.all(
              [1, 2, 3, 4].map((n) => database.read("one", () => row(sql`SELECT ${n}::int8 AS n`))),
            );
        }),
      );
      expect(error).toMatchObject({ code: "PREPARED_STATEMENT_LOST", retryable: false });
      expect(error.message).toContain("pooler");
      expect(error.message).toContain("prepare: false");
    }));

  test("against prepared statements fails and parks no run: the worker stops and says why", () =>
    withPooler(async ({ place, open }) => {
      const books = workflow("books", async (ctx) => {
        await ctx.step("first", () => 1);
        await ctx.sleep(20);
        await ctx.transaction("look", () => row(sql`SELECT ${1}::int8 AS one`));
        return "done";
      });
      const direct = await holdfastOn(await place.open(), {}, () => undefined);
      const runs = await direct.startMany(
        books,
        Array.from({ length: 20 }, () => ({})),
      );
      const told: RuntimeEvent[] = [];
      const wrong = await untilOpened(() => open({ prepare: true }));
      const holdfast = await holdfastOn(wrong, {}, (event) => void told.push(event));
      const worked = holdfast.work([books], { lease: "2s" }).catch(() => undefined);
      await until(() => told.some(({ message }) => message.startsWith("This worker stops.")));
      await worked;
      expect(told.find(({ message }) => message.startsWith("This worker stops."))).toMatchObject({
        message: expect.stringMatching(
          /^This worker stops\. .*pooler.*`postgres: \{ prepare: false \}`/,
        ),
        details: { code: "PREPARED_STATEMENT_LOST" },
      });
      await holdfast.close({ timeout: 0 });
      await direct.work([books], { lease: "2s" });
      for (const each of runs) expect(await each.result()).toBe("done");
      await direct.close();
    }));

  test("is asked for no notifications, which would go to others", () =>
    withPooler(async ({ place, open }) => {
      const database = await open({ pollInterval: 20 });
      const hints: string[] = [];
      database.subscribe(({ kind }) => void hints.push(kind));
      await until(() => hints.includes("unknown"));
      const listening = await place.shell()`
        SELECT query FROM pg_stat_activity
        WHERE application_name = ${place.app} AND query LIKE 'LISTEN%'`;
      expect(listening).toEqual([]);
    }));

  test("gives a statement six time limits, since nobody can ask for its process", () =>
    withPooler(async ({ pooler, open, warnings }) => {
      const database = await open({ answerTimeout: 500, prepare: false });
      const slept = await database.read("sleeps", () =>
        row(sql`SELECT 1 AS slept, pg_sleep(1)::text AS nothing`),
      );
      expect(slept).toMatchObject({ slept: 1 });
      expect(warnings).toEqual([]);
      const silent = database.read("one", function* () {
        pooler.isSilent = true;
        yield* row(sql`SELECT 1 AS one`);
      });
      expect(await rejection(silent)).toMatchObject({
        code: "DATABASE_UNREACHABLE",
        retryable: true,
      });
    }));

  test("that does not stand there is not warned of", () =>
    withPlace(async (place) => {
      const warnings: Warning[] = [];
      const database = await place.open({ onWarning: (warning) => warnings.push(warning) });
      await database.read("one", () => row(sql`SELECT 1 AS one`));
      const prepared = await database.read("prepared", () =>
        row(sql`SELECT count(*) > 0 AS any FROM pg_prepared_statements WHERE ${1} = 1`),
      );
      expect(prepared).toEqual({ any: 1 });
      expect(warnings).toEqual([]);
    }));
});
