import type { HoldfastError } from "../../model/errors.ts";
import type { OwnerId } from "../../model/ids/prefixed-id.ts";
import { Fate } from "../../sql/fate.ts";
import type { Isolation } from "../../sql/isolation.ts";
import type { LoneStatement } from "../../sql/lone-statement.ts";
import type { Afterwards, Change, Tx } from "../../sql/operation.ts";
import type { Connection, TransactionKind } from "./connection.ts";
import { drive } from "./drive.ts";
import { connectionLost, isLoss, outcomeUnknown } from "./failures.ts";

/** The outcome of one transaction, as reported to the caller. */
export type Ending<T> =
  /** Durable. `tx` is undefined when nothing was written, so there is nothing to announce. */
  | {
      readonly kind: "committed";
      readonly value: T;
      readonly tx: number | undefined;
      readonly changes: readonly Change[];
      readonly afterwards?: AskedFor;
    }
  | {
      readonly kind: "rolledBack";
      readonly value: T;
      readonly afterwards?: AskedFor;
    }
  | {
      readonly kind: "failed";
      readonly error: unknown;
      readonly afterwards?: AskedFor;
    }
  /** Nothing happened, and a retry may succeed. */
  | { readonly kind: "again"; readonly error: HoldfastError }
  /** The connection was dead before the body began. */
  | { readonly kind: "notBegun"; readonly error: HoldfastError };

/** Actions that the body requested for the time after its caller was answered. */
type AskedFor = readonly Afterwards[] | undefined;

export interface Body<T> {
  readonly name: string;
  readonly start: () => Tx<T>;
  readonly change: Change | undefined;
  /** Defaults to read committed. */
  readonly isolation?: Isolation;
  readonly isCovered?: boolean;
  readonly owner?: OwnerId | undefined;
}

/** Runs as part of the transaction, right before COMMIT. */
export type BeforeCommit = (connection: Connection, changes: readonly Change[]) => Promise<void>;

/** Runs a body in one transaction on a connection that no other call uses. */
export async function transact<T>(
  connection: Connection,
  kind: Exclude<TransactionKind, "read">,
  body: Body<T>,
  beforeCommit: BeforeCommit | undefined,
): Promise<Ending<T>> {
  try {
    await connection.begin(kind);
  } catch (error) {
    return notBegun(connection, error);
  }
  const { name, change, isolation = "readCommitted", isCovered, owner } = body;
  const fate = new Fate(name, change, isolation, isCovered, owner);
  let value: T;
  try {
    value = await drive(connection, body.start, fate);
    if (fate.verdict(value) === "rollback")
      return await rollBack(connection, {
        kind: "rolledBack",
        value,
        afterwards: fate.afterwards,
      });
    await beforeCommit?.(connection, fate.changes);
  } catch (error) {
    const { afterwards } = fate;
    return rollBack(connection, { kind: "failed", error, afterwards });
  }
  return commit(connection, value, fate);
}

/**
 * Runs a statement that the server commits by itself. It rolls back without a value when the
 * statement changed nothing. Until its answer comes, its outcome is unknown.
 */
export async function transactLone<T>(
  connection: Connection,
  { statement, value }: LoneStatement<T>,
  change: Change | undefined,
): Promise<Ending<T | undefined>> {
  if (connection.isLost) return notBegun(connection, connectionLost());
  try {
    const { rows } = await connection.queryLone(statement);
    const [written] = rows as readonly { readonly tx: number }[];
    if (written === undefined) return { kind: "rolledBack", value: undefined };
    const changes = change === undefined ? [] : [change];
    return { kind: "committed", value, tx: written.tx, changes };
  } catch (error) {
    return { kind: "failed", error: isLoss(connection.failure) ? outcomeUnknown() : error };
  }
}

/**
 * Runs a body in one snapshot. The transaction is left open: its value is already final, so the
 * caller need not wait for the end.
 */
export async function look<T>(connection: Connection, body: Body<T>): Promise<Ending<T>> {
  if (connection.isLost) return notBegun(connection, connectionLost());
  connection.beginRead();
  const ending = await looked(connection, body);
  const refusal = await connection.readRefusal();
  return refusal === undefined ? ending : notBegun(connection, refusal);
}

async function looked<T>(connection: Connection, body: Body<T>): Promise<Ending<T>> {
  const fate = new Fate(body.name, undefined);
  try {
    const value = await drive(connection, body.start, fate);
    // A read has nothing to commit, so both verdicts have the same effect.
    fate.verdict(value);
    return judged(connection, { kind: "rolledBack", value });
  } catch (error) {
    const ending = judged<T>(connection, { kind: "failed", error });
    const { failure } = connection;
    // A read changes nothing, so it can be repeated on another connection. After a silence its
    // caller has waited long enough.
    return failure?.code === "CONNECTION_LOST" ? { kind: "again", error: failure } : ending;
  }
}

/** Ends the open transaction, if any. On a broken connection the server ends it. */
export async function leave(connection: Connection): Promise<void> {
  await connection.rollback().catch(() => connection.discard());
}

function notBegun(connection: Connection, error: unknown): Ending<never> {
  // A BEGIN that failed on a living connection leaves its state unknown.
  connection.discard();
  return { kind: "notBegun", error: error as HoldfastError };
}

async function rollBack<T>(connection: Connection, decided: Ending<T>): Promise<Ending<T>> {
  const ending = judged(connection, decided);
  await leave(connection);
  return ending;
}

/**
 * The outcome of a call: the body's decision, unless the database overrules it. A body may catch a
 * deadlock's error and still return a value, but that value is worthless.
 */
function judged<T>(connection: Connection, decided: Ending<T>): Ending<T> {
  const { failure } = connection;
  switch (failure?.code) {
    case "CONNECTION_LOST":
    case "DATABASE_UNREACHABLE":
      return { kind: "failed", error: failure };
    case "TRANSACTION_CONFLICT":
    case "DATABASE_BUSY":
      return { kind: "again", error: failure };
    default:
      return decided;
  }
}

async function commit<T>(
  connection: Connection,
  value: T,
  { changes, afterwards }: Fate,
): Promise<Ending<T>> {
  try {
    const tx = await connection.commit();
    return { kind: "committed", value, tx, changes, afterwards };
  } catch (error) {
    if (isLoss(connection.failure)) return { kind: "failed", error: outcomeUnknown() };
    // The server answered, so it has rolled back, for example because of a deferred constraint.
    return rollBack(connection, { kind: "failed", error, afterwards });
  }
}
