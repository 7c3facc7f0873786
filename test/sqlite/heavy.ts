import { readdirSync, realpathSync } from "node:fs";
import { loadDriver } from "../../src/backends/sqlite/drivers/drivers.ts";
import { HeavyReads } from "../../src/backends/sqlite/heavy/heavy-reads.ts";
import type { HeavyReadsParts } from "../../src/backends/sqlite/heavy/heavy-reads.ts";
import type { RowPage } from "../../src/sqlite.ts";
import type { Database } from "../../src/kernel.ts";
import { createNoteTable } from "../conformance/notes.ts";
import { driverName, withFolder } from "./place.ts";
import type { Folder } from "./place.ts";

interface Heavy {
  readonly heavy: HeavyReads;
  readonly folder: Folder;
  readonly database: Database;
}

export function heavyReads(path: string, parts: Partial<HeavyReadsParts> = {}): HeavyReads {
  const driver = loadDriver(driverName);
  return new HeavyReads({ driver, path: realpathSync(path), ...parts });
}

/** A database that is open and has the app's table of notes, and heavy reads of it. */
export function withHeavyReads(
  body: (heavy: Heavy) => Promise<void>,
  parts: Partial<HeavyReadsParts> = {},
): Promise<void> {
  return withFolder(async (folder) => {
    const database = await folder.open();
    await database.write("tables", createNoteTable);
    const heavy = heavyReads(folder.file(), parts);
    try {
      await body({ heavy, folder, database });
    } finally {
      await heavy.close();
    }
  });
}

/** So many rows of a kilobyte that cannot be made smaller, in a table of the app's. */
export function fill(folder: Folder, rows: number): void {
  folder.shell([
    "CREATE TABLE IF NOT EXISTS app_bulk (id INTEGER PRIMARY KEY, body BLOB)",
    `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${rows})
     INSERT INTO app_bulk (body) SELECT randomblob(1000) FROM n`,
  ]);
}

/** What a backup may leave behind: its own temporary names and no others. */
export function remains(folder: Folder): readonly string[] {
  return readdirSync(folder.path).filter((name) => name.includes(".tmp-"));
}

export async function collected(pages: AsyncIterable<RowPage>): Promise<readonly RowPage[]> {
  const all: RowPage[] = [];
  for await (const page of pages) all.push(page);
  return all;
}
