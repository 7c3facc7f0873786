import { HoldfastError, isHoldfastError } from "../../model/errors.ts";

/**
 * The fields of a server's error that we use. Messages and details may quote values, so most fields
 * are left out.
 */
interface ServerError {
  readonly code: string;
  /** Absent from a pooler, which sends `severity_local` alone. */
  readonly severity?: string;
  /** In the server's language. */
  readonly severity_local?: string;
  readonly message: string;
  readonly constraint_name?: string;
  readonly table_name?: string;
  readonly column_name?: string;
  readonly schema_name?: string;
  /** The server's internal function, e.g. the one that found a stale plan. */
  readonly routine?: string;
}

/**
 * Converts a driver's error into one of ours. The original never becomes the `cause`: it carries
 * the statement, its parameters and the connection's options. `text` is the statement's text
 * without parameters.
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
  if (isFatal(error)) return connectionLost(sqlstate);
  if (sqlstate.startsWith("23")) return constraintViolated(error);
  switch (sqlstate) {
    case "40001":
    case "40P01":
      return transactionConflict(sqlstate);
    case "22003":
      return numberOutOfRange(error);
    case "0A000":
      // A table changed under a prepared statement, which the driver now discards.
      return error.routine === "RevalidateCachedQuery"
        ? transactionConflict(sqlstate)
        : statementFailed(error);
    case "55P03":
      return new HoldfastError(
        "DATABASE_BUSY",
        "Another transaction held a lock for too long; this call stored nothing. " +
          "Retry, and look for a long transaction in pg_stat_activity.",
        { sqlstate },
      );
    case "53100":
      return new HoldfastError(
        "DISK_FULL",
        "The server's disk is full; this call stored nothing. Free some space and retry.",
        { sqlstate },
      );
    case "58000":
    case "58030":
      return new HoldfastError(
        "DISK_FAILED",
        "The server's disk reported an error; this call stored nothing. Retry it. " +
          "If it persists, check the server's log and the health of its disk.",
        { sqlstate },
      );
    case "26000":
    case "42P05":
      return preparedStatementLost(sqlstate);
    case "25006":
      return readOnly(access);
    case "42501":
      return accessDenied(sqlstate);
    case "XX001":
    case "XX002":
      return new HoldfastError(
        "DATABASE_DAMAGED",
        "The server reports damaged data. Check its log and restore a backup.",
        { sqlstate },
      );
    default:
      return interruptedCodes.test(sqlstate)
        ? statementInterrupted(sqlstate)
        : statementFailed(error);
  }
}

/** Cancelled, by a user or by statement_timeout; or out of memory or another resource. */
const interruptedCodes = /^(57014|53)/;

/** Converts an error met while connecting and setting up the session. */
export function connectFailure(error: unknown): HoldfastError {
  if (isServerError(error)) {
    const { code: sqlstate } = error;
    if (sqlstate.startsWith("28") || sqlstate === "42501") return accessDenied(sqlstate);
    if (sqlstate === "3D000")
      return new HoldfastError(
        "DATABASE_NOT_FOUND",
        "The server has no database with that name. Check the URL, or create it with CREATE DATABASE.",
        { sqlstate },
      );
    if (sqlstate === "53300") return noConnectionLeft(sqlstate);
    if (sqlstate === "08P01") return refusedByPooler(sqlstate);
    // Starting up or shutting down: it may answer soon.
    if (/^(08|53|57P)/.test(sqlstate)) return unreachable(sqlstate);
    return statementFailed(error);
  }
  return unreachable(errnoOf(error));
}

/**
 * The connection broke before COMMIT was sent, so the server rolled back. `sqlstate` is the
 * server's reason, if it gave one.
 */
export function connectionLost(sqlstate?: string): HoldfastError {
  const why = sqlstate === undefined ? "" : ` (SQLSTATE ${sqlstate})`;
  return new HoldfastError(
    "CONNECTION_LOST",
    `The connection to the server was lost${why} before the transaction could commit; this call stored nothing. Retry it.`,
    sqlstate === undefined ? {} : { sqlstate },
  );
}

