import type { ByteTools } from "../model/values/byte-tools.ts";
import type { Clock } from "../model/time/clock.ts";
import type { Duration } from "../model/time/durations.ts";
import type { Entropy } from "../model/entropy.ts";
import type { HoldfastError } from "../model/errors.ts";
import type { OwnerId } from "../model/ids/prefixed-id.ts";
import type { Isolation } from "./isolation.ts";
import type { Change, Operation, Tx } from "./operation.ts";

/** The first argument of `write` and `read`: an operation, or a name for a body without one. */
export type Callee = string | Operation<never, unknown>;

/** The second argument: the operation's input, or the body. */
export type CallInput<C extends Callee, O> = [C] extends [Operation<infer I, unknown>]
  ? I
  : () => Tx<O>;

/** The result of the call. */
export type CallOutput<C extends Callee, O> = [C] extends [Operation<never, infer R>] ? R : O;

/** Options to end a wait early: a signal, a timeout, or both. */
export interface WaitOptions {
  readonly signal?: AbortSignal | undefined;
  readonly timeout?: Duration | undefined;
}

/** Options of `write`. */
export interface WriteOptions extends WaitOptions {
  /**
   * The isolation of the transaction. Defaults to the operation's own; a body without one is
   * `serializable`. A serializable transaction behaves as if it ran by itself. If others interfere,
   * it is retried for up to 15 seconds. `readCommitted` avoids the retries for code that locks the
   * rows it decides by, with `lockRow`. The outermost call decides for everything that it composes.
   */
  readonly isolation?: Isolation | undefined;
}

/**
 * A hint to subscribers, sent after the change is durable. `change` names the operation and the
 * aggregate. `unknown` says that something may have changed, for example by a body without
 * operations or in a database shell. A hint may come twice, and the subscriber reads the data
 * again.
 */
export type ChangeHint =
  | ({ readonly kind: "change" } & Change)
  | { readonly kind: "unknown" }
  /** A process that had the database open is proven dead. */
  | { readonly kind: "death"; readonly owner: OwnerId }
  /** The database accepts no more calls, so no further change will come. */
  | { readonly kind: "closing" };

/**
 * A filter for a subscriber: the changes of one operation or topic, for one key or, without a key,
 * for all keys.
 */
export interface Interest {
  readonly operation: string;
  readonly key?: string | undefined;
}

/** The state of another process. `dead` is proven; `unknown` proves nothing. */
export type Liveness = "alive" | "dead" | "unknown";

