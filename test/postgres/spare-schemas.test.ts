import { randomBytes } from "node:crypto";
import { describe, expect, test } from "vitest";
import { createHead, createLogTables } from "../fixtures/append-entry.ts";
import { Place, serverUrl } from "./place.ts";
import type { Shell } from "./place.ts";
import { removeSpares } from "./spare-schemas.ts";

/** What identifies a schema whatever its name. */
async function identity(place: Place): Promise<number> {
  const [found] = await place.shell()<{ readonly oid: number }[]>`
    SELECT oid::int FROM pg_namespace WHERE nspname = ${place.schema}`;
  if (found === undefined) throw new Error("The schema is not there.");
  return found.oid;
}

async function isThere(oid: number): Promise<boolean> {
  const place = new Place();
  const found = await place.shell()`
    SELECT 1 FROM pg_namespace WHERE oid = ${oid}`;
  await place.dispose();
  return found.length > 0;
}

/** Whether the schema lives on after a test that did this to it. */
async function livesOn(change: (shell: Shell) => Promise<unknown>): Promise<boolean> {
  const place = new Place();
  await place.open();
  await change(place.shell());
  const schema = await identity(place);
  await place.dispose();
  return isThere(schema);
}

describe("a schema that a test has used", () => {
  test("goes to the next one, without rows, keys and tables of an app", async () => {
    // Names of its own, or another file could take the schema.
    const spares = `mine_${randomBytes(6).toString("hex")}_`;
    const place = await Place.prepared(spares);
    const database = await place.open();
    await database.write("tables", createLogTables);
    await database.write(createHead, { id: "a" });
    await place.shell()`
      INSERT INTO holdfast_schedule (kind, name, cadence, catch_up, catch_up_max, revision, failures, changed_at)
      VALUES ('k', 'n', '{}', 'all', 1, 1, 0, 0)`;
    const schema = await identity(place);
    await place.dispose();
    expect(await isThere(schema)).toBe(true);

    const next = await Place.prepared(spares);
    expect(await identity(next)).toBe(schema);
    const shell = next.shell();
    const tables = await shell<{ readonly name: string }[]>`
      SELECT relname AS name FROM pg_class
      WHERE relnamespace = ${next.schema}::regnamespace AND relkind = 'r' ORDER BY 1`;
    for (const { name } of tables) {
      expect(name).toMatch(/^holdfast_/);
      if (name === "holdfast_migration" || name === "holdfast_tick") continue;
      expect([...(await shell`SELECT * FROM ${shell(name)}`)]).toEqual([]);
    }
    const [key] = await shell`
      SELECT nextval(pg_get_serial_sequence('holdfast_schedule', 'key'))::int AS n`;
    expect(key).toEqual({ n: 1 });
    await next.dispose();
    await removeSpares(serverUrl(), spares);
    expect(await isThere(schema)).toBe(false);
  });

  test.each<[string, (shell: Shell) => Promise<unknown>]>([
    ["a column was added", (shell) => shell`ALTER TABLE holdfast_schedule ADD COLUMN more TEXT`],
    [
      "a column was loosened",
      (shell) => shell`ALTER TABLE holdfast_schedule ALTER COLUMN kind DROP NOT NULL`,
    ],
    ["an index is gone", (shell) => shell`DROP INDEX holdfast_schedule_due`],
    ["a table is gone", (shell) => shell`DROP TABLE holdfast_schedule`],
    ["a table was added", (shell) => shell`CREATE TABLE holdfast_more (n BIGINT)`],
    ["a table was analyzed", (shell) => shell`ANALYZE holdfast_schedule`],
    [
      "a migration was added",
      (shell) => shell`INSERT INTO holdfast_migration VALUES (1000, 'n', 'c', 'h', 0)`,
    ],
    [
      "a migration was changed",
      (shell) => shell`UPDATE holdfast_migration SET checksum = 'c' WHERE number = 1`,
    ],
    [
      "a function was added",
      (shell) => shell`CREATE FUNCTION f() RETURNS INT LANGUAGE sql AS 'SELECT 1'`,
    ],
  ])("is removed when %s", async (_, change) => {
    expect(await livesOn(change)).toBe(false);
  });
});
