import { HoldfastError } from "../../model/errors.ts";
import { Fate } from "../../sql/fate.ts";
import type { Tx } from "../../sql/operation.ts";
import type { SqlValue } from "../../sql/statement.ts";
import { retryWhileBusy } from "./busy.ts";
import type { Connection } from "./connection.ts";
import { Busy, TransactionEnded, drive } from "./drive.ts";
import type { FlushWitness, Flusher } from "./flusher.ts";
import { databaseBusy } from "./group-commit.ts";

/**
 * Runs reads, each in one snapshot, and lets them go only when what they saw
 * is durable: a commit is visible before its flush, and a fact that was acted
 * upon must not vanish with the power.
 *
 * `data_version` moves on this connection with every commit of any other, so
 * its value before the last successful flush began names the newest snapshot
 * known to be durable. A read of that snapshot pays about a microsecond.
 */
export class Reader implements FlushWitness<SqlValue | undefined> {
  readonly #connection: Connection;
  readonly #busyBudgetMs: number;
  readonly #onRetry: () => void;
  #durableVersion: SqlValue | undefined;

  readonly #sharesWriter: boolean;

  /** In memory there is one connection: reads run between batches and may not write. */
  constructor(
    connection: Connection,
    sharesWriter: boolean,
    busyBudgetMs: number,
    onRetry: () => void,
  ) {
    this.#connection = connection;
    this.#sharesWriter = sharesWriter;
    this.#busyBudgetMs = busyBudgetMs;
    this.#onRetry = onRetry;
  }

  begin(): SqlValue | undefined {
    try {
      return this.#connection.pragma("data_version");
    } catch {
      // Busy, most likely: then nothing is known and the next read flushes.
      return undefined;
    }
  }

  succeeded(version: SqlValue | undefined): void {
    this.#durableVersion = version;
  }

  async read<T>(
    name: string,
    start: () => Tx<T>,
    flusher: Flusher,
  ): Promise<T> {
    const snapshot = await this.#snapshot(name, start);
    const known =
      snapshot.version !== undefined &&
      snapshot.version === this.#durableVersion;
    // Also a read that failed may have failed because of what it saw.
    if (!known && flusher.isNeeded) await flusher.flush();
    if ("error" in snapshot) throw snapshot.error;
    return snapshot.value;
  }

  #snapshot<T>(name: string, start: () => Tx<T>): Promise<Snapshot<T>> {
    return retryWhileBusy(
      () =>
        this.#sharesWriter
          ? guardedReadOnce(this.#connection, name, start)
          : readOnce(this.#connection, name, start),
      this.#busyBudgetMs,
      this.#onRetry,
      () => databaseBusy(this.#busyBudgetMs),
    );
  }
}

type Snapshot<T> = { readonly version: SqlValue | undefined } & (
  { readonly value: T } | { readonly error: unknown }
);

/** One read on a connection that may not write; verdicts make no difference to it. */
function readOnce<T>(
  connection: Connection,
  name: string,
  start: () => Tx<T>,
): Snapshot<T> {
  connection.control("BEGIN");
  try {
    const fate = new Fate(name, undefined);
    const value = drive(start(), connection, fate);
    fate.verdict();
    return { value, version: connection.pragma("data_version") };
  } catch (error) {
    if (error instanceof Busy || error instanceof TransactionEnded)
      throw error.cause;
    if (!connection.inTransaction) throw error;
    return { error, version: connection.pragma("data_version") };
  } finally {
    if (connection.inTransaction) connection.control("ROLLBACK");
  }
}

function guardedReadOnce<T>(
  connection: Connection,
  name: string,
  start: () => Tx<T>,
): Snapshot<T> {
  connection.control("PRAGMA query_only = 1");
  try {
    return readOnce(connection, name, start);
  } finally {
    connection.control("PRAGMA query_only = 0");
  }
}

export function readOnlyDatabase(): HoldfastError {
  return new HoldfastError(
    "READ_ONLY",
    "This database was opened read-only. Open it without `readOnly` to write.",
  );
}
