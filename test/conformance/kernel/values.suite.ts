import { describe, expect, test } from "vitest";
import {
  bytes,
  integer,
  integersOf,
  strict,
  text,
  textsOf,
  row,
  rows,
  run,
  sql,
  type Database,
} from "../../../src/kernel.ts";
import type { Parameter, Statement } from "../../../src/sql/statement.ts";
import { rejection, withDatabase } from "../backend.ts";
import type { Backend } from "../backend.ts";

/** A list that says that it goes on for ever. */
function lying<T>(item: T): readonly T[] {
  let looks = 0;
  return new Proxy([item], {
    get(list, name) {
      looks += 1;
      if (looks > 1_000) throw new Error("Walked.");
      if (name === "length") return 2 ** 32 - 1;
      return typeof name === "string" && /^\d+$/.test(name)
        ? item
        : (Reflect.get(list, name) as unknown);
    },
    has: () => true,
  });
}

export function valuesSuite(backend: Backend): void {
  const onValues = (body: (database: Database) => Promise<void>) => () =>
    withDatabase(backend, async (database) => {
      await database.write("table", () =>
        run(
          sql`CREATE TABLE app_value (id ${text} PRIMARY KEY, n ${integer}, t ${text}, b ${bytes}) ${strict}`,
        ),
      );
      await body(database);
    });
  const store = (database: Database, column: "n" | "t" | "b", value: Parameter): Promise<number> =>
    database.write("store", () =>
      column === "n"
        ? run(sql`INSERT INTO app_value (id, n) VALUES ('v', ${value})`)
        : column === "t"
          ? run(sql`INSERT INTO app_value (id, t) VALUES ('v', ${value})`)
          : run(sql`INSERT INTO app_value (id, b) VALUES ('v', ${value})`),
    );
  const load = (database: Database) =>
    database.read("load", () =>
      row<{ n: unknown; t: unknown; b: unknown }>(
        sql`SELECT n, t, b FROM app_value WHERE id = 'v'`,
      ),
    );

  describe("values", () => {
    test.each([0, -1, 5, 1_794_780_204_257, Number.MAX_SAFE_INTEGER, -Number.MAX_SAFE_INTEGER])(
      "the integer %d comes back as itself",
      (value) =>
        onValues(async (database) => {
          await store(database, "n", value);
          expect(await load(database)).toMatchObject({
            n: value,
            t: null,
            b: null,
          });
        })(),
    );

    test(
      "integers are stored as integers, so that arithmetic and JSON stay exact",
      onValues(async (database) => {
        await store(database, "n", 7);
        const found = await database.read("half", () =>
          row(sql`SELECT n / 2 AS half FROM app_value`),
        );
        expect(found).toEqual({ half: 3 });
      }),
    );

    test(
      "a bigint within the safe range is stored as an integer",
      onValues(async (database) => {
        await store(database, "n", 42n);
        expect(await load(database)).toMatchObject({ n: 42 });
      }),
    );

    test(
      "lists are bound by integersOf and textsOf, of any length; an array by itself is refused and says so",
      onValues(async (database) => {
        for (const [id, n] of [
          ["a", 1],
          ["naïve 'b' \\", -2],
          ["c", Number.MAX_SAFE_INTEGER],
        ] as const)
          await database.write("insert", () =>
            run(sql`INSERT INTO app_value (id, n) VALUES (${id}, ${n})`),
          );
        const found = async (list: Statement): Promise<readonly unknown[]> => {
          const answer = await database.read("list", () =>
            rows<{ n: unknown }>(sql`SELECT n FROM app_value WHERE ${list} ORDER BY id`),
          );
          return answer.map(({ n }) => n);
        };
        const numbers = [1, -2, Number.MAX_SAFE_INTEGER];
        const texts = ["a", "naïve 'b' \\", "c"];
        for (const count of [0, 1, 3]) {
          const some = numbers.slice(0, count);
          const expected = count === 3 ? [1, Number.MAX_SAFE_INTEGER, -2] : some;
          expect(await found(sql`n IN ${integersOf(some)}`)).toEqual(expected);
          const names = texts.slice(0, count);
          expect(await found(sql`id IN ${textsOf(names)}`)).toEqual(expected);
        }
        for (const list of [
          sql`n IN (${numbers})`,
          sql`id IN (${texts})`,
          sql`id IN (${[]})`,
          sql`id = ${["a"]}`,
          sql`id IN ${texts}`,
        ])
          expect(await rejection(found(list))).toMatchObject({
            code: "PARAMETER_INVALID",
            retryable: false,
            details: { position: 1, found: "an array" },
            message: expect.stringContaining("IN ${textsOf(items)}") as string,
          });
      }),
    );

    test.each<[string, () => Statement]>([
      ["a fraction", () => integersOf([1, 0.5])],
      ["a text among numbers", () => integersOf([1, "2" as never])],
      ["a number beyond 2^53", () => integersOf([2 ** 53])],
      ["no list", () => integersOf("12" as never)],
      ["nothing", () => textsOf(undefined as never)],
      ["a number among texts", () => textsOf(["a", 2 as never])],
      ["text with U+0000", () => textsOf(["a", "b\0"])],
      ["text with a lone surrogate", () => textsOf(["\ud800", "b"])],
      ["holes", () => textsOf(["a"].concat(new Array(2)))],
      ["nothing but holes", () => integersOf(new Array(2))],
      ["a false length", () => textsOf(lying("a"))],
      ["a false length of numbers", () => integersOf(lying(1))],
    ])("a list with %s is refused before it is bound", (_, list) => {
      expect(list).toThrow(expect.objectContaining({ code: "PARAMETER_INVALID" }));
    });

    test(
      "text beyond ASCII and quotes comes back as itself",
      onValues(async (database) => {
        const value = "naïve 🪢 'quoted' \"double\" \\ \n end";
        await store(database, "t", value);
        expect(await load(database)).toMatchObject({ t: value });
      }),
    );

    test(
      "bytes come back as a plain Uint8Array",
      onValues(async (database) => {
        await store(database, "b", new Uint8Array([0, 1, 254, 255]));
        const found = await load(database);
        expect(found?.b).toEqual(new Uint8Array([0, 1, 254, 255]));
        expect(Object.getPrototypeOf(found?.b)).toBe(Uint8Array.prototype);
      }),
    );

    test(
      "counts and sums are numbers",
      onValues(async (database) => {
        await store(database, "n", 40);
        await database.write("more", () => run(sql`INSERT INTO app_value (id, n) VALUES ('w', 2)`));
        const found = await database.read("sum", () =>
          row(sql`SELECT count(*) AS n, sum(n) AS total FROM app_value`),
        );
        expect(found).toEqual({ n: 2, total: 42 });
      }),
    );

    test(
      "ids are ordered by code point",
      onValues(async (database) => {
        for (const id of ["b", "B", "a", "_", "é", "Z"])
          await database.write("add", () => run(sql`INSERT INTO app_value (id) VALUES (${id})`));
        const found = await database.read("order", () =>
          rows<{ id: string }>(sql`SELECT id FROM app_value ORDER BY id`),
        );
        expect(found.map((value) => value.id).join("")).toBe("BZ_abé");
      }),
    );

    test.each([
      ["NaN", Number.NaN],
      ["an infinite number", Number.POSITIVE_INFINITY],
      ["an integer beyond 2^53", 2 ** 53],
      ["a bigint beyond 2^53", 2n ** 53n],
      ["text with U+0000", "a\0b"],
      ["text with a lone surrogate", "a\ud800b"],
      ["undefined", undefined],
      ["a boolean", true],
      ["a Date", new Date(0)],
      ["a plain object", { a: 1 }],
      ["a symbol", Symbol("s")],
    ])("%s is refused before it reaches the database", (_, value) =>
      onValues(async (database) => {
        const error = await rejection(store(database, "t", value as Parameter));
        expect(error).toMatchObject({
          code: "PARAMETER_INVALID",
          details: { position: 1 },
        });
        expect(await load(database)).toBeUndefined();
      })(),
    );

    test(
      "an integer beyond 2^53 in a row is reported as corrupt, not rounded",
      onValues(async (database) => {
        await database.write("raw", () =>
          run(sql`INSERT INTO app_value (id, n) VALUES ('v', 9007199254740993)`),
        );
        expect(await rejection(load(database))).toMatchObject({
          code: "CORRUPT_ROW",
        });
      }),
    );

    test(
      "an expression that goes beyond 64 bits is told as such",
      onValues(async (database) => {
        const error = await rejection(
          database.write("far", function* () {
            yield* run(sql`INSERT INTO app_value (id, n) VALUES ('v', 1)`);
            yield* row(sql`SELECT abs(CAST('-9223372036854775808' AS BIGINT)) AS n`);
          }),
        );
        expect(error).toMatchObject({
          code: "NUMBER_OUT_OF_RANGE",
          retryable: false,
          details: { operation: "far" },
        });
        expect(await load(database)).toBeUndefined();
      }),
    );

    test(
      "a column made with `integer` takes what INTEGER would refuse on Postgres",
      onValues(async (database) => {
        await store(database, "n", 3_000_000_000);
        expect(await load(database)).toMatchObject({ n: 3_000_000_000 });
      }),
    );

    test(
      "one template is one statement, and nested ones are spliced with their parameters",
      onValues(async (database) => {
        const statement = (id: string, only: boolean) =>
          sql`SELECT ${id} AS given ${only ? sql`WHERE ${id} = ${"x"}` : sql``}`;
        expect(statement("a", true).template).toBe(statement("b", true).template);
        expect(statement("a", false).template).not.toBe(statement("a", true).template);
        const all = sql`SELECT t.id FROM app_value t WHERE t.id = ${"a"} OR ${sql`t.id = ${"b"} OR t.n = ${3}`} OR t.id = ${"c"}`;
        expect(all.parameters).toEqual(["a", "b", 3, "c"]);
        expect(all.template.postgres).toContain("t.id = $1 OR t.id = $2 OR t.n = $3 OR t.id = $4");
        expect(await database.read("all", () => rows(all))).toEqual([]);
      }),
    );
  });
}
