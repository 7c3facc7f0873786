import { realpathSync, statSync, statfsSync } from "node:fs";
import path from "node:path";
import { loadDriver } from "../backends/sqlite/drivers/drivers.ts";
import { fileSystemOf, logBytes } from "../backends/sqlite/file.ts";
import { logReaders } from "../backends/sqlite/log/log-holders.js";
import type { Database } from "../sql/database.ts";
import { row } from "../sql/operation.ts";
import { schemaNumber } from "../sql/migrations.ts";
import { moveMark } from "../sql/move-mark.ts";
import { spelled } from "../sql/statement.ts";
import { listOwners, type KnownOwner } from "../stores/owner/owner.ts";
import { isPostgresUrl, type HoldfastOptions } from "./open-holdfast.ts";

/** Facts about the database behind a Holdfast, for people who investigate a problem. */
export interface DatabaseFacts {
  /** For example `SQLite 3.50.4 (better-sqlite3)`. */
  readonly engine: string;
  readonly schema: number;
  /** The state of a SQLite file that is being moved, or was moved, to Postgres. */
  readonly move: "moving" | "moved" | undefined;
  /** Facts about the file; undefined for Postgres. */
  readonly file: FileFacts | undefined;
  /** Processes known to have the database open for writing. */
  readonly processes: readonly KnownProcess[];
}

interface FileFacts {
  readonly path: string;
  /** For example `ext4`; undefined when its name is unknown. */
  readonly fileSystem: string | undefined;
  readonly bytes: number;
  readonly logBytes: number;
  /** Free space on the disk. */
  readonly freeBytes: number;
  /** Processes that are reading the log now, such as `4711 (sqlite3)`. Linux only. */
  readonly logReaders: readonly string[];
}

interface KnownProcess extends KnownOwner {
  readonly liveness: "alive" | "dead" | "unknown";
}

const versionText = spelled({
  sqlite: "SELECT sqlite_version() AS version",
  postgres: "SELECT current_setting('server_version') AS version",
});

export async function databaseFacts(
  database: Database,
  pathOrUrl: string,
  { sqlite }: HoldfastOptions,
): Promise<DatabaseFacts> {
  const found = await database.read("version", () =>
    row<{ readonly version: string }>(versionText),
  );
  const version = found?.version ?? "unknown";
  const isPostgres = isPostgresUrl(pathOrUrl);
  const owners = await database.read(listOwners, undefined);
  const state = (await database.read("moveMark", () => moveMark()))?.state;
  return {
    move: state === "moving" || state === "moved" ? state : undefined,
    engine: isPostgres
      ? `PostgreSQL ${version}`
      : `SQLite ${version} (${loadDriver(sqlite?.driver).name})`,
    schema: schemaNumber,
    file: isPostgres ? undefined : fileFacts(pathOrUrl),
    processes: await Promise.all(
      owners.map(async (owner) => ({
        ...owner,
        liveness: owner.diedAt === null ? await database.liveness(owner.id) : "dead",
      })),
    ),
  };
}

function fileFacts(given: string): FileFacts {
  const real = realpathSync(given);
  const { bavail, bsize } = statfsSync(path.dirname(real));
  const own = String(process.pid);
  return {
    path: real,
    fileSystem: fileSystemOf(path.dirname(real)),
    bytes: statSync(real).size,
    logBytes: logBytes(real),
    freeBytes: bavail * bsize,
    logReaders: logReaders(real).filter((each) => each.split(" ")[0] !== own),
  };
}
