import { describe, expect, test } from "vitest";
import {
  integer,
  text,
  rollbackWith,
  rows,
  run,
  type Tx,
  sql,
  type AppMigration,
  type Database,
} from "../../../src/kernel.ts";
import { manualClock } from "../../../src/model/time/clock.ts";
import { rejection, withDatabase, withPlace } from "../backend.ts";
import type { Backend } from "../backend.ts";

const createGoods: AppMigration = {
  name: "0001_goods",
  *up() {
    yield* run(sql`CREATE TABLE app_goods (id ${text} PRIMARY KEY, stock ${integer} NOT NULL)`);
    yield* run(sql`INSERT INTO app_goods (id, stock) VALUES ('hat', 3)`);
  },
};
const addPrice: AppMigration = {
  name: "0002_price",
  up: () => run(sql`ALTER TABLE app_goods ADD COLUMN cents ${integer}`),
};
const fillPrice: AppMigration = {
  name: "0003_prices",
  up: () => run(sql`UPDATE app_goods SET cents = 500`),
};

function goods(database: Database): Promise<unknown> {
  return database.read("goods", () => rows(sql`SELECT * FROM app_goods`));
}

function recorded(database: Database): Promise<unknown> {
  return database.read("recorded", () =>
    rows(
      sql`SELECT app, position, name, applied_at AS at FROM holdfast_app_migration ORDER BY app, position`,
    ),
  );
}

