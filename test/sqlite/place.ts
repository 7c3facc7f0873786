import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadDriver } from "../../src/backends/sqlite/drivers/drivers.ts";
import type { DriverName } from "../../src/backends/sqlite/drivers/drivers.ts";
import { openSqliteWith } from "../../src/backends/sqlite/open.ts";
import type { SqliteOptions, SqliteSeams } from "../../src/backends/sqlite/options.ts";
import type { SqliteDatabase } from "../../src/sqlite.ts";

/** The driver under test: both are, in turn, by the two runs of the suites. */
export const driverName: DriverName =
  (process.env["HOLDFAST_TEST_DRIVER"] as DriverName | undefined) ?? "better-sqlite3";

/** Batches that do not end early because the machine is slow. */
export const unhurried: { readonly batchMs: number } = { batchMs: 60_000 };

/** A folder for database files that closes and removes what a test leaves open. */
export class Folder {
  readonly path: string = mkdtempSync(join(tmpdir(), "holdfast-test-"));
  readonly #open = new Set<SqliteDatabase>();

  file(name = "app.db"): string {
    return join(this.path, name);
  }

  async open(
    options: SqliteOptions = {},
    seams: SqliteSeams = {},
    name = "app.db",
  ): Promise<SqliteDatabase> {
    const database = await openSqliteWith(
      this.file(name),
      { driver: driverName, ...options },
      seams,
    );
    this.#open.add(database);
    return database;
  }

  /** Another client of the file, through the same copy of SQLite. */
  shell(statements: readonly string[], name = "app.db"): readonly object[] {
    const connection = loadDriver(driverName).open(this.file(name), {
      readOnly: false,
    });
    try {
      let answer: readonly object[] = [];
      for (const statement of statements) {
        if (/^(SELECT|PRAGMA \w+$)/i.test(statement))
          answer = connection
            .prepare(statement)
            .all()
            .map((found) => ({ ...found }));
        else connection.exec(statement);
      }
      return answer;
    } finally {
      connection.close();
    }
  }

  async dispose(): Promise<void> {
    await Promise.all([...this.#open].map((database) => database.close()));
    rmSync(this.path, { recursive: true, force: true });
  }
}

export async function withFolder(body: (folder: Folder) => Promise<void>): Promise<void> {
  const folder = new Folder();
  try {
    await body(folder);
  } finally {
    await folder.dispose();
  }
}
