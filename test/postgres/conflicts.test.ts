import { describe, expect, test } from "vitest";
import { row, run, type Tx, type Statement } from "../../src/kernel.ts";
import { spelled, sql } from "../../src/sql/statement.ts";
import { appendEntry } from "../fixtures/append-entry.ts";
import { Barrier, patience } from "./barrier.ts";
import { createHeads, logOf } from "./log.ts";
import { rejection } from "../conformance/backend.ts";
import { until, withPlace } from "./place.ts";
import type { Place } from "./place.ts";

function* touch(head: number): Tx<void> {
  yield* run(sql`UPDATE app_log_head SET version = version + 1 WHERE key = ${head}`);
}

/** Lets a statement fail in ways that cannot be staged. */
async function createRaise(place: Place): Promise<void> {
  await place.shell().unsafe(`
    CREATE FUNCTION ${place.appSchema}.app_raise(sqlstate TEXT) RETURNS VOID LANGUAGE plpgsql
    AS $$ BEGIN RAISE EXCEPTION 'secret' USING ERRCODE = sqlstate; END $$`);
}

function* raise(sqlstate: string): Tx<void> {
  yield* row(sql`SELECT app_raise(${sqlstate})`);
}

describe("transactions in each other's way", () => {
  test("a deadlock is resolved by running its victim again", () =>
    withPlace(async (place) => {
      const database = await place.open();
      const [first = 0, second = 0] = await createHeads(database, 2);
      const barrier = await Barrier.raise(place);
      const touchBoth = (a: number, b: number) =>
        database.write(`touch ${a} and ${b}`, function* () {
          // However long the other one takes after its victim has gone.
          yield* patience();
          yield* touch(a);
          yield* barrier.stop();
          yield* touch(b);
        });
      const both = [touchBoth(first, second), touchBoth(second, first)];
      await barrier.stopped(2);
      await barrier.lift();
      await Promise.all(both);
      const versions = await database.read("versions", () =>
        row(sql`SELECT sum(version) AS total FROM app_log_head`),
      );
      expect(versions).toEqual({ total: 4 });
      expect(database.stats().reruns).toBeGreaterThan(0);
      expect(database.stats().busyRetries).toBe(0);
    }));

  test("a deadlock is not for the body to make sense of", () =>
    withPlace(async (place) => {
      const database = await place.open();
      const [first = 0, second = 0] = await createHeads(database, 2);
      const barrier = await Barrier.raise(place);
      let caught = 0;
      const careless = (a: number, b: number) =>
        database.write(`careless ${a}`, function* () {
          yield* touch(a);
          yield* barrier.stop();
          try {
            yield* touch(b);
          } catch {
            caught += 1;
            throw new Error("the second head is missing");
          }
          return "both";
        });
      const both = [careless(first, second), careless(second, first)];
      await barrier.stopped(2);
      await barrier.lift();
      expect(await Promise.all(both)).toEqual(["both", "both"]);
      expect(caught).toBeGreaterThan(0);
    }));

  test("serialization failures are met by running the body again, for longer than ten times", () =>
    withPlace(async (place) => {
      const database = await place.open();
      await createRaise(place);
      let runs = 0;
      const done = await database.write("unlucky", function* () {
        runs += 1;
        if (runs <= 12) yield* raise("40001");
        return "done";
      });
      expect(done).toBe("done");
      expect(database.stats()).toMatchObject({ reruns: 12, rollbacks: 0 });
    }));

  test("a lock is waited for longer than one statement may wait", () =>
    withPlace(async (place) => {
      const database = await place.open();
      const [head = 0] = await createHeads(database, 1);
      const shell = place.shell();
      await shell`BEGIN`;
      await shell`UPDATE app_log_head SET version = version WHERE key = ${head}`;
      const call = database.write(appendEntry, {
        head,
        expectedVersion: 0,
        payload: "patient",
      });
      await until(() => database.stats().busyRetries > 0);
      await shell`COMMIT`;
      expect(await call).toEqual({ version: 1 });
      expect(await logOf(database)).toBe("1:1 patient");
    }));

  test("a table that changed under a prepared statement is asked again", () =>
    withPlace(async (place) => {
      const database = await place.open({ poolSize: 1 });
      await createHeads(database, 1);
      const first = (): Promise<unknown> =>
        database.read("all", () => row(sql`SELECT * FROM app_log_head`));
      expect(await first()).toEqual({ key: 1, id: "h0", version: 0 });
      await place.shell()`ALTER TABLE app_log_head ADD COLUMN note TEXT`;
      expect(await first()).toEqual({
        key: 1,
        id: "h0",
        version: 0,
        note: null,
      });
    }));
});