/** The connection was ended for its silence before COMMIT was sent. */
export function noAnswer(timeoutMs: number): HoldfastError {
  return new HoldfastError(
    "DATABASE_UNREACHABLE",
    `A connection to the server gave no answer for ${timeoutMs} ms or more and was ended; this call stored nothing. ` +
      "Retry it; another connection will be used. If it recurs, check the network between here and the server.",
    { reason: "no answer" },
  );
}

/** True when a transaction met the end of its connection, whether or not the server noticed. */
export function isLoss(error: unknown): error is HoldfastError {
  return (
    isHoldfastError(error) &&
    (error.code === "CONNECTION_LOST" || error.code === "DATABASE_UNREACHABLE")
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
    "Other transactions kept conflicting with this one; it stored nothing. Retry it.",
    { sqlstate },
  );
}

/**
 * The error for a lost prepared statement. The driver names its statements at random, so only a
 * session that was lent to others can lack or already have a name.
 */
function preparedStatementLost(sqlstate: string): HoldfastError {
  return new HoldfastError(
    "PREPARED_STATEMENT_LOST",
    `The session at the server is not the one that prepared this statement (SQLSTATE ${sqlstate}); this call stored nothing. ` +
      "A pooler in front of the server lends its sessions for one transaction each: open with `postgres: { prepare: false }`.",
    { sqlstate },
  );
}

function statementInterrupted(sqlstate: string): HoldfastError {
  const why =
    sqlstate === "57014"
      ? "Postgres cancelled a statement, on request or because it took longer than statement_timeout"
      : "Postgres had no memory or another resource left for a statement";
  return new HoldfastError(
    "STATEMENT_INTERRUPTED",
    `${why} (SQLSTATE ${sqlstate}); this call stored nothing. ` +
      "Retry it. If it recurs, look for long locks in pg_stat_activity, and check the limits of the role and the server.",
    { sqlstate },
  );
}

function unreachable(reason: string): HoldfastError {
  return new HoldfastError(
    "DATABASE_UNREACHABLE",
    `The server did not accept a connection (${reason}). Check that it runs, that host and port of the URL are right, and that it speaks TLS if the URL asks for it (sslmode).`,
    { reason },
  );
}

/** PgBouncer answers so to all that it refuses, and when it cannot reach the server. */
function refusedByPooler(reason: string): HoldfastError {
  return new HoldfastError(
    "DATABASE_UNREACHABLE",
    `The server, or a pooler in front of it, refused the connection (SQLSTATE ${reason}). Check its log. ` +
      "A pooler may know no database or user of that name, may not reach the server, or may not know a parameter of the URL, such as search_path: " +
      "PgBouncer accepts those of its `ignore_startup_parameters`, and `ALTER ROLE … SET` gives them to the server.",
    { reason },
  );
}

function noConnectionLeft(sqlstate: string): HoldfastError {
  return new HoldfastError(
    "DATABASE_UNREACHABLE",
    `The server has no connection left for this user (SQLSTATE ${sqlstate}). Retry when others have closed theirs. ` +
      "If it recurs, open with a smaller poolSize, raise max_connections or the limit of the role, or put a pooler in front of the server.",
    { reason: sqlstate },
  );
}

function accessDenied(sqlstate: string): HoldfastError {
  return new HoldfastError(
    "DATABASE_ACCESS_DENIED",
    `The server refuses this user (SQLSTATE ${sqlstate}). Check user and password of the URL, and the user's permissions: ` +
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
        "The server accepts no writes here (a standby, or default_transaction_read_only). Connect to the primary.",
      );
}

/**
 * True when concurrent creations collided. Postgres looks up a name and takes it in two steps. So
 * when several transactions create the same object at once, all but one may fail, even with IF NOT
 * EXISTS: on an index of the catalogue, or because the object exists by now. A rerun finds it.
 */
