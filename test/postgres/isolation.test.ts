import { describe, expect, test } from "vitest";
import { manualClock } from "../../src/model/time/clock.ts";
import { lockRow, type Tx, sql, type Database, type Warning } from "../../src/kernel.ts";
import { effects } from "../../src/effects.ts";
import { schedules } from "../../src/triggers.ts";
import { operation, row, rows, run, plainOperation } from "../../src/sql/operation.ts";
import { createHeads } from "./log.ts";
import { until, withPlace } from "./place.ts";
import type { Place } from "./place.ts";

interface Setting {
  readonly isolation: string;
  readonly lock: string;
}

/** How the transaction that this runs in was begun. */
function* setting(): Tx<Setting> {
  const found = yield* row<Setting>(sql`
    SELECT current_setting('transaction_isolation') AS isolation, current_setting('lock_timeout') AS lock`);
  if (found === undefined) throw new Error("The server knows its settings.");
  return found;
}

const user: Setting = { isolation: "serializable", lock: "40ms" };
const userLocking: Setting = { isolation: "read committed", lock: "40ms" };
const ours: Setting = { isolation: "read committed", lock: "2s" };
const forms = { key: () => "k", one: setting };

/** Lets a statement fail in ways that cannot be staged. */
async function createRaise(place: Place): Promise<void> {
  await place.shell().unsafe(`
    CREATE FUNCTION ${place.appSchema}.app_raise(sqlstate TEXT) RETURNS VOID LANGUAGE plpgsql
    AS $$ BEGIN RAISE EXCEPTION 'secret' USING ERRCODE = sqlstate; END $$`);
}

describe("the transaction of a call", () => {
  test.each([
    ["an operation of a user", operation("mine", forms), undefined, user],
    [
      "one that says readCommitted",
      operation("mine", { ...forms, isolation: "readCommitted" }),
      undefined,
      userLocking,
    ],
    ["one whose caller says so", operation("mine", forms), "readCommitted", userLocking],
    ["one of ours", plainOperation("ours", forms), undefined, ours],
  ] as const)("of %s", (_, called, isolation, expected) =>
    withPlace(async (place) => {
      const database = await place.open();
      expect(await database.write(called, undefined, { isolation })).toEqual(expected);
    }),
  );

  test("of a body without an operation", () =>
    withPlace(async (place) => {
      const database = await place.open();
      expect(await database.write("mine", setting)).toEqual(user);
      expect(await database.write("mine", setting, { isolation: "readCommitted" })).toEqual(
        userLocking,
      );
    }));

  test("of what an effect does in the database", () =>
    withPlace(async (place) => {
      const store = effects(await place.open());
      const turn = { kind: "run", id: "r" };
      const envelope = { kind: "look", input: null };
      expect(await store.transact(turn, "a", envelope, setting)).toEqual(user);
      expect(
        await store.transact(turn, "b", envelope, setting, {
          isolation: "readCommitted",
        }),
      ).toEqual(userLocking);
    }));

  test("of what a schedule fires", () =>
    withPlace(async (place) => {
      const clock = manualClock(0);
      const store = schedules(await place.open({ clock }));
      await store.put("look", "a", { every: "1m" });
      for (const [isolation, expected] of [
        [undefined, user],
        ["readCommitted", userLocking],
      ] as const) {
        const fired: unknown[] = [];
        const running = store.run(
          { look: () => setting() },
          {
            ...(isolation && { isolation }),
            onFired: ({ value }) => fired.push(value),
          },
        );
        clock.advance(60_000);
        await until(() => fired.length > 0);
        await running.close();
        expect(fired[0]).toEqual(expected);
      }
    }));
});

describe("locks between bodies of users", () => {
  test("are waited for twice as long at each run, up to two seconds", () =>
    withPlace(async (place) => {
      const database = await place.open();
      await createRaise(place);
      const waits: string[] = [];
      await database.write("locked out", function* () {
        waits.push((yield* setting()).lock);
        if (waits.length < 9) yield* row(sql`SELECT app_raise('55P03')`);
      });
      expect(waits.join(" ")).toBe("40ms 80ms 160ms 320ms 640ms 1280ms 2s 2s 2s");
    }));

  test("taken in opposing orders by 20 callers reject none of them, and are told of once", () =>
    withPlace(async (place) => {
      const warnings: Warning[] = [];
      const database = await place.open({
        poolSize: 10,
        onWarning: (warning) => warnings.push(warning),
      });
      const [first = 0, second = 0] = await createHeads(database, 2);
      await opposing(database, [first, second], 20, 5);
      const versions = await database.read("versions", () =>
        rows(sql`SELECT version FROM app_log_head ORDER BY key`),
      );
      expect(versions).toEqual([{ version: 100 }, { version: 100 }]);
      const told = warnings.filter(({ code }) => code === "LOCK_CONTENTION");
      // Whether they met often enough is for the server to say.
      expect(told.length).toBeLessThanOrEqual(1);
    }));

  test("held by a stranger keep only those waiting who want that row, and are told of with the names", () =>
    withPlace(async (place) => {
      const warnings: Warning[] = [];
      const database = await place.open({
        onWarning: (warning) => warnings.push(warning),
      });
      const [held = 0, free = 0] = await createHeads(database, 2);
      const shell = place.shell();
      await shell`BEGIN`;
      await shell`UPDATE app_log_head SET version = 7 WHERE key = ${held}`;
      const waiting = database.write("raise", () => raised(held));
      await until(() => warnings.length > 0);
      expect(warnings.map(({ code }) => code)).toEqual(["LOCK_CONTENTION"]);
      expect(warnings[0]?.message).toContain('"raise"');
      // The same name, which would wait for ever if it stood behind the other.
      expect(await database.write("raise", () => raised(free))).toBe(1);
      await shell`COMMIT`;
      expect(await waiting).toBe(8);
    }));
});

function* raised(key: number): Tx<number> {
  const found = yield* row<{ version: number }>(
    sql`SELECT version FROM app_log_head WHERE key = ${key} ${lockRow}`,
  );
  const version = (found?.version ?? 0) + 1;
  yield* run(sql`UPDATE app_log_head SET version = ${version} WHERE key = ${key}`);
  return version;
}

async function opposing(
  database: Database,
  [first, second]: readonly [number, number],
  callers: number,
  each: number,
): Promise<void> {
  await Promise.all(
    Array.from({ length: callers }, async (_, caller) => {
      const keys = caller % 2 === 0 ? [first, second] : [second, first];
      for (let turn = 0; turn < each; turn += 1)
        await database.write(
          "raise both",
          function* () {
            for (const key of keys) yield* raised(key);
          },
          { isolation: "readCommitted" },
        );
    }),
  );
}
