import { describe, expect, test } from "vitest";
import { openPostgres } from "../../src/postgres.ts";
import { row, rows, run, sql, type Statement, type Database } from "../../src/kernel.ts";
import { sessions } from "../../src/sessions.ts";
import { serverUrl, urlWith, withNewPlace } from "./place.ts";
import type { Place, Shell } from "./place.ts";

/** A database of its own in the server, where even `public` is the test's. */
async function withOwnDatabase(
  body: (url: string, shell: Shell, place: Place) => Promise<void>,
): Promise<void> {
  await withNewPlace(async (place) => {
    const name = `db_${place.schema}`;
    const server = place.shell();
    await server.unsafe(`CREATE DATABASE "${name}"`);
    const url = urlWith((parsed) => (parsed.pathname = `/${name}`));
    const shell = place.shell(url);
    try {
      await body(url, shell, place);
    } finally {
      await place.close();
      await server.unsafe(`DROP DATABASE "${name}" WITH (FORCE)`);
    }
  });
}

function namesIn(database: Database, table: Statement): Promise<unknown> {
  return database.read("names", function* () {
    const found = yield* rows<{ name: string }>(table);
    return found.map(({ name }) => name);
  });
}

const customers = sql`SELECT name FROM customer ORDER BY name`;
const createCustomers = sql`CREATE TABLE IF NOT EXISTS customer (name TEXT)`;

describe("tables of the app", () => {
  test.each([
    ["with prepared statements", true],
    ["behind a pooler", false],
  ])("a table that the app has in public is the one that its statements mean, %s", (_, prepare) =>
    withOwnDatabase(async (url, shell, place) => {
      // The user is called holdfast too, so "$user" on the search path is our schema.
      expect(new URL(url).username).toBe("holdfast");
      await shell.unsafe(
        "CREATE TABLE public.customer (name TEXT); INSERT INTO public.customer VALUES ('Ada')",
      );
      const database = await place.open({ schema: "holdfast", prepare }, url);
      await database.write("set up", () => run(createCustomers));
      await database.write("add", () => run(sql`INSERT INTO customer (name) VALUES (${"Grace"})`));
      expect(await namesIn(database, customers)).toEqual(["Ada", "Grace"]);
      expect([...(await shell`SELECT name FROM public.customer ORDER BY 1`)]).toEqual([
        { name: "Ada" },
        { name: "Grace" },
      ]);
      expect(await tablesOf(shell, "holdfast", "customer")).toEqual([]);
    }),
  );

  test("a table that the app makes lands where the search path of its user says", () =>
    withOwnDatabase(async (url, shell, place) => {
      const role = `role_${place.schema}`;
      await shell.unsafe(`
        CREATE SCHEMA shop;
        CREATE ROLE "${role}" SUPERUSER LOGIN PASSWORD 'known';
        ALTER ROLE "${role}" SET search_path = shop, public`);
      const database = await place.open(
        { schema: "holdfast" },
        urlWith((parsed) => {
          parsed.username = role;
          parsed.password = "known";
        }, url),
      );
      await database.write("set up", () => run(createCustomers));
      expect(await tablesOf(shell, "shop", "customer")).toEqual(["customer"]);
      expect(
        await database.read("path", () => row(sql`SELECT current_setting('search_path') AS path`)),
      ).toEqual({ path: "shop, public" });
      await place.close();
      await shell.unsafe(`DROP OWNED BY "${role}"; DROP ROLE "${role}"`);
    }));

  test.each([
    ["with prepared statements", true],
    ["behind a pooler", false],
  ])("the URL's search path is the app's, %s", (_, prepare) =>
    withOwnDatabase(async (url, shell, place) => {
      await shell.unsafe("CREATE SCHEMA shop");
      const database = await place.open(
        { schema: "holdfast", prepare },
        urlWith((parsed) => parsed.searchParams.set("search_path", "shop"), url),
      );
      await database.write("set up", () => run(createCustomers));
      expect(await tablesOf(shell, "shop", "customer")).toEqual(["customer"]);
      const store = sessions(database);
      await store.create("s1");
      expect(await tablesOf(shell, "shop", "holdfast_session")).toEqual([]);
      expect([...(await shell`SELECT id FROM holdfast.holdfast_session`)]).toEqual([{ id: "s1" }]);
    }),
  );

  test("a statement of the app reads our tables by their plain names", () =>
    withOwnDatabase(async (url, _, place) => {
      const database = await place.open({ schema: "holdfast" }, url);
      await sessions(database).create("s1");
      await database.write("set up", function* () {
        yield* run(sql`
          CREATE TABLE visit (
            key BIGINT PRIMARY KEY REFERENCES holdfast_session (key) ON DELETE CASCADE,
            name TEXT NOT NULL
          )`);
        yield* run(sql`
          INSERT INTO visit (key, name) SELECT key, 'first' FROM holdfast_session`);
      });
      const named = sql`
        SELECT visit.name || ' of ' || holdfast_session.id AS name
        FROM visit, holdfast_session WHERE visit.key = holdfast_session.key
          AND 'FROM holdfast_session' <> ''`;
      expect(await namesIn(database, named)).toEqual(["first of s1"]);
    }));

  test("two databases of one process in two schemas of a server do not mix", () =>
    withOwnDatabase(async (url, _, place) => {
      const [one, two] = await Promise.all([
        place.open({ schema: "one" }, url),
        place.open({ schema: "two" }, url),
      ]);
      await sessions(one).create("of one");
      await sessions(two).create("of two");
      // One template, so that a text made for one schema would be met by the other.
      const ids = sql`SELECT id AS name FROM holdfast_session`;
      expect(await namesIn(one, ids)).toEqual(["of one"]);
      expect(await namesIn(two, ids)).toEqual(["of two"]);
    }));

  test.each(["select", "_", `a${"b".repeat(62)}`])("a schema may be called %s", (schema) =>
    withOwnDatabase(async (url, shell, place) => {
      const database = await place.open({ schema }, url);
      await sessions(database).create("s1");
      expect(await tablesOf(shell, schema, "holdfast_session")).toEqual(["holdfast_session"]);
    }),
  );

  test("our own tables may lie in public", () =>
    withOwnDatabase(async (url, shell, place) => {
      const database = await place.open({ schema: "public" }, url);
      await sessions(database).create("s1");
      expect([...(await shell`SELECT id FROM public.holdfast_session`)]).toEqual([{ id: "s1" }]);
    }));

  test("a search path that names nothing is no hindrance for our tables", () =>
    withOwnDatabase(async (url) => {
      const nowhere = urlWith((parsed) => parsed.searchParams.set("search_path", "nowhere"), url);
      for (let opening = 0; opening < 2; opening += 1) {
        const database = await openPostgres(nowhere);
        await sessions(database).create(`s${opening}`);
        await database.close();
      }
      expect(serverUrl()).not.toBe(nowhere);
    }));
});

async function tablesOf(shell: Shell, schema: string, table: string): Promise<readonly string[]> {
  const found = await shell<{ name: string }[]>`
    SELECT tablename AS name FROM pg_tables WHERE schemaname = ${schema} AND tablename = ${table}`;
  return found.map(({ name }) => name);
}
