import { describe, expect, test } from "vitest";
import { row, rows, run, sql } from "../../src/kernel.ts";
import type { Parameter } from "../../src/sql/statement.ts";
import { rejection } from "../conformance/backend.ts";
import { withPlace } from "./place.ts";

describe("values of an app's own Postgres tables", () => {
  test("come back as text, numbers, bytes or null, as from SQLite", () =>
    withPlace(async (place) => {
      const database = await place.open();
      const found = await database.read("types", () =>
        row(sql`
          SELECT true AS yes, false AS no, NULL::boolean AS unknown,
            '{"a": [1]}'::jsonb AS doc, 12.50::numeric AS price, 12::numeric AS whole,
            avg(n) AS mean, sum(n) AS total, count(*) AS n, 0.5::float8 AS half,
            '2026-01-02 03:04:05+00'::timestamptz AT TIME ZONE 'UTC' AS at, '2026-01-02'::date AS day,
            ARRAY[1, 2] AS list, decode('00ff', 'hex') AS raw, 7::int2 AS small, '7'::xid8 AS tx
          FROM (VALUES (1::bigint), (2)) AS given(n)`),
      );
      expect(found).toEqual({
        yes: 1,
        no: 0,
        unknown: null,
        doc: '{"a": [1]}',
        price: "12.50",
        whole: 12,
        mean: "1.5000000000000000",
        total: 3,
        n: 2,
        half: 0.5,
        at: "2026-01-02 03:04:05",
        day: "2026-01-02",
        list: "{1,2}",
        raw: new Uint8Array([0, 255]),
        small: 7,
        tx: 7,
      });
    }));

  test("are given as text, numbers and bytes, whatever the column's type", () =>
    withPlace(async (place) => {
      const database = await place.open();
      await database.write("table", () =>
        run(sql`
          CREATE TABLE app_thing (
            flag BOOLEAN, doc JSONB, at TIMESTAMPTZ, price NUMERIC(10, 2), ratio FLOAT8,
            small INTEGER, note TEXT, raw BYTEA)`),
      );
      await database.write("insert", () =>
        run(sql`
          INSERT INTO app_thing VALUES (
            ${1}, ${'{"a": "b"}'}, ${"2026-01-02T03:04:05Z"}, ${"12.5"}, ${0.25},
            ${7}, ${42}, ${new Uint8Array([1, 2])})`),
      );
      await database.write("insert from a query", () =>
        run(sql`
          INSERT INTO app_thing (flag, small, note, raw)
          SELECT ${0}, ${8n}, ${"x"}, ${null} WHERE NOT EXISTS (SELECT 1 FROM app_thing WHERE small = ${8})`),
      );
      const found = await database.read("all", () =>
        rows(sql`
          SELECT flag, doc, extract(epoch FROM at)::bigint AS at, price, ratio, small, note, raw
          FROM app_thing ORDER BY small`),
      );
      expect(found).toEqual([
        {
          flag: 1,
          doc: '{"a": "b"}',
          at: 1_767_323_045,
          price: "12.50",
          ratio: 0.25,
          small: 7,
          note: "42",
          raw: new Uint8Array([1, 2]),
        },
        {
          flag: 0,
          doc: null,
          at: null,
          price: null,
          ratio: null,
          small: 8,
          note: "x",
          raw: null,
        },
      ]);
    }));

  test.each([
    ["NaN", Number.NaN],
    ["an integer beyond 2^53", 2 ** 53],
    ["text with U+0000", "a\0b"],
    ["text with a lone surrogate", "a\ud800b"],
    ["a boolean", true],
    ["an array with undefined", [undefined]],
    ["an array with a large bigint", [2n ** 60n]],
  ])("%s is refused before it is sent", (_, value) =>
    withPlace(async (place) => {
      const database = await place.open();
      const error = await rejection(
        database.read("odd", () => row(sql`SELECT ${value as Parameter}::text`)),
      );
      expect(error).toMatchObject({ code: "PARAMETER_INVALID" });
    }),
  );

  test.each([
    ["a bigint", sql`SELECT 9007199254740993::bigint AS far`],
    ["a sum", sql`SELECT sum(n) AS far FROM (VALUES (9007199254740991), (2)) AS given(n)`],
    ["a negative one", sql`SELECT (-9007199254740993)::bigint AS far`],
  ])("%s beyond 2^53 is a corrupt row that names its column", (_, statement) =>
    withPlace(async (place) => {
      const database = await place.open();
      expect(await rejection(database.read("far", () => rows(statement)))).toMatchObject({
        code: "CORRUPT_ROW",
        details: { column: "far" },
      });
    }),
  );

  test("a number that is too large for INTEGER says how to make the column wider", () =>
    withPlace(async (place) => {
      const database = await place.open();
      await database.write("table", () => run(sql`CREATE TABLE app_account (cents INTEGER)`));
      const error = await rejection(
        database.write("deposit", () =>
          run(sql`INSERT INTO app_account (cents) VALUES (${3_000_000_000})`),
        ),
      );
      expect(error).toMatchObject({
        code: "NUMBER_OUT_OF_RANGE",
        retryable: false,
        details: { sqlstate: "22003", operation: "deposit" },
      });
      expect(error.message).toContain("INTEGER has 32 bits on Postgres");
      expect(error.message).toContain("${integer}");
      expect(error.message).not.toContain("3000000000");
    }));

  test("`run` counts changed rows, `row` takes the first of many", () =>
    withPlace(async (place) => {
      const database = await place.open();
      const counts = await database.write("counts", function* () {
        const created = yield* run(sql`CREATE TABLE app_n (n BIGINT)`);
        const inserted = yield* run(sql`INSERT INTO app_n VALUES (1), (2), (3)`);
        const updated = yield* run(sql`UPDATE app_n SET n = n + 1 WHERE n > ${1}`);
        const first = yield* row(sql`SELECT n FROM app_n ORDER BY n DESC`);
        const none = yield* row(sql`SELECT n FROM app_n WHERE n > 9`);
        return { created, inserted, updated, first, none };
      });
      expect(counts).toEqual({
        created: 0,
        inserted: 3,
        updated: 2,
        first: { n: 4 },
        none: undefined,
      });
    }));
});