/** How an app makes its own tables, on both databases. */
export function setUpSuite(backend: Backend): void {
  describe("setting up an app's own tables", () => {
    test("applies what is missing, in order and once, and records it", () =>
      withPlace(backend, async (place) => {
        const clock = manualClock(1_000);
        const database = await place.open({ clock });
        expect(await database.setUp("shop", [createGoods])).toEqual({
          applied: ["0001_goods"],
        });
        clock.set(2_000);
        const all = [createGoods, addPrice, fillPrice];
        expect(await database.setUp("shop", all)).toEqual({
          applied: ["0002_price", "0003_prices"],
        });
        expect(await database.setUp("shop", all)).toEqual({ applied: [] });
        expect(await goods(database)).toEqual([{ id: "hat", stock: 3, cents: 500 }]);
        expect(await recorded(database)).toEqual([
          { app: "shop", position: 0, name: "0001_goods", at: 1_000 },
          { app: "shop", position: 1, name: "0002_price", at: 2_000 },
          { app: "shop", position: 2, name: "0003_prices", at: 2_000 },
        ]);
      }));

    test("is done for each app on its own, and for none at all", () =>
      withDatabase(backend, async (database) => {
        await database.setUp("shop", [createGoods]);
        const other = {
          ...createGoods,
          up: () => run(sql`CREATE TABLE app_other (id ${text})`),
        };
        expect(await database.setUp("office", [other])).toEqual({
          applied: ["0001_goods"],
        });
        expect(await database.setUp("nothing", [])).toEqual({ applied: [] });
      }));

    test("leaves alone what newer code has set up, as long as it began alike", () =>
      withDatabase(backend, async (database) => {
        await database.setUp("shop", [createGoods, addPrice]);
        expect(await database.setUp("shop", [createGoods])).toEqual({
          applied: [],
        });
        expect(await database.setUp("shop", [])).toEqual({ applied: [] });
      }));

    test.each<[string, readonly AppMigration[], number, string]>([
      ["a recorded one is missing", [addPrice, fillPrice], 0, "0002_price"],
      ["two have changed places", [addPrice, createGoods], 0, "0002_price"],
      ["one was put in between", [createGoods, fillPrice, addPrice], 1, "0003_prices"],
    ])("refuses a list in which %s, and changes nothing", (_, migrations, position, given) =>
      withDatabase(backend, async (database) => {
        await database.setUp("shop", [createGoods, addPrice]);
        const before = await recorded(database);
        const error = await rejection(database.setUp("shop", migrations));
        expect(error).toMatchObject({
          code: "SET_UP_CONFLICT",
          retryable: false,
          details: { app: "shop", position, given },
        });
        expect(error.message).toContain("add new migrations at the end");
        expect(await recorded(database)).toEqual(before);
      }),
    );

    test("applies all or nothing: what failed says where, and can be mended", () =>
      withDatabase(backend, async (database) => {
        const broken: AppMigration = {
          name: "0002_price",
          up: () => run(sql`ALTER TABLE app_nowhere ADD COLUMN cents ${integer}`),
        };
        const error = await rejection(database.setUp("shop", [createGoods, broken]));
        expect(error).toMatchObject({
          code: "STATEMENT_FAILED",
          details: { app: "shop", migration: "0002_price" },
        });
        expect(error.message).toContain('"0002_price" of "shop"');
        expect(await recorded(database)).toEqual([]);
        expect(await rejection(goods(database))).toMatchObject({
          code: "STATEMENT_FAILED",
        });
        expect(await database.setUp("shop", [createGoods, addPrice])).toEqual({
          applied: ["0001_goods", "0002_price"],
        });
      }));

    test("a migration's own error reaches the caller as it is", () =>
      withDatabase(backend, async (database) => {
        class NoHats extends Error {}
        const picky: AppMigration = {
          name: "0002",
          *up() {
            const found = yield* rows(sql`SELECT id FROM app_goods`);
            if (found.length === 1) throw new NoHats("no hats");
          },
        };
        expect(await rejection(database.setUp("shop", [createGoods, picky]))).toBeInstanceOf(
          NoHats,
        );
        expect(await recorded(database)).toEqual([]);
      }));

    test.each<[string, () => Tx<unknown>, string]>([
      [
        "is no generator function",
        (() => undefined) as unknown as () => Tx<unknown>,
        "generator function",
      ],
      ["awaits", (async () => undefined) as unknown as () => Tx<unknown>, "generator function"],
      [
        "forgot its yield*",
        function* () {
          void (run(sql`CREATE TABLE app_lost (id ${text})`) as unknown);
        },
        "yield*",
      ],
      ["rolls back", () => rollbackWith("undone"), "rollbackWith"],
    ])("a migration that %s is refused", (_, up, words) =>
      withDatabase(backend, async (database) => {
        const error = await rejection(database.setUp("shop", [createGoods, { name: "0002", up }]));
        expect(error).toMatchObject({ code: "OPERATION_INVALID" });
        expect(error.message).toContain(words);
        expect(await recorded(database)).toEqual([]);
      }),
    );

    test.each<[string, unknown, unknown, string, string | undefined]>([
      ["no name of the app", "", [], "NAME_INVALID", undefined],
      ["no app", undefined, [], "NAME_INVALID", undefined],
      ["no list", "shop", undefined, "OPTION_INVALID", "migrations"],
      ["no migration", "shop", [null], "OPTION_INVALID", "migrations[0]"],
      [
        "a hole in the list",
        "shop",
        Array.from({ length: 1 }).concat(new Array(1)),
        "OPTION_INVALID",
        "migrations[0]",
      ],
      ["no name", "shop", [{ up() {} }], "NAME_INVALID", undefined],
      [
        "no body",
        "shop",
        [{ name: "1", up: "CREATE TABLE" }],
        "OPTION_INVALID",
        "migrations[0].up",
      ],
      [
        "a way back",
        "shop",
        [{ name: "1", up() {}, down() {} }],
        "OPTION_INVALID",
        "migrations[0].down",
      ],
      [
        "one name twice",
        "shop",
        [createGoods, { ...addPrice, name: "0001_goods" }],
        "OPTION_INVALID",
        "migrations[1].name",
      ],
    ])("refuses %s", (_, app, migrations, code, option) =>
      withDatabase(backend, async (database) => {
        const error = await rejection(database.setUp(app as string, migrations as AppMigration[]));
        expect(error).toMatchObject({ code });
        expect(error.details?.["option"]).toBe(option);
        expect(await recorded(database)).toEqual([]);
      }),
    );

    test("refuses options that do not exist, and a closed database", () =>
      withPlace(backend, async (place) => {
        const database = await place.open();
        const options = { force: true } as object;
        expect(await rejection(database.setUp("shop", [createGoods], options))).toMatchObject({
          code: "OPTION_INVALID",
          details: { option: "force" },
        });
        await database.close();
        expect(await rejection(database.setUp("shop", [createGoods]))).toMatchObject({
          code: "DATABASE_CLOSED",
        });
      }));

    test("many calls at once apply each migration once", () =>
      withPlace(backend, async (place) => {
        const database = await place.open();
        const others = backend.survives ? await Promise.all([place.open(), place.open()]) : [];
        const all = [createGoods, addPrice, fillPrice];
        const reports = await Promise.all(
          [database, ...others].flatMap((each) =>
            Array.from({ length: 5 }, () => each.setUp("shop", all)),
          ),
        );
        expect(reports.flatMap(({ applied }) => applied)).toEqual([
          "0001_goods",
          "0002_price",
          "0003_prices",
        ]);
        expect(await goods(database)).toEqual([{ id: "hat", stock: 3, cents: 500 }]);
      }));
  });
}