describe("several that create the same thing at once", () => {
  test.each([
    ["a table", "CREATE TABLE IF NOT EXISTS app_raced (n BIGINT)"],
    ["an index", "CREATE INDEX IF NOT EXISTS app_raced ON app_log_head (id)"],
  ])("%s: who was late runs again and finds it", (_, text) =>
    withPlace(async (place) => {
      const database = await place.open({ poolSize: 2 });
      await createHeads(database, 1);
      const shell = place.shell();
      const path = `SET search_path = ${place.appSchema}`;
      await shell.unsafe(`${path}; BEGIN; ${text}`);
      const created = database.write("create", () => run(said(text)));
      const watch = place.shell();
      await until(async () => {
        const [waiting] = await watch<{ n: number }[]>`
          SELECT count(*)::int AS n FROM pg_stat_activity
          WHERE application_name = ${place.app} AND wait_event_type = 'Lock'`;
        return waiting?.n === 1;
      });
      await shell.unsafe("COMMIT");
      expect(await created).toBe(0);
      // Once for the conflict, and as often as the lock outlasted its patience.
      expect(database.stats().reruns).toBeGreaterThan(0);
    }),
  );

  test("a name that another thing has is told after a few runs, not as a conflict", () =>
    withPlace(async (place) => {
      const database = await place.open();
      const create = (table: string) =>
        database.write("create", () =>
          run(
            said(
              `CREATE TABLE IF NOT EXISTS ${table} (n BIGINT, CONSTRAINT app_key PRIMARY KEY (n))`,
            ),
          ),
        );
      await create("app_one");
      expect(await rejection(create("app_two"))).toMatchObject({
        code: "STATEMENT_FAILED",
        retryable: false,
        details: { sqlstate: "42P07" },
      });
      expect(database.stats().reruns).toBe(5);
    }));

  test("a function is replaced, and a right granted, by all of them", () =>
    withPlace(async (place) => {
      const database = await place.open({ poolSize: 8 });
      await createHeads(database, 1);
      const all = (text: string) =>
        Promise.all(
          Array.from({ length: 8 }, (_, index) =>
            database.write(`replace ${index}`, () => run(said(text))),
          ),
        );
      for (const text of [
        "CREATE OR REPLACE FUNCTION app_one() RETURNS INT LANGUAGE sql AS 'SELECT 1'",
        "GRANT SELECT ON app_log_head TO PUBLIC",
        "CREATE OR REPLACE VIEW app_view AS SELECT 1 AS n",
      ])
        for (let round = 0; round < 3; round += 1) expect(await all(text)).toHaveLength(8);
    }));

  test("what exists already is no race without IF NOT EXISTS", () =>
    withPlace(async (place) => {
      const database = await place.open();
      const create = () =>
        database.write("create", () => run(sql`CREATE TABLE app_twice (n BIGINT)`));
      await create();
      expect(await rejection(create())).toMatchObject({
        code: "STATEMENT_FAILED",
        details: { sqlstate: "42P07" },
      });
      expect(database.stats().reruns).toBe(0);
    }));
});

function said(text: string): Statement {
  return spelled({ sqlite: text, postgres: text });
}

describe("statements the server refuses", () => {
  const cases: readonly [string, () => Tx<unknown>, object][] = [
    [
      "a violated CHECK",
      () => run(sql`INSERT INTO app_log (head, version, payload) VALUES (1, 1, ${"refused"})`),
      {
        code: "CONSTRAINT_VIOLATED",
        details: { constraint: "app_log_payload", table: "app_log" },
      },
    ],
    [
      "a violated UNIQUE",
      () => run(sql`INSERT INTO app_log_head (id, version) VALUES (${"h0"}, 0)`),
      {
        code: "CONSTRAINT_VIOLATED",
        details: { constraint: "app_log_head_id", table: "app_log_head" },
      },
    ],
    [
      "a missing value",
      () => run(sql`INSERT INTO app_log_head (id, version) VALUES (NULL, ${1})`),
      { code: "CONSTRAINT_VIOLATED", details: { table: "app_log_head" } },
    ],
    [
      "text where a number belongs",
      () => row(sql`SELECT key FROM app_log_head WHERE key = ${"my secret"}`),
      { code: "STATEMENT_FAILED", details: { sqlstate: "22P02" } },
    ],
    [
      "a table that is not there",
      () => row(sql`SELECT n FROM app_nowhere WHERE n = ${"my secret"}`),
      { code: "STATEMENT_FAILED", details: { sqlstate: "42P01" } },
    ],
    ["a full disk", () => raise("53100"), { code: "DISK_FULL", retryable: true }],
    ["a failing disk", () => raise("58030"), { code: "DISK_FAILED" }],
    [
      "a cancelled statement",
      () => raise("57014"),
      {
        code: "STATEMENT_INTERRUPTED",
        retryable: true,
        details: { sqlstate: "57014" },
      },
    ],
    [
      "a server without memory",
      () => raise("53200"),
      { code: "STATEMENT_INTERRUPTED", retryable: true },
    ],
    ["a failing system", () => raise("58000"), { code: "DISK_FAILED" }],
    ["damaged data", () => raise("XX001"), { code: "DATABASE_DAMAGED" }],
  ];

  test.each(cases)("%s is named by code, without values", (_, body, expected) =>
    withPlace(async (place) => {
      const database = await place.open();
      await createHeads(database, 1);
      await createRaise(place);
      const error = await rejection(database.write("refused", body));
      expect(error).toMatchObject(expected);
      expect(`${error.stack} ${JSON.stringify(error)}`).not.toMatch(/secret|\bh0\b/);
      expect(error.cause).toBeUndefined();
    }),
  );

  test("a write in a read and a write where none is allowed differ", () =>
    withPlace(async (place) => {
      const database = await place.open();
      const [head = 0] = await createHeads(database, 1);
      const entry = { head, expectedVersion: 0, payload: "p" };
      expect(await rejection(database.read(appendEntry, entry))).toMatchObject({
        code: "WRITE_IN_READ",
      });
      expect(
        await rejection(
          database.write("standby", function* () {
            yield* run(sql`SET TRANSACTION READ ONLY`);
            yield* appendEntry(entry);
          }),
        ),
      ).toMatchObject({ code: "READ_ONLY" });
    }));

  test("something yielded that is no request is a slip that is named", () =>
    withPlace(async (place) => {
      const database = await place.open();
      const error = await rejection(
        database.write("slip", function* () {
          yield touch(1) as never;
        }),
      );
      expect(error).toMatchObject({ code: "OPERATION_INVALID" });
      expect(error.message).toContain("yield*");
    }));
});
