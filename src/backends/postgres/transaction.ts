import type { HoldfastError } from "../../model/errors.ts";
import type { OwnerId } from "../../model/ids/prefixed-id.ts";
import { Fate } from "../../sql/fate.ts";
import type { Isolation } from "../../sql/isolation.ts";
import type { Afterwards, Change, Tx } from "../../sql/operation.ts";
import type { Connection, TransactionKind } from "./connection.ts";
import { drive } from "./drive.ts";
import { outcomeUnknown } from "./failures.ts";

/** How one transaction ended, as the caller is to be told. */
export type Ending<T> =
  /** Durable. `tx` is undefined when nothing was written, so that there is nothing to tell. */
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
  /** Nothing happened, and the same may succeed when tried again. */
  | { readonly kind: "again"; readonly error: HoldfastError }
  /** The connection was dead before the body began. */
  | { readonly kind: "notBegun"; readonly error: HoldfastError };

/** What the body asked to be done once its caller may be told. */
type AskedFor = readonly Afterwards[] | undefined;

export interface Body<T> {
  readonly name: string;
  readonly start: () => Tx<T>;
  readonly change: Change | undefined;
  /** Read committed unless it is said. */
  readonly isolation?: Isolation;
  readonly isCovered?: boolean;
  readonly owner?: OwnerId | undefined;
}

/** Said to the server as part of the transaction, right before COMMIT. */
export type BeforeCommit = (connection: Connection, changes: readonly Change[]) => Promise<void>;

/** Runs a body in one transaction on a connection that is ours alone. */
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
 * Runs a body in one snapshot. The transaction is left open: its value is
 * good already, so the caller need not wait for the end.
 */
export async function look<T>(connection: Connection, body: Body<T>): Promise<Ending<T>> {
  try {
    await connection.begin("read");
  } catch (error) {
    return notBegun(connection, error);
  }
  const fate = new Fate(body.name, undefined);
  try {
    const value = await drive(connection, body.start, fate);
    // A read has nothing to commit, so both verdicts end it alike.
    fate.verdict(value);
    return judged(connection, { kind: "rolledBack", value });
  } catch (error) {
    const ending = judged<T>(connection, { kind: "failed", error });
    const { failure } = connection;
    // A read changes nothing, so it can be repeated on another connection.
    return failure?.code === "CONNECTION_LOST" ? { kind: "again", error: failure } : ending;
  }
}

/** Ends whatever transaction is open; on a broken connection the server does. */
export async function leave(connection: Connection): Promise<void> {
  await connection.rollback().catch(() => connection.discard());
}

function notBegun(connection: Connection, error: unknown): Ending<never> {
  // A BEGIN that fails on a living connection has left it in no known state.
  connection.discard();
  return { kind: "notBegun", error: error as HoldfastError };
}

async function rollBack<T>(connection: Connection, decided: Ending<T>): Promise<Ending<T>> {
  const ending = judged(connection, decided);
  await leave(connection);
  return ending;
}

/**
 * How the call ended: as the body decided, unless the database has the last
 * word. A body may catch a deadlock's error and answer all the same, but what
 * it then knows is worth nothing.
 */
function judged<T>(connection: Connection, decided: Ending<T>): Ending<T> {
  const { failure } = connection;
  switch (failure?.code) {
    case "CONNECTION_LOST":
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
    if (connection.failure?.code === "CONNECTION_LOST")
      return { kind: "failed", error: outcomeUnknown() };
    // The server answered, so it has rolled back: a deferred constraint, say.
    return rollBack(connection, { kind: "failed", error, afterwards });
  }
}