function isRacedCreation(error: ServerError, text: string): boolean {
  if (error.code === "23505") return error.schema_name === "pg_catalog";
  // Two transactions that replace or grant the same object change its catalogue row at once.
  if (error.code === "XX000") return error.routine?.startsWith("simple_heap_") === true;
  return existsCodes.test(error.code) && /\bIF\s+NOT\s+EXISTS\b|\bOR\s+REPLACE\b/i.test(text);
}

/** A schema, a table or an index, a table's row type, a function. */
const existsCodes = /^(42P06|42P07|42710|42723)$/;

/**
 * The error for a call that failed in the same way at each run: another object has the name that it
 * wants to create, and no further run would change that.
 */
export function lastingFailure(error: HoldfastError): HoldfastError {
  const { code, details } = error;
  const { sqlstate } = details;
  return code === "TRANSACTION_CONFLICT" &&
    typeof sqlstate === "string" &&
    existsCodes.test(sqlstate)
    ? new HoldfastError(
        "STATEMENT_FAILED",
        `Postgres refused a statement (SQLSTATE ${sqlstate}): an object with a name that it creates already exists, for example a constraint or an index of another table. ` +
          "Look for it in pg_class and pg_constraint, and choose another name.",
        details,
      )
    : error;
}

/**
 * True when a creation was refused too often because its name exists. A race is over after one
 * rerun.
 */
export function isRacedOften(error: HoldfastError, attempts: number): boolean {
  const { sqlstate } = error.details;
  return typeof sqlstate === "string" && existsCodes.test(sqlstate) && attempts >= 5;
}

function numberOutOfRange(error: ServerError): HoldfastError {
  const { code: sqlstate, table_name, column_name } = error;
  return new HoldfastError(
    "NUMBER_OUT_OF_RANGE",
    "A number is too large for its column or expression; this call stored nothing. " +
      "INTEGER has 32 bits on Postgres: write `${integer}` (of holdfast/kernel) or BIGINT when you create the table, " +
      "and ALTER TABLE … ALTER COLUMN … TYPE BIGINT for an existing one.",
    { sqlstate, table: table_name, column: column_name },
  );
}

function constraintViolated(error: ServerError): HoldfastError {
  const { constraint_name, table_name, column_name } = error;
  // A NOT NULL constraint has no name before Postgres 18.
  const constraint = constraint_name ?? `${table_name}.${column_name}`;
  return new HoldfastError(
    "CONSTRAINT_VIOLATED",
    `The constraint ${constraint} was violated; this call stored nothing.`,
    { constraint, table: table_name, sqlstate: error.code },
  );
}

function statementFailed(error: ServerError | undefined): HoldfastError {
  const sqlstate = error?.code;
  return new HoldfastError(
    "STATEMENT_FAILED",
    `Postgres refused a statement (SQLSTATE ${sqlstate ?? "unknown"})${reasonOf(error)}.`,
    { sqlstate, table: error?.table_name, column: error?.column_name },
  );
}

function reasonOf(error: ServerError | undefined): string {
  // Class 42 is about the statement's text, which never holds values.
  if (error?.code.startsWith("42") === true) return `: ${error.message}`;
  return error?.code.startsWith("08") === true
    ? ": a connection that the server itself opens failed, for example to a foreign server"
    : "";
}

function isServerError(error: unknown): error is ServerError {
  return (
    typeof error === "object" &&
    error !== null &&
    ("severity" in error || "severity_local" in error) &&
    "code" in error &&
    typeof error.code === "string"
  );
}

/**
 * True for severities with which the server ends the session. The code does not matter: functions
 * may raise any code, and end nothing.
 */
function isFatal({ severity_local, severity = severity_local }: ServerError): boolean {
  return severity === "FATAL" || severity === "PANIC";
}

/** True for an error without a code, which the driver's own code threw instead of a socket. */
function isDriverBug(error: unknown): boolean {
  return errnoOf(error) === "no answer" || errnoOf(error) === "MAX_PARAMETERS_EXCEEDED";
}

function errnoOf(error: unknown): string {
  const code =
    typeof error === "object" && error !== null && "code" in error ? error.code : undefined;
  return typeof code === "string" ? code : "no answer";
}
