import { HoldfastError, isHoldfastError } from "../../../model/errors.ts";
import { safely } from "../../../model/safely.ts";

/** The primary result codes of SQLite that we tell apart. */
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
 * The primary result code of a driver's error, e.g. "BUSY" for BUSY_SNAPSHOT
 * and BUSY_RECOVERY too. better-sqlite3 spells codes out, node:sqlite gives
 * the number.
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

/** Somebody else holds a lock: worth trying again, on any statement. */
export function isBusy(error: unknown): boolean {
  const code = sqliteCode(error);
  return code === "BUSY" || code === "PROTOCOL" || code === "LOCKED";
}

/** Finds the name of the unique index over some columns of a table. */
export type IndexName = (table: string, columns: readonly string[]) => string;

/** A driver's error as one of ours. Messages name tables and columns, never values. */
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
      return diskFull(because);
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
        "SQLite reports a damaged database file. Stop writing, copy the file with its -wal aside before the database is closed, which empties the log, and restore a backup without that -wal.",
        {},
        because,
      );
    default:
      // Drivers refuse integers they cannot represent while reading a row.
      if ((error as { readonly code?: unknown }).code === "ERR_OUT_OF_RANGE")
        return new HoldfastError(
          "CORRUPT_ROW",
          "A row holds an integer beyond ±(2^53 − 1), which no operation of Holdfast writes. Look at it with a database shell.",
          {},
          because,
        );
      if (message === "integer overflow")
        return new HoldfastError(
          "NUMBER_OUT_OF_RANGE",
          "A sum or another expression goes beyond 64 bits; nothing of this call was stored. Add up fewer or smaller numbers, or use total() for a result that may be rounded.",
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

function diskFull(options?: { readonly cause: unknown }): HoldfastError {
  return new HoldfastError(
    "DISK_FULL",
    "The disk (or the database's size limit) is full; nothing of this call was stored. Free some space and try again.",
    {},
    options,
  );
}

/** The disk, or what stands for one, refused to read or write; SQLite says at what, as in SQLITE_IOERR_WRITE. */
export function diskFailed(error: unknown, path?: string): HoldfastError {
  const { code, errcode, message } = error as Partial<
    Record<"code" | "errcode" | "message", unknown>
  >;
  const reason = String(errcode ?? code ?? message);
  const file = path === undefined ? "the database" : `"${path}"`;
  return new HoldfastError(
    "DISK_FAILED",
    `The disk reported an error while SQLite used the files of ${file} (${reason}); nothing of this call was stored. ` +
      "Try again. If it lasts, look at the system's log (dmesg) and at the disk's health, mounts and quotas, and move the database to a sound disk or restore a backup.",
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
    "An earlier flush failed, so this database takes no more writes. Check the disk, then close and reopen the database.",
    {},
    { cause },
  );
}

/**
 * SQLite names CHECK constraints, and for UNIQUE ones only table and columns:
 * the index that covers them has the name that Postgres would report.
 */
function constraintFailure(
  message: string,
  indexName: IndexName,
  because: { readonly cause: unknown },
): HoldfastError {
  // What a trigger raises has words of its own.
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
    `The constraint ${constraint || "on a foreign key"} was violated; nothing of this call was stored.`,
    { constraint, table },
    because,
  );
}
