import { monotonicMs, realSoon } from "../../../host/timers.ts";
import { HoldfastError } from "../../../model/errors.ts";
import { tracedFailure } from "../../../model/traced-failure.ts";
import { Fate } from "../../../sql/fate.ts";
import type { Tx } from "../../../sql/operation.ts";
import type { SqlValue } from "../../../sql/statement.ts";
import { retryWhileBusy } from "./busy.ts";
import type { Connection } from "./connection.ts";
import { databaseBusy } from "./database-busy.ts";
import { drive, isOfTransaction } from "./drive.ts";
import { sqliteCode } from "./failures.ts";
import type { Flusher } from "./flusher.ts";

export interface ReaderOptions {
  /** In memory there is one connection: reads run between batches and may not write. */
  readonly sharesWriter: boolean;
  readonly readMsMax: number;
  readonly busyBudgetMs: number;
  readonly onRetry: () => void;
}

/**
 * Runs reads, each in one snapshot, and lets them go only when what they saw
 * is durable: a commit is visible before its flush, and a fact that was acted
 * upon must not vanish with the power.
 *
 * `data_version` moves on this connection with every commit of any other. A
 * read of the snapshot that was last found to be durable pays about a
 * microsecond; the first one of a new snapshot asks whether all commits are
 * flushed, and else waits for a flush.
 */
export class Reader {
  readonly #connection: Connection;
  readonly #options: ReaderOptions;
  readonly #turn = new LoopTurn();
  #durableVersion: SqlValue | undefined;

  constructor(connection: Connection, options: ReaderOptions) {
    this.#connection = connection;
    this.#options = options;
  }

  async read<T>(name: string, start: () => Tx<T>, flusher: Flusher): Promise<T> {
    if (this.#turn.isLong()) await this.#turn.next();
    try {
      // Rejects with why the database must be opened anew: what waits must not go on waiting.
      if (flusher.hasFailed) await flusher.flush();
      const snapshot = await this.#snapshot(name, start);
      const { version } = snapshot;
      // Also a read that failed may have failed because of what it saw.
      if (version === undefined || version !== this.#durableVersion) {
        if (!flusher.isFlushed()) await flusher.flush();
        // Nothing was committed after it, or the flush began after it.
        this.#durableVersion = version;
      }
      if ("error" in snapshot) throw snapshot.error;
      return snapshot.value;
    } catch (error) {
      // Beside statements the driver is also asked for the snapshot's version.
      const isRaw = sqliteCode(error) !== undefined;
      return tracedFailure(isRaw ? this.#connection.failure(error) : error);
    }
  }

  #snapshot<T>(name: string, start: () => Tx<T>): Promise<Snapshot<T>> {
    return retryWhileBusy(
      () =>
        this.#options.sharesWriter
          ? guardedReadOnce(this.#connection, name, start, this.#options.readMsMax)
          : readOnce(this.#connection, name, start, this.#options.readMsMax),
      this.#options.busyBudgetMs,
      this.#options.onRetry,
      () => databaseBusy(this.#options.busyBudgetMs),
    );
  }
}

/** How long reads may follow each other before timers and sockets have their turn. */
const turnMsMax = 5;

/**
 * A read of what is durable is answered without the event loop coming around:
 * `while (!(await isDone())) {}` would let no timer fire and no answer in, and
 * so wait for ever for what it keeps from happening.
 */
class LoopTurn {
  /** When the first read of this turn began; undefined once the loop has come around. */
  #beganMs: number | undefined;

  isLong(): boolean {
    const now = monotonicMs();
    if (this.#beganMs !== undefined) return now - this.#beganMs > turnMsMax;
    this.#beganMs = now;
    realSoon(() => {
      this.#beganMs = undefined;
    });
    return false;
  }

  next(): Promise<void> {
    return new Promise((resolve) => realSoon(resolve));
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
  readMsMax: number,
): Snapshot<T> {
  connection.control("BEGIN");
  try {
    const fate = new Fate(name, undefined);
    const value = fate.during(() => drive(timed(name, start(), readMsMax), connection, fate));
    fate.verdict(value);
    return { value, version: connection.dataVersion() };
  } catch (error) {
    if (isOfTransaction(error)) throw error.cause;
    if (!connection.inTransaction) throw error;
    return { error, version: connection.dataVersion() };
  } finally {
    if (connection.inTransaction) connection.control("ROLLBACK");
  }
}

function guardedReadOnce<T>(
  connection: Connection,
  name: string,
  start: () => Tx<T>,
  readMsMax: number,
): Snapshot<T> {
  connection.beginReading();
  try {
    return readOnce(connection, name, start, readMsMax);
  } finally {
    connection.endReading();
  }
}

/** Passes a body's requests on until its snapshot is too old for another one. */
function* timed<T>(name: string, body: Tx<T>, readMsMax: number): Tx<T> {
  const untilMs = monotonicMs() + readMsMax;
  let step = body.next();
  while (step.done !== true) {
    if (monotonicMs() > untilMs) throw readTooLong(name, readMsMax);
    let answer: unknown;
    try {
      answer = yield step.value;
    } catch (error) {
      step = body.throw(error);
      continue;
    }
    step = body.next(answer);
  }
  return step.value;
}

function readTooLong(name: string, readMsMax: number): HoldfastError {
  return new HoldfastError(
    "READ_TOO_LONG",
    `Read "${name}" kept its snapshot for over ${readMsMax} ms, which holds back the write-ahead log and the event loop. ` +
      "Read in pages, each a read of its own, or use exportRows.",
    { readMsMax },
  );
}

export function readOnlyDatabase(): HoldfastError {
  return new HoldfastError(
    "READ_ONLY",
    "This database was opened read-only. Open it without `readOnly` to write.",
  );
}
