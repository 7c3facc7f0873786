import { HoldfastError } from "../../model/errors.ts";

/** What the driver tells of a server's error. Messages and details may quote values, so most is left out. */
interface ServerError {
  readonly code: string;
  readonly severity: string;
  readonly message: string;
  readonly constraint_name?: string;
  readonly table_name?: string;
  readonly column_name?: string;
  readonly schema_name?: string;
  /** The server's own function, e.g. the one that found a stale plan. */
  readonly routine?: string;
}

/**
 * A driver's error as one of ours. The original never becomes the `cause`: it
 * carries the statement, its parameters and the connection's options. `text`
 * is the statement's, without parameters.
 */
export function statementFailure(
  error: unknown,
  access: "read" | "write",
  text: string,
): HoldfastError {
  if (!isServerError(error))
    return isDriverBug(error) ? statementFailed(undefined) : connectionLost();
  const { code: sqlstate } = error;
  if (isRacedCreation(error, text)) return transactionConflict(sqlstate);
  if (sqlstate.startsWith("23")) return constraintViolated(error);
  if (isFatal(error)) return connectionLost();
  switch (sqlstate) {
    case "40001":
    case "40P01":
      return transactionConflict(sqlstate);
    case "22003":
      return numberOutOfRange(error);
    case "0A000":
      // A table changed under a prepared statement; the driver forgets it now.
      return error.routine === "RevalidateCachedQuery"
        ? transactionConflict(sqlstate)
        : statementFailed(error);
    case "55P03":
      return new HoldfastError(
        "DATABASE_BUSY",
        "Another transaction held a lock for too long; nothing of this call was stored. " +
          "Try again, and look for a long transaction in pg_stat_activity.",
        { sqlstate },
      );
    case "53100":
      return new HoldfastError(
        "DISK_FULL",
        "The server's disk is full; nothing of this call was stored. Free some space and try again.",
        { sqlstate },
      );
    case "58000":
    case "58030":
      return new HoldfastError(
        "DISK_FAILED",
        "The server's disk reported an error; nothing of this call was stored. Try again. " +
          "If it lasts, look into the server's log and at the health of its disk.",
        { sqlstate },
      );
    case "25006":
      return readOnly(access);
    case "42501":
      return accessDenied(sqlstate);
    case "XX001":
    case "XX002":
      return new HoldfastError(
        "DATABASE_DAMAGED",
        "The server reports damaged data. Look into its log and restore a backup.",
        { sqlstate },
      );
    default:
      return interruptedCodes.test(sqlstate)
        ? statementInterrupted(sqlstate)
        : statementFailed(error);
  }
}

/** Cancelled, by somebody or by statement_timeout; no memory, or another resource, left. */
const interruptedCodes = /^(57014|53)/;

/** The same for an error met while connecting and setting up the session. */
export function connectFailure(error: unknown): HoldfastError {
  if (isServerError(error)) {
    const { code: sqlstate } = error;
    if (sqlstate.startsWith("28") || sqlstate === "42501") return accessDenied(sqlstate);
    if (sqlstate === "3D000")
      return new HoldfastError(
        "DATABASE_NOT_FOUND",
        "The server has no database of that name. Check the URL, or create it with CREATE DATABASE.",
        { sqlstate },
      );
    if (sqlstate === "53300") return noConnectionLeft(sqlstate);
    // Starting up, shutting down: it may answer soon.
    if (/^(08|53|57P)/.test(sqlstate)) return unreachable(sqlstate);
    return statementFailed(error);
  }
  return unreachable(errnoOf(error));
}

/** The connection broke before COMMIT was sent, so the server rolled back. */
export function connectionLost(): HoldfastError {
  return new HoldfastError(
    "CONNECTION_LOST",
    "The connection to the server was lost before the transaction could commit; nothing of this call was stored. Try again.",
  );
}

export function outcomeUnknown(): HoldfastError {
  return new HoldfastError(
    "OUTCOME_UNKNOWN",
    "The connection to the server was lost while the transaction was committing, so the call may or may not have happened. " +
      "Repeat it with the same id or key.",
  );
}

function transactionConflict(sqlstate: string): HoldfastError {
  return new HoldfastError(
    "TRANSACTION_CONFLICT",
    "Other transactions kept getting in the way of this one; nothing of it was stored. Try again.",
    { sqlstate },
  );
}

function statementInterrupted(sqlstate: string): HoldfastError {
  const why =
    sqlstate === "57014"
      ? "Postgres cancelled a statement, since somebody asked for it or it took longer than statement_timeout"
      : "Postgres had no memory or another resource left for a statement";
  return new HoldfastError(
    "STATEMENT_INTERRUPTED",
    `${why} (SQLSTATE ${sqlstate}); nothing of this call was stored. ` +
      "Try again. If it recurs, look for long locks in pg_stat_activity, and at the limits of the role and the server.",
    { sqlstate },
  );
}

function unreachable(reason: string): HoldfastError {
  return new HoldfastError(
    "DATABASE_UNREACHABLE",
    `The server does not accept a connection (${reason}). Check that it runs, that host and port of the URL are right, and that it speaks TLS if the URL asks for it (sslmode).`,
    { reason },
  );
}

