import { monotonicMs, realSoon } from "../../../host/timers.ts";
import { HoldfastError } from "../../../model/errors.ts";
import { tracedFailure } from "../../../model/traced-failure.ts";
import { Fate } from "../../../sql/fate.ts";
import type { Tx } from "../../../sql/operation.ts";
import type { SqlValue } from "../../../sql/statement.ts";
import type { Callable } from "../../callable.ts";
import type { OperationTimes } from "../../operation-times.ts";
import { retryWhileBusy } from "./busy.ts";
import type { Connection } from "./connection.ts";
import { databaseBusy } from "./database-busy.ts";
import { drive, isOfTransaction } from "./drive.ts";
import { sqliteCode } from "./failures.ts";
import type { Flusher } from "./flusher.ts";

export interface ReaderOptions {
  /** True in memory, where there is one connection: reads run between batches and may not write. */
  readonly sharesWriter: boolean;
  readonly readMsMax: number;
  readonly busyBudgetMs: number;
  readonly onRetry: () => void;
  readonly operations: OperationTimes;
}

/**
 * Runs reads, each in one snapshot. Returns their results only when the commits they saw are
 * durable. A commit is visible before its flush, and data that a caller acted on must not vanish in
 * a power cut.
 *
 * `data_version` moves on this connection with every commit of any other. A read of a snapshot
 * already known to be durable pays about a microsecond. The first read of a new snapshot asks
 * whether all commits are flushed, and otherwise waits for a flush.
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

  async read(body: Callable, flusher: Flusher): Promise<unknown> {
    const sinceMs = monotonicMs();
    if (this.#turn.isLong(sinceMs)) await this.#turn.next();
    try {
      // Rejects with the reason to reopen the database, so that waiting code does not wait forever.
      if (flusher.hasFailed) await flusher.flush();
      const takenMs = monotonicMs();
      const snapshot = await this.#snapshot(body.name, body.start);
      this.#options.operations.ran(body, takenMs - sinceMs, monotonicMs() - takenMs);
      const { version } = snapshot;
      // A failed read may also have failed because of what it saw.
      const isOld = version !== undefined && version === this.#durableVersion;
      if (!isOld && !body.isUnflushed) {
        if (!flusher.isFlushed()) await flusher.flush();
        // No commit followed the snapshot, or the flush began after it.
        this.#durableVersion = version;
      }
      if ("error" in snapshot) throw snapshot.error;
      return snapshot.value;
    } catch (error) {
      // Beside statements, the driver is also asked for the snapshot's version.
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

/** The longest time for which reads may follow each other before timers and sockets get a turn. */
const turnMsMax = 5;

/**
 * A turn of the event loop, given up when reads have followed each other for too long. A read of
 * durable data is answered without a turn of the loop. So `while (!(await isDone())) {}` would
 * block every timer and every answer, and wait forever for what it prevents.
 */
class LoopTurn {
  /** Start of the first read of this turn; undefined once the loop has turned. */
  #beganMs: number | undefined;

  isLong(now: number): boolean {
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

/** Runs one read on a connection that may not write. Verdicts have no effect on it. */
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

/** Forwards a body's requests until its snapshot is too old for another one. */
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