/** Percentiles since the database was opened, in milliseconds. */
export interface Latency {
  readonly count: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

/** The duration of an operation's calls in milliseconds; percentiles are at most 1/8 too high. */
export interface OperationTime {
  readonly count: number;
  /** The time until a transaction took the call. */
  readonly waitingMs: { readonly p50: number; readonly p99: number };
  /**
   * The time inside the transaction: on SQLite until the body ended, on Postgres until the
   * transaction ended.
   */
  readonly runningMs: { readonly p50: number; readonly p99: number };
}

export interface Stats {
  /** Calls that wait for a transaction. */
  readonly queueDepth: number;
  /** Committed physical transactions, and the calls in them. */
  readonly commits: number;
  readonly calls: number;
  readonly batchSize: {
    readonly p50: number;
    readonly p99: number;
    readonly max: number;
  };
  /** The time from BEGIN to COMMIT, and from COMMIT to durable. */
  readonly commitMs: Latency;
  readonly flushMs: Latency;
  readonly flushes: number;
  /** The wait of the first call in each writing transaction. */
  readonly queueWaitMs: Latency;
  /** Each wait for SQLite's write lock while another process held it; empty on Postgres. */
  readonly lockWaitMs: Latency;
  /**
   * Reads and writes by the name of their operation or body. The names of the first 200 bodies are
   * kept; all others count as "(others)".
   */
  readonly operations: Readonly<Record<string, OperationTime>>;
  /** Calls that rolled back, by an error or by a verdict. */
  readonly rollbacks: number;
  /** Waits for a lock held elsewhere, and transactions that were retried. */
  readonly busyRetries: number;
  readonly reruns: number;
  /** The bytes in use in SQLite's write-ahead log at the last measurement; 0 on Postgres. */
  readonly walBytes: number;
  readonly checkpoints: {
    readonly passive: number;
    readonly restarts: number;
    readonly failures: number;
  };
  /** The last reason why the log was not restarted for over a second, and the remedy. */
  readonly logHeldBack: string | undefined;
  /**
   * The other processes on the same file. `unavailable` and `unwatched` say why their hints are
   * delayed, if they are.
   */
  readonly peers: {
    readonly connected: number;
    readonly unavailable: string | undefined;
    readonly unwatched: string | undefined;
  };
  /** The number of times that the safety-net poll found a change without a hint. */
  readonly polls: number;
  /** Server time minus local time; 0 on SQLite. */
  readonly clockOffsetMs: number;
}

/** One step in creating or changing an app's own tables; see `Database.setUp`. */
export interface AppMigration {
  /** The name under which the database records the step. It must never change. */
  readonly name: string;
  /** A body like that of `write`. It may be retried, so only its statements may have effects. */
  readonly up: () => Tx<unknown>;
}

export interface SetUpReport {
  /** The names of the migrations that this call applied, in order. */
  readonly applied: readonly string[];
}

/**
 * A notice that is not an error and stops nothing. Match on `code`.
 * - `CLOCK_SKEW`: this machine's clock and the server's differ by over a second.
 * - `FSYNC_OFF`: the Postgres server does not flush what it acknowledges.
 * - `FILE_SYSTEM_DOUBTFUL`: the file system of a SQLite file may not share locks with all
 *   processes.
 * - `LOG_HELD_BACK`: a reader keeps SQLite's log from being restarted; the message names it.
 * - `LOCK_CONTENTION`: bodies on Postgres keep waiting for each other's locks; the message names
 *   them.
 * - `ANSWER_SLOW`: a Postgres statement takes longer than `answerTimeout`; the call keeps waiting.
 * - `POOLER_FOUND`: a pooler answers for Postgres, so prepared statements and session settings are
 *   not used.
 * - `LOG_CUT_SHORT`: a SQLite log left by a crash holds whole transactions behind a damaged place,
 *   where SQLite does not reach. After a power cut they may never have been acknowledged; otherwise
 *   acknowledged facts may be lost. The original log is kept in `<file>-wal-cut-short`.
 */
export interface Warning {
  readonly code:
    | "CLOCK_SKEW"
    | "DRIVER_UNUSABLE"
    | "FSYNC_OFF"
    | "FILE_SYSTEM_DOUBTFUL"
    | "LOG_HELD_BACK"
    | "LOG_CUT_SHORT"
    | "LOCK_CONTENTION"
    | "ANSWER_SLOW"
    | "POOLER_FOUND";
  readonly message: string;
}

export type Durability = "full" | "normal" | "memory";

/**
 * A database that contains Holdfast's tables. Both backends implement exactly this interface, so
 * stores and runtime never ask which database they use.
 */
export interface Database {
  readonly dialect: "sqlite" | "postgres";
  /**
   * The guarantee of an acknowledgement: `full` survives power loss, `normal` survives a crash of
   * the process, `memory` survives nothing.
   */
  readonly durability: Durability;
  /** The id of this process among the processes that have the database open. */
  readonly owner: OwnerId;
  /** The owner of the database that runs the calls of a simulated process. */
  readonly actsFor?: OwnerId;
  /** The clock for operations. On Postgres it is the server's. */
  readonly clock: Clock;
  /** The machine's randomness and hash, for stores, which have none of their own. */
  readonly entropy: Entropy;
  readonly sha256Hex: (text: string) => string;
  /** Hashing and compression of bytes. */
  readonly bytes: ByteTools;

  /**
   * Runs an operation in a transaction and resolves once its result is durable. A signal or timeout
   * cancels a call that no transaction has taken yet. Later it is ignored, and the call resolves.
   *
   * Your operations and bodies are serializable on both databases: the rows they select are
   * unchanged when they commit. On Postgres that may take several runs. For a row that many callers
   * change at once, prefer `lockRow` under `{ isolation: "readCommitted" }`.
   *
   * On SQLite the statements run on the calling thread, so a slow one blocks the whole process
   * until it ends. Flushes, checkpoints and the locks of other processes do not. Keep statements
   * short with an index and with slices, and call `pause()` in between.
   *
   * @throws HoldfastError `ISOLATION_MISMATCH` when a composed operation needs another isolation,
   * `TRANSACTION_CONFLICT` or `DATABASE_BUSY` when others interfered for 15 seconds,
   * `CONSTRAINT_VIOLATED`, `OUTCOME_UNKNOWN` …
   * @example
   * await database.write(deposit, { id: "ada", cents: 500 });
   * await database.write("clear", function* () {
   *   yield* run(sql`DELETE FROM account`);
   * });
   * @example
   * await database.write("spend", function* () {
   *   const account = yield* row<{ cents: number }>(
   *     sql`SELECT cents FROM account WHERE id = 'ada' ${lockRow}`);
   *   if (account === undefined || account.cents < 500) return false;
   *   yield* run(sql`UPDATE account SET cents = ${account.cents - 500} WHERE id = 'ada'`);
   *   return true;
   * }, { isolation: "readCommitted" });
   */
  write<C extends Callee, O = unknown>(
    operation: C,
    input: CallInput<C, O>,
    options?: WriteOptions,
  ): Promise<CallOutput<C, O>>;