function noConnectionLeft(sqlstate: string): HoldfastError {
  return new HoldfastError(
    "DATABASE_UNREACHABLE",
    `The server has no connection left for this user (SQLSTATE ${sqlstate}). Try again when others have closed theirs. ` +
      "If it recurs, open with a smaller poolSize, raise max_connections or the limit of the role, or put a pooler before the server.",
    { reason: sqlstate },
  );
}

function accessDenied(sqlstate: string): HoldfastError {
  return new HoldfastError(
    "DATABASE_ACCESS_DENIED",
    `The server refuses this user (SQLSTATE ${sqlstate}). Check user and password of the URL, and what the user may do: ` +
      "it needs CONNECT on the database, and CREATE on it or USAGE and CREATE on our schema.",
    { sqlstate },
  );
}

function readOnly(access: "read" | "write"): HoldfastError {
  return access === "read"
    ? new HoldfastError(
        "WRITE_IN_READ",
        "A statement tried to change data in a read. Use database.write for it.",
      )
    : new HoldfastError(
        "READ_ONLY",
        "The server takes no writes here (a standby, or default_transaction_read_only). Connect to the primary.",
      );
}

/**
 * Postgres looks for a name and takes it in two steps, so of several that
 * create the same thing at once all but one may fail, IF NOT EXISTS or not:
 * on an index of the catalogue, or because it exists by now. Run again, they
 * find it.
 */
function isRacedCreation(error: ServerError, text: string): boolean {
  if (error.code === "23505") return error.schema_name === "pg_catalog";
  // Two that replace or grant the same change its row of the catalogue at once.
  if (error.code === "XX000") return error.routine?.startsWith("simple_heap_") === true;
  return existsCodes.test(error.code) && /\bIF\s+NOT\s+EXISTS\b|\bOR\s+REPLACE\b/i.test(text);
}

/** A schema, a table or an index, a table's row type, a function. */
const existsCodes = /^(42P06|42P07|42710|42723)$/;

/**
 * What a call is told that got the same answer at each run: another thing has
 * the name that it wants to create, which no further run would change.
 */
export function lastingFailure(error: HoldfastError): HoldfastError {
  const { code, details } = error;
  const { sqlstate } = details;
  return code === "TRANSACTION_CONFLICT" &&
    typeof sqlstate === "string" &&
    existsCodes.test(sqlstate)
    ? new HoldfastError(
        "STATEMENT_FAILED",
        `Postgres refused a statement (SQLSTATE ${sqlstate}): something of a name that it creates exists already, a constraint or an index of another table for example. ` +
          "Look for it in pg_class and pg_constraint, and choose another name.",
        details,
      )
    : error;
}

/** How often a creation that was refused since its name exists is run again: a race is over after one. */
export function isRacedOften(error: HoldfastError, attempts: number): boolean {
  const { sqlstate } = error.details;
  return typeof sqlstate === "string" && existsCodes.test(sqlstate) && attempts >= 5;
}

function numberOutOfRange(error: ServerError): HoldfastError {
  const { code: sqlstate, table_name, column_name } = error;
  return new HoldfastError(
    "NUMBER_OUT_OF_RANGE",
    "A number is too large for its column or expression; nothing of this call was stored. " +
      "INTEGER has 32 bits on Postgres: write `${integer}` (of holdfast/kernel) or BIGINT where you create the table, " +
      "and ALTER TABLE … ALTER COLUMN … TYPE BIGINT for one that exists.",
    { sqlstate, table: table_name, column: column_name },
  );
}

function constraintViolated(error: ServerError): HoldfastError {
  const { constraint_name, table_name, column_name } = error;
  // A NOT NULL constraint has no name before Postgres 18.
  const constraint = constraint_name ?? `${table_name}.${column_name}`;
  return new HoldfastError(
    "CONSTRAINT_VIOLATED",
    `The constraint ${constraint} was violated; nothing of this call was stored.`,
    { constraint, table: table_name, sqlstate: error.code },
  );
}

function statementFailed(error: ServerError | undefined): HoldfastError {
  const sqlstate = error?.code;
  // Class 42 is about the statement's text, which never holds values.
  const why = sqlstate?.startsWith("42") ? `: ${error?.message}` : "";
  return new HoldfastError(
    "STATEMENT_FAILED",
    `Postgres refused a statement (SQLSTATE ${sqlstate ?? "unknown"})${why}.`,
    { sqlstate, table: error?.table_name, column: error?.column_name },
  );
}

function isServerError(error: unknown): error is ServerError {
  return (
    typeof error === "object" &&
    error !== null &&
    "severity" in error &&
    "code" in error &&
    typeof error.code === "string"
  );
}

/** The server ends the session with these: shutdown, crash, timeouts of idle transactions. */
function isFatal({ severity, code }: ServerError): boolean {
  return (
    severity === "FATAL" || severity === "PANIC" || code.startsWith("08") || code.startsWith("57P")
  );
}

/** An error without a code was thrown by the driver's own code, not by a socket. */
function isDriverBug(error: unknown): boolean {
  return errnoOf(error) === "no answer" || errnoOf(error) === "MAX_PARAMETERS_EXCEEDED";
}

function errnoOf(error: unknown): string {
  const code =
    typeof error === "object" && error !== null && "code" in error ? error.code : undefined;
  return typeof code === "string" ? code : "no answer";
}
