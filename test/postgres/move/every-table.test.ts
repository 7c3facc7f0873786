import { describe, expect, test } from "vitest";
import { maintenance } from "../../../src/blobs.ts";
import { sessions } from "../../../src/sessions.ts";
import type { Folder } from "../../sqlite/place.ts";
import type { Shell } from "../place.ts";
import { filled, move, movedTables, withBoth } from "./moving.ts";

describe("a move to Postgres", () => {
  test("brings every row of every table, and keys go on behind them", () =>
    withBoth(async (folder, place) => {
      await filled(folder);
      const before = rowsOf(folder);
      const [sequence] = folder.shell([
        "SELECT seq FROM sqlite_sequence WHERE name = 'holdfast_session'",
      ]);
      const report = await move(folder, place);
      expect(report.tables.map(({ name }) => name)).toEqual(movedTables);
      expect(report.tables.filter(({ rows }) => rows === 0)).toEqual([]);
      expect(report).toMatchObject({
        isRepeated: false,
        appTables: [],
        attachmentsElsewhere: 0,
      });
      const database = await place.open();
      const shell = place.shell();
      for (const table of movedTables)
        expect({ [table]: await targetRows(shell, table) }).toEqual({
          [table]: before.get(table),
        });
      await sessions(database).create("after");
      const [after] = await shell`SELECT key::int AS seq FROM holdfast_session WHERE id = 'after'`;
      expect({ ...after }).toEqual({
        seq: (sequence as { readonly seq: number }).seq + 1,
      });
      const { damaged } = await maintenance(database).check();
      expect(damaged).toEqual([]);
    }));

  test("names the app's tables, which stay, and leaves it to the app to make them", () =>
    withBoth(async (folder, place) => {
      const database = await folder.open();
      await database.setUp("shop", []);
      folder.shell([
        "CREATE TABLE account (id TEXT PRIMARY KEY) STRICT",
        "INSERT INTO holdfast_app_migration VALUES ('shop', 0, '0001', 1)",
      ]);
      await database.close();
      const { appTables } = await move(folder, place);
      expect(appTables).toEqual(["account"]);
      const target = await place.open();
      let made = 0;
      const { applied } = await target.setUp("shop", [
        {
          name: "0001",
          *up() {
            made += 1;
          },
        },
      ]);
      expect({ applied, made }).toEqual({ applied: ["0001"], made: 1 });
    }));
});

function rowsOf(folder: Folder): ReadonlyMap<string, readonly string[]> {
  return new Map(
    movedTables.map((table) => [
      table,
      folder
        .shell([shownBy(table)])
        .map(rendered)
        .toSorted(),
    ]),
  );
}

async function targetRows(shell: Shell, table: string): Promise<readonly string[]> {
  const found = await shell.unsafe(shownBy(table));
  return found.map((row) => rendered(row)).toSorted();
}

/** That its owners are dead is the one thing that a move changes; who moves is one of them. */
function shownBy(table: string): string {
  return table === "holdfast_owner"
    ? "SELECT id, host, opened_at FROM holdfast_owner WHERE host = 'elsewhere'"
    : `SELECT * FROM ${table}`;
}

/** One text for a row, whichever driver gave it. */
function rendered(row: object): string {
  return Object.entries(row)
    .map(([column, value]) => {
      const shown =
        value instanceof Uint8Array ? Buffer.from(value).toString("hex") : String(value);
      return `${column}=${shown}`;
    })
    .toSorted()
    .join("\n");
}