  /**
   * Runs a read in one snapshot and resolves once that snapshot is durable.
   *
   * On SQLite the statements run on the calling thread, like those of `write`. A slow SELECT blocks
   * the process, and nothing can interrupt it. Read long lists in pages, each in its own read. Use
   * `exportRows` for whole tables, `check` for damage and `sizes` for sizes: they run off the event
   * loop. On Postgres the server does the work.
   * @example
   * const all = await database.read("all", () => rows(sql`SELECT id FROM account`));
   */
  read<C extends Callee, O = unknown>(
    operation: C,
    input: CallInput<C, O>,
    options?: WaitOptions,
  ): Promise<CallOutput<C, O>>;

  /**
   * Brings an app's own tables up to date. It applies the migrations that the database does not
   * record for this app, in order, in one transaction, and records them. Any number of processes
   * may call it at once on a new database; each migration is applied once. Only names are recorded,
   * not content, so add a migration at the end to change something. A list that ends before the
   * recorded names is fine: newer code was here.
   * @throws HoldfastError `SET_UP_CONFLICT` when a recorded migration is missing from the list or
   * has another position, `READ_ONLY` when a migration is due and the database was opened
   * read-only, `OPTION_INVALID` and `NAME_INVALID` for an invalid list. An error from a migration
   * is rethrown unchanged. In each case nothing was changed.
   * @example
   * await database.setUp("shop", [
   *   {
   *     name: "0001_account",
   *     *up() {
   *       yield* run(sql`CREATE TABLE account (id ${text} PRIMARY KEY, cents ${integer} NOT NULL)`);
   *     },
   *   },
   * ]);
   */
  setUp(
    app: string,
    migrations: readonly AppMigration[],
    options?: WaitOptions,
  ): Promise<{ readonly applied: readonly string[] }>;

  /** Resolves when the queue has room. Await it between writes that you do not await. */
  writable(options?: WaitOptions): Promise<void>;

  /** Lets the rest of the process run. Await it between the slices of long work. */
  pause(): Promise<void>;

  /**
   * Keeps the process alive until the returned function is called or the database is closed.
   * Pending calls and waits do this by themselves. An open database, a subscription and a kept
   * lease do not. Use it for your own waits over `subscribe`, and for a program that only answers
   * requests.
   * @example
   * const release = database.keepAlive();
   * process.once("SIGTERM", release);
   */
  keepAlive(): () => void;

  /**
   * Calls the listener after each durable change and returns a function that stops it. Does not
   * keep the process alive. With `interests` the listener gets only the changes that they name, and
   * still every other hint. The interests of others cost a write nothing, even if there are many.
   * So one listener per aggregate is better than one that inspects every change.
   * @throws HoldfastError `DATABASE_CLOSED`, or `OPTION_INVALID` for an invalid listener or list of
   * interests.
   * @example
   * const stop = database.subscribe((hint) => refresh(hint), [
   *   { operation: "deposit", key: "ada" },
   * ]);
   */
  subscribe(listener: (hint: ChangeHint) => void, interests?: readonly Interest[]): () => void;

  /**
   * Calls the watcher with the reason when the server has been unreachable for three seconds, and
   * with undefined when it is reachable again. Returns a function that stops it. Calls that wait
   * during an outage continue by themselves. Never called on SQLite.
   * @throws HoldfastError `DATABASE_CLOSED`
   */
  watchOutages(watcher: (outage: HoldfastError | undefined) => void): () => void;

  /**
   * Reports the state of an owner's process. On one machine a death is known at once.
   * @throws HoldfastError `ID_MALFORMED`
   */
  liveness(owner: OwnerId): Promise<"alive" | "dead" | "unknown">;

  stats(): Stats;

  /**
   * Accepts no new calls, finishes the queued ones for up to `timeout` (defaults to 10 s), and
   * releases the database. Calls that still wait end with `DATABASE_CLOSED`. A process that never
   * closes its database still ends once nothing is pending.
   */
  close(options?: { readonly timeout?: Duration }): Promise<void>;

  /**
   * Closes the database at the end of a block: `await using database = await openSqlite(path)`,
   * from Node 24 on.
   */
  [Symbol.asyncDispose](): Promise<void>;
}
