import { statfsSync, statSync } from "node:fs";
import { HoldfastError, isHoldfastError } from "../../../model/errors.ts";
import { safely } from "../../../model/safely.ts";

/** The primary result codes of SQLite that we distinguish. */
const primaryNames: Readonly<Record<number, string>> = {
  5: "BUSY",
  6: "LOCKED",
  8: "READONLY",
  10: "IOERR",
  11: "CORRUPT",
  13: "FULL",
  14: "CANTOPEN",
  15: "PROTOCOL",
  19: "CONSTRAINT",
  26: "NOTADB",
};

/**
 * The primary result code of a driver's error, e.g. "BUSY" for BUSY_SNAPSHOT and BUSY_RECOVERY too.
 * better-sqlite3 spells codes out, node:sqlite gives the number.
 */
export function sqliteCode(error: unknown): string | undefined {
  return safely(() => codeOf(error), undefined);
}

function codeOf(error: unknown): string | undefined {
  if (typeof error !== "object" || error === null) return undefined;
  const { code, errcode } = error as {
    readonly code?: unknown;
    readonly errcode?: unknown;
  };
  if (typeof errcode === "number") return primaryNames[errcode & 0xff];
  if (typeof code !== "string" || !code.startsWith("SQLITE_")) return undefined;
  return code.split("_")[1];
}

/** True when another connection holds a lock: worth a retry, on any statement. */
export function isBusy(error: unknown): boolean {
  const code = sqliteCode(error);
  return code === "BUSY" || code === "PROTOCOL" || code === "LOCKED";
}

/** Finds the name of the unique index over some columns of a table. */
export type IndexName = (table: string, columns: readonly string[]) => string;

/** Converts a driver's error into one of ours. Messages name tables and columns, never values. */
export function statementFailure(
  error: unknown,
  access: "read" | "write",
  indexName: IndexName,
  path?: string,
): HoldfastError {
  if (isHoldfastError(error)) return error;
  const message = error instanceof Error ? error.message : String(error);
  const because = { cause: error };
  switch (sqliteCode(error)) {
    case "CONSTRAINT":
      return constraintFailure(message, indexName, because);
    case "FULL":
      return diskFull(because, path);
    case "IOERR":
      return diskFailed(error, path);
    case "READONLY":
      return access === "read"
        ? new HoldfastError(
            "WRITE_IN_READ",
            "A statement tried to change data in a read. Use database.write for it.",
            {},
            because,
          )
        : new HoldfastError(
            "DATABASE_NOT_WRITABLE",
            "The database file can no longer be written. Check its permissions and whether its disk was mounted read-only.",
            {},
            because,
          );
    case "CORRUPT":
    case "NOTADB":
      return new HoldfastError(
        "DATABASE_DAMAGED",
        "SQLite reports a damaged database file. Stop writing, copy the file and its -wal aside before you close the database, since closing empties the log, and restore a backup without that -wal.",
        {},
        because,
      );
    default:
      // Drivers refuse integers they cannot represent while reading a row.
      if ((error as { readonly code?: unknown }).code === "ERR_OUT_OF_RANGE")
        return new HoldfastError(
          "CORRUPT_ROW",
          "A row holds an integer beyond ±(2^53 − 1), which no operation of Holdfast writes. Inspect it with a database shell.",
          {},
          because,
        );
      if (message === "integer overflow")
        return new HoldfastError(
          "NUMBER_OUT_OF_RANGE",
          "A sum or another expression exceeds 64 bits; this call stored nothing. Add up fewer or smaller numbers, or use total() for a result that may be rounded.",
          {},
          because,
        );
      return new HoldfastError(
        "STATEMENT_FAILED",
        `SQLite refused a statement: ${message}.`,
        { sqlite: sqliteCode(error) },
        because,
      );
  }
}

function diskFull(options: { readonly cause: unknown }, path: string | undefined): HoldfastError {
  const hint = path === undefined ? "" : safely(() => logHint(spaceAt(path)), "");
  return new HoldfastError(
    "DISK_FULL",
    `The disk (or the database's size limit) is full; this call stored nothing. Free some space and retry.${hint}`,
    {},
    options,
  );
}

interface Space {
  readonly logBytes: number;
  readonly freeBytes: number;
}

function spaceAt(path: string): Space {
  const { bavail, bsize } = statfsSync(path);
  return { logBytes: statSync(`${path}-wal`).size, freeBytes: bavail * bsize };
}

/** A smaller log is not what fills a disk. */
const logBytesLeast = 1_048_576;

/**
 * A hint for a disk whose free space is smaller than the log: it is too small for the bound of the
 * log.
 */
export function logHint({ logBytes, freeBytes }: Space): string {
  if (logBytes < logBytesLeast || logBytes <= freeBytes) return "";
  const mebibytes = (logBytes / 1_048_576).toFixed(1);
  return ` The write-ahead log takes ${mebibytes} MiB of the disk: once some space is free, open the database with a smaller \`limits.walBytes\` (openHoldfast takes it in \`sqlite\`), so that the log is restarted sooner.`;
}

/**
 * The error for a failed read or write of the disk or its substitute. SQLite names the failed
 * action, as in SQLITE_IOERR_WRITE.
 */
export function diskFailed(error: unknown, path?: string): HoldfastError {
  const { code, errcode, message } = error as Partial<
    Record<"code" | "errcode" | "message", unknown>
  >;
  const reason = String(errcode ?? code ?? message);
  const file = path === undefined ? "the database" : `"${path}"`;
  return new HoldfastError(
    "DISK_FAILED",
    `The disk reported an error while SQLite used the files of ${file} (${reason}); this call stored nothing. ` +
      "Retry. If it persists, check the system's log (dmesg) and the disk's health, mounts and quotas. Move the database to a sound disk or restore a backup.",
    { path, reason },
    { cause: error },
  );
}

export function outcomeUnknown(cause: unknown): HoldfastError {
  return new HoldfastError(
    "OUTCOME_UNKNOWN",
    "The write was committed but the disk did not confirm the flush, so it may or may not survive a crash. " +
      "Reopen the database, then repeat the call with the same id or key.",
    {},
    { cause },
  );
}

export function writesStopped(cause: unknown): HoldfastError {
  return new HoldfastError(
    "WRITES_STOPPED",
    "An earlier flush failed, so this database no longer accepts writes. Check the disk, then close and reopen the database.",
    {},
    { cause },
  );
}

/**
 * Converts a violated constraint. SQLite names CHECK constraints, but for UNIQUE ones only table
 * and columns: the index over them has the name that Postgres would report.
 */
function constraintFailure(
  message: string,
  indexName: IndexName,
  because: { readonly cause: unknown },
): HoldfastError {
  // The message of a trigger's RAISE is the app's own.
  const subject = message.replace(/^[A-Z ]+ constraint failed(:\s*)?/, "");
  const columns = [...subject.matchAll(/([^\s,.]+)\.([^\s,.]+)/g)];
  const table = columns[0]?.[1];
  const index = /index '([^']+)'/.exec(subject)?.[1];
  const constraint =
    index ??
    (table !== undefined && message.startsWith("UNIQUE")
      ? indexName(
          table,
          columns.map((match) => match[2] ?? ""),
        )
      : subject);
  return new HoldfastError(
    "CONSTRAINT_VIOLATED",
    `The constraint ${constraint || "on a foreign key"} was violated; this call stored nothing.`,
    { constraint, table },
    because,
  );
}
