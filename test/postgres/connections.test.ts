import { describe, expect, test } from "vitest";
import { holdfastOn } from "../../src/open/open-holdfast.ts";
import { workflow } from "../../src/runtime/definition/definitions.ts";
import { operation, row, rows, run, type Tx } from "../../src/kernel.ts";
import { spelled, sql, type Statement } from "../../src/sql/statement.ts";
import { appendEntry, createHead } from "../fixtures/append-entry.ts";
import { withCable } from "./cable.ts";
import { createHeads, logOf } from "./log.ts";
import { rejection } from "../conformance/backend.ts";
import { withPlace } from "./place.ts";

/** Safe to repeat, as every public write is: finds the head that it made before. */
const ensureHead = operation("ensureHead", {
  key: (input: { readonly id: string }) => input.id,
  *one({ id }) {
    const found = yield* row<{ readonly key: number }>(
      sql`SELECT key FROM app_log_head WHERE id = ${id}`,
    );
    return found ?? (yield* createHead({ id }));
  },
});

describe("a connection that breaks", () => {
  test("in the middle of a transaction is CONNECTION_LOST, and nothing is written", () =>
    withPlace(async (place) => {
      const database = await place.open();
      const [head = 0] = await createHeads(database, 1);
      const error = await rejection(
        database.write("dies", function* () {
          yield* appendEntry({ head, expectedVersion: 0, payload: "half" });
          yield* row(sql`SELECT pg_terminate_backend(pg_backend_pid())`);
        }),
      );
      expect(error).toMatchObject({ code: "CONNECTION_LOST", retryable: true });
      expect(await logOf(database)).toBe("");
      await database.write(appendEntry, {
        head,
        expectedVersion: 0,
        payload: "whole",
      });
      expect(await logOf(database)).toBe("1:1 whole");
    }));

  test("is the last word, even if the body made light of it", () =>
    withPlace(async (place) => {
      const database = await place.open();
      const error = await rejection(
        database.write("shrugs", function* () {
          try {
            yield* row(sql`SELECT pg_terminate_backend(pg_backend_pid())`);
          } catch {
            return "fine";
          }
          return "fine";
        }),
      );
      expect(error).toMatchObject({ code: "CONNECTION_LOST" });
    }));

  test("while idle is not noticed by anybody", () =>
    withPlace(async (place) => {
      const database = await place.open();
      const heads = await createHeads(database, 8);
      const appendAll = (expectedVersion: number): Promise<unknown> =>
        Promise.all(
          heads.map((head) =>
            database.write(appendEntry, {
              head,
              expectedVersion,
              payload: "p",
            }),
          ),
        );
      await appendAll(0);
      await place.shell()`
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE application_name = ${place.app} AND pid <> pg_backend_pid()`;
      await appendAll(1);
      expect((await logOf(database)).split(", ")).toHaveLength(16);
    }));

  test("as its transaction begins is not noticed: nothing had happened", () =>
    withCable(async (place, cable) => {
      const database = await place.open({}, cable.urlFor(place.url));
      const [head = 0] = await createHeads(database, 1);
      cable.cutAt("BEGIN", "before the client hears the answer");
      await database.write(appendEntry, {
        head,
        expectedVersion: 0,
        payload: "p",
      });
      cable.cutAt("BEGIN", "before the server hears it");
      expect(await logOf(database)).toBe("1:1 p");
      expect(cable.cuts).toBe(2);
    }));

  test("during a read is not noticed: the read is repeated", () =>
    withPlace(async (place) => {
      const database = await place.open();
      let runs = 0;
      const found = await database.read("unlucky", function* () {
        runs += 1;
        if (runs === 1) yield* row(sql`SELECT pg_terminate_backend(pg_backend_pid())`);
        return yield* row(sql`SELECT 7 AS n`);
      });
      expect(found).toEqual({ n: 7 });
      expect(runs).toBe(2);
    }));

  test("at every attempt of a read is told in the end", () =>
    withPlace(async (place) => {
      const database = await place.open();
      let runs = 0;
      const error = await rejection(
        database.read("hopeless", function* () {
          runs += 1;
          yield* row(sql`SELECT pg_terminate_backend(pg_backend_pid())`);
        }),
      );
      expect(error).toMatchObject({ code: "CONNECTION_LOST" });
      expect(runs).toBe(4);
    }));
});

