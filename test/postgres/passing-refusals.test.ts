import { describe, expect, test } from "vitest";
import { holdfastOn } from "../../src/open/open-holdfast.ts";
import { workflow } from "../../src/runtime/definition/definitions.ts";
import { row, run, sql, type Database } from "../../src/kernel.ts";
import { rejection } from "../conformance/backend.ts";
import { gate, Tally, until } from "../conformance/runtime/waiting.ts";
import { withOwnServer } from "./own-server.ts";
import { urlWith, withPlace } from "./place.ts";
import type { Place } from "./place.ts";

const hurried = (place: Place): string =>
  urlWith((url) => url.searchParams.set("statement_timeout", "1000"), place.url);

describe("a statement that Postgres cancels", () => {
  for (const reason of ["by request", "by statement_timeout"] as const)
    test(`${reason}, while a run records a step, is repeated: the step is done once`, () =>
      withPlace(async (place) => {
        const isByRequest = reason === "by request";
        const database = await place.open({}, isByRequest ? place.url : hurried(place));
        const holdfast = await holdfastOn(database);
        const tally = new Tally();
        const begun = gate();
        const paid = gate();
        const pay = workflow("pay", async (ctx) => {
          await ctx.step("pay", async () => {
            tally.count("pay");
            begun.open();
            await paid.opened;
          });
          return "done";
        });
        await holdfast.work([pay]);
        const started = await holdfast.start(pay, undefined, { id: "held" });
        await begun.opened;
        const shell = place.shell();
        await shell`BEGIN`;
        await shell`SELECT 1 FROM holdfast_execution WHERE id = ${started.id} FOR UPDATE`;
        const { rollbacks } = database.stats();
        paid.open();
        await until(async () => {
          if (isByRequest)
            await shell`SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = ${place.app}`;
          return database.stats().rollbacks > rollbacks;
        });
        await shell`COMMIT`;
        expect(await started.result()).toBe("done");
        expect(tally.of("pay")).toBe(1);
        await holdfast.close();
      }));

  for (const [name, stopped, code] of [
    ["is cancelled each time", sql`SELECT pg_sleep(60)`, "STATEMENT_INTERRUPTED"],
    [
      "costs its connection each time",
      sql`SELECT pg_terminate_backend(pg_backend_pid())`,
      "CONNECTION_LOST",
    ],
  ] as const)
    test(`of a transaction of a run that ${name} fails it after five retries`, () =>
      withPlace(async (place) => {
        const holdfast = await holdfastOn(await place.open());
        const tally = new Tally();
        const slow = workflow("slow", (ctx) =>
          ctx.transaction("slow", function* () {
            tally.count("slow");
            yield* run(sql`SET LOCAL statement_timeout = 100`);
            yield* row(stopped);
          }),
        );
        await holdfast.work([slow]);
        const error = await rejection((await holdfast.start(slow)).result());
        expect(error.cause).toMatchObject({ code });
        expect(tally.of("slow")).toBe(6);
        await holdfast.close();
      }));

  test("of a transaction of a run that is cancelled once is run again, and the run completes", () =>
    withPlace(async (place) => {
      const holdfast = await holdfastOn(await place.open());
      const tally = new Tally();
      const slow = workflow("slow", (ctx) =>
        ctx.transaction("slow", function* () {
          yield* run(sql`SET LOCAL statement_timeout = 100`);
          yield* row(sql`SELECT pg_sleep(${tally.count("slow") === 1 ? 60 : 0})`);
          return "done";
        }),
      );
      await holdfast.work([slow]);
      expect(await (await holdfast.start(slow)).result()).toBe("done");
      expect(tally.of("slow")).toBe(2);
      await holdfast.close();
    }));
});

describe("a server that takes no writes for a while", () => {
  test("loses no step that was done meanwhile", () =>
    withOwnServer(async (place) => {
      const database = await place.open();
      const holdfast = await holdfastOn(database);
      await database.write("tables", () => run(sql`CREATE TABLE app_booking (n BIGINT NOT NULL)`));
      const tally = new Tally();
      const paid = gate();
      const pay = workflow("pay", async (ctx, n: number) => {
        await ctx.step("pay", async () => {
          tally.count("pay");
          await paid.opened;
        });
        await ctx.transaction("book", () => run(sql`INSERT INTO app_booking (n) VALUES (${n})`));
        return "done";
      });
      await holdfast.work([pay]);
      const numbers = Array.from({ length: 20 }, (_, n) => n);
      const runs = await holdfast.startMany(
        pay,
        numbers.map((input) => ({ input })),
      );
      await until(() => tally.of("pay") === 20);
      const shell = place.shell();
      await shell`ALTER SYSTEM SET default_transaction_read_only = on`;
      await shell`SELECT pg_reload_conf()`;
      await until(async () => !(await takesWrites(database)));
      const { rollbacks } = database.stats();
      paid.open();
      // As often as there are runs, and their second tries.
      await until(() => database.stats().rollbacks >= rollbacks + 40);
      await shell`SET default_transaction_read_only = off`;
      await shell`ALTER SYSTEM RESET default_transaction_read_only`;
      await shell`SELECT pg_reload_conf()`;
      expect(new Set(await Promise.all(runs.map((each) => each.result())))).toEqual(
        new Set(["done"]),
      );
      expect(tally.of("pay")).toBe(20);
      const booked = await database.read("booked", () =>
        row<{ n: number }>(sql`SELECT count(*) AS n FROM app_booking`),
      );
      expect(booked).toEqual({ n: 20 });
      await holdfast.close();
    }));
});

async function takesWrites(database: Database): Promise<boolean> {
  try {
    await database.write("probe", () => run(sql`UPDATE app_booking SET n = n WHERE n = -1`));
    return true;
  } catch (error) {
    expect(error).toMatchObject({ code: "READ_ONLY" });
    return false;
  }
}