describe("an error that the server answers over a living connection", () => {
  // Of the class of lost connections, and of a shutdown: a foreign server was lost, not ours.
  const codes = ["08001", "08006", "57P01"];

  const raising = (sqlstate: string): Statement =>
    spelled({
      sqlite: "",
      postgres: `DO $$ BEGIN RAISE EXCEPTION 'no way to the other server' USING ERRCODE = '${sqlstate}'; END $$`,
    });

  test.each(codes)("with SQLSTATE %s is no lost connection", (sqlstate) =>
    withPlace(async (place) => {
      const database = await place.open({ poolSize: 1 });
      const backend = (): Promise<unknown> =>
        database.read("backend", () => row(sql`SELECT pg_backend_pid() AS pid`));
      const before = await backend();
      let runs = 0;
      const raises = function* (): Tx<void> {
        runs += 1;
        yield* run(raising(sqlstate));
      };
      const failed = { code: "STATEMENT_FAILED", retryable: false, details: { sqlstate } };
      expect(await rejection(database.write("raises", raises))).toMatchObject(failed);
      expect(await rejection(database.read("raises", raises))).toMatchObject(failed);
      expect(runs).toBe(2);
      expect(await backend()).toEqual(before);
    }),
  );

  test("with SQLSTATE 08001 as COMMIT is carried out leaves no doubt: nothing is stored", () =>
    withPlace(async (place) => {
      const database = await place.open();
      await createHeads(database, 0);
      await database.write("trigger", function* () {
        yield* run(
          spelled({
            sqlite: "",
            postgres: `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
              $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '08001'; END $$`,
          }),
        );
        yield* run(sql`
          CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON app_log_head
          DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()`);
      });
      const error = await rejection(database.write(ensureHead, { id: "a" }));
      expect(error).toMatchObject({ code: "STATEMENT_FAILED", details: { sqlstate: "08001" } });
      expect(await database.read("heads", () => rows(sql`SELECT id FROM app_log_head`))).toEqual(
        [],
      );
    }));

  test("with SQLSTATE 08001 in a transaction of a run fails the run at its first attempt", () =>
    withPlace(async (place) => {
      const holdfast = await holdfastOn(await place.open());
      let attempts = 0;
      const asks = workflow("asks", (ctx) =>
        ctx.transaction("ask the other server", function* () {
          attempts += 1;
          yield* run(raising("08001"));
        }),
      );
      await holdfast.work([asks]);
      const error = await rejection((await holdfast.start(asks)).result());
      expect(error).toMatchObject({ cause: { code: "STATEMENT_FAILED" } });
      expect(attempts).toBe(1);
      await holdfast.close();
    }));
});

describe("a connection that breaks while COMMIT is on its way", () => {
  const cases = [
    ["before the server hears it", 0],
    ["before the client hears the answer", 1],
  ] as const;

  test.each(cases)(
    "%s leaves the outcome unknown, and repeating is safe",
    (cutAt, headsAfterwards) =>
      withCable(async (place, cable) => {
        const direct = await place.open();
        await createHeads(direct, 0);
        const database = await place.open({}, cable.urlFor(place.url));
        cable.cutAt("; COMMIT", cutAt);
        const error = await rejection(database.write(ensureHead, { id: "a" }));
        expect(error).toMatchObject({
          code: "OUTCOME_UNKNOWN",
          retryable: true,
        });
        expect(cable.cuts).toBe(1);
        const heads = (): Promise<readonly object[]> =>
          direct.read("heads", () => rows(sql`SELECT id FROM app_log_head`));
        expect(await heads()).toHaveLength(headsAfterwards);
        const again = await database.write(ensureHead, { id: "a" });
        expect(again.key).toBeGreaterThan(0);
        expect(await heads()).toEqual([{ id: "a" }]);
      }),
  );

  test.each(cases)("%s: a set's callers are all told", (cutAt, applied) =>
    withCable(async (place, cable) => {
      const direct = await place.open();
      const heads = await createHeads(direct, 20);
      const database = await place.open({}, cable.urlFor(place.url));
      cable.cutAt("; COMMIT", cutAt);
      const settled = await Promise.allSettled(
        heads.map((head) =>
          database.write(appendEntry, {
            head,
            expectedVersion: 0,
            payload: "p",
          }),
        ),
      );
      for (const result of settled)
        expect(result).toMatchObject({ reason: { code: "OUTCOME_UNKNOWN" } });
      const log = await logOf(direct);
      expect(log === "" ? 0 : log.split(", ").length).toBe(applied * 20);
    }),
  );
});

describe("a COMMIT that the server turns into a ROLLBACK", () => {
  test("is told with a code, and nothing is written", () =>
    withCable(async (place, cable) => {
      const direct = await place.open();
      await createHeads(direct, 0);
      const database = await place.open({}, cable.urlFor(place.url));
      cable.garble("; COMMIT", "; ABORT ");
      const error = await rejection(database.write(ensureHead, { id: "a" }));
      expect(error).toMatchObject({
        code: "BATCH_ROLLED_BACK",
        retryable: true,
      });
      expect(await direct.read("heads", () => rows(sql`SELECT id FROM app_log_head`))).toEqual([]);
    }));
});

describe("a server that is away", () => {
  test("is waited for: calls made meanwhile succeed when it is back", () =>
    withCable(async (place, cable) => {
      const database = await place.open({}, cable.urlFor(place.url));
      const heads = await createHeads(database, 10);
      await cable.unplug();
      const calls = heads.map((head) =>
        database.write(appendEntry, { head, expectedVersion: 0, payload: "p" }),
      );
      const read = database.read("one", () => row(sql`SELECT 1 AS one`));
      const cancelled = rejection(
        database.read("two", () => row(sql`SELECT 2 AS two`), {
          timeout: "50ms",
        }),
      );
      expect(await cancelled).toMatchObject({ code: "DEADLINE_EXCEEDED" });
      await cable.plugIn();
      await Promise.all(calls);
      expect(await read).toEqual({ one: 1 });
      expect((await logOf(database)).split(", ")).toHaveLength(10);
    }));

  test("does not keep close waiting beyond its timeout", () =>
    withCable(async (place, cable) => {
      const database = await place.open({}, cable.urlFor(place.url));
      await cable.unplug();
      const call = rejection(
        database.write("late", () => run(sql`CREATE TABLE app_late (n BIGINT)`)),
      );
      await database.close({ timeout: "100ms" });
      expect(await call).toMatchObject({ code: "DATABASE_CLOSED" });
    }));
});
