import type { ByteTools } from "../model/values/byte-tools.ts";
import type { Clock } from "../model/time/clock.ts";
import type { Duration } from "../model/time/durations.ts";
import type { Entropy } from "../model/entropy.ts";
import type { HoldfastError } from "../model/errors.ts";
import type { OwnerId } from "../model/ids/prefixed-id.ts";
import type { Isolation } from "./isolation.ts";
import type { Change, Operation, Tx } from "./operation.ts";

/** What `write` and `read` take: an operation, or a name for a body that has none. */
export type Callee = string | Operation<never, unknown>;

/** What goes with it: the operation's input, or the body. */
export type CallInput<C extends Callee, O> = [C] extends [Operation<infer I, unknown>]
  ? I
  : () => Tx<O>;

/** What the call resolves to. */
export type CallOutput<C extends Callee, O> = [C] extends [Operation<never, infer R>] ? R : O;

/** Every wait can be given up: by a signal or after a time. */
export interface WaitOptions {
  readonly signal?: AbortSignal | undefined;
  readonly timeout?: Duration | undefined;
}

/** What `write` may be told besides. */
export interface WriteOptions extends WaitOptions {
  /**
   * Defaults to the operation's own, and for a body without one to
   * `serializable`: the transaction happens as if it were alone, and is run
   * again, for up to 15 seconds, when others got in its way. `readCommitted`
   * spares the re-runs to those who lock what they decide by with `lockRow`.
   * The outermost call decides for all that it composes.
   */
  readonly isolation?: Isolation | undefined;
}

/**
 * What subscribers are told, after the change is durable: which operation
 * touched which aggregate, or (`unknown`) that something may have changed:
 * a body without operations, say, or somebody with a database shell.
 * A hint: it may come twice, and the reader re-reads.
 */
export type ChangeHint =
  | ({ readonly kind: "change" } & Change)
  | { readonly kind: "unknown" }
  /** A process that had the database open has provably died. */
  | { readonly kind: "death"; readonly owner: OwnerId }
  /** The database takes no more calls, so nobody needs to wait for a change any longer. */
  | { readonly kind: "closing" };

/**
 * Which changes a subscriber wants to hear of: those of an operation or a
 * topic, of one key, or of all when none is named.
 */
export interface Interest {
  readonly operation: string;
  readonly key?: string | undefined;
}

/** Whether another process lives: `dead` is proven, `unknown` is no proof of anything. */
export type Liveness = "alive" | "dead" | "unknown";

/** Percentiles since the database was opened, in milliseconds. */
export interface Latency {
  readonly count: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

export interface Stats {
  /** Calls that no transaction has taken yet. */
  readonly queueDepth: number;
  /** Physical transactions committed, and the calls in them. */
  readonly commits: number;
  readonly calls: number;
  readonly batchSize: {
    readonly p50: number;
    readonly p99: number;
    readonly max: number;
  };
  /** BEGIN to COMMIT, and COMMIT to durable. */
  readonly commitMs: Latency;
  readonly flushMs: Latency;
  readonly flushes: number;
  /** How long the first call of each writing transaction had waited for it. */
  readonly queueWaitMs: Latency;
  /** How long another process kept us from SQLite's write lock, each time; nothing elsewhere. */
  readonly lockWaitMs: Latency;
  /** Calls that ended by rolling back, by error or by verdict. */
  readonly rollbacks: number;
  /** Waits for a lock held elsewhere, and transactions run again. */
  readonly busyRetries: number;
  readonly reruns: number;
  /** Bytes in use in SQLite's write-ahead log, as last measured; 0 elsewhere. */
  readonly walBytes: number;
  readonly checkpoints: {
    readonly passive: number;
    readonly restarts: number;
    readonly failures: number;
  };
  /** Who or what has kept that log from being restarted for over a second, as last seen, and what to do. */
  readonly logHeldBack: string | undefined;
  /** Other processes on the same file, and why they cannot be heard at once, if so. */
  readonly peers: {
    readonly connected: number;
    readonly unavailable: string | undefined;
    readonly unwatched: string | undefined;
  };
  /** Times the safety-net poll found something no hint had told. */
  readonly polls: number;
  /** Server time minus local time; 0 on SQLite. */
  readonly clockOffsetMs: number;
}

/** One step in the making of an app's own tables: see `Database.setUp`. */
export interface AppMigration {
  /** By it the database remembers what was applied, so it never changes. */
  readonly name: string;
  /** A body like that of `write`; it may be run again, so it is pure apart from its statements. */
  readonly up: () => Tx<unknown>;
}

export interface SetUpReport {
  /** The names of the migrations that this call has applied, in order. */
  readonly applied: readonly string[];
}

/**
 * Something worth knowing that is no error and stops nothing. Match on `code`.
 * - `CLOCK_SKEW`: the clock of this machine and the server's differ by over a second.
 * - `FSYNC_OFF`: the Postgres server does not flush what it acknowledges.
 * - `FILE_SYSTEM_DOUBTFUL`: a SQLite file lies where locks may not reach everybody.
 * - `LOG_HELD_BACK`: a reader keeps SQLite's log from being restarted; the message names it.
 * - `LOCK_CONTENTION`: bodies on Postgres keep waiting for each other's locks; the message names them.
 * - `LOG_CUT_SHORT`: a SQLite log that was left by a crash holds whole
 *   transactions behind a damaged place, where SQLite does not reach. After a
 *   power cut nobody may have been told of them; otherwise acknowledged facts
 *   may be lost. The log as it was is kept in `<file>-wal-cut-short`.
 */
export interface Warning {
  readonly code:
    | "CLOCK_SKEW"
    | "FSYNC_OFF"
    | "FILE_SYSTEM_DOUBTFUL"
    | "LOG_HELD_BACK"
    | "LOG_CUT_SHORT"
    | "LOCK_CONTENTION";
  readonly message: string;
}

export type Durability = "full" | "normal" | "memory";

/**
 * A database with our tables in it. Both backends implement exactly this, so
 * stores and runtime never ask which one they have.
 */
export interface Database {
  readonly dialect: "sqlite" | "postgres";
  /** What an acknowledgement promises: `full` survives power loss, `normal` a crash of the process, `memory` nothing. */
  readonly durability: Durability;
  /** This process among those that have the database open. */
  readonly owner: OwnerId;
  /** The time operations should be given. On Postgres the server's. */
  readonly clock: Clock;
  /** The machine's randomness, and its hash: for stores, which have none of their own. */
  readonly entropy: Entropy;
  readonly sha256Hex: (text: string) => string;
  /** The same for bytes, and how to make them smaller. */
  readonly bytes: ByteTools;

  /**
   * Runs an operation in a transaction and resolves once its result is
   * durable. A signal or timeout cancels a call that no transaction has taken
   * yet; after that it is ignored and the call resolves.
   *
   * Your operations and bodies are serializable on both databases: what they
   * select is still so when they commit. On Postgres that may take several
   * runs, so a row that many callers change at once is better read with
   * `lockRow` under `{ isolation: "readCommitted" }`.
   *
   * On SQLite its statements run on the calling thread: a slow one pauses
   * everything else in the process until it is done. Flushes, checkpoints and
   * the locks of other processes do not. Keep statements short by an index and
   * by slices, with `pause()` in between.
   *
   * @throws HoldfastError `ISOLATION_MISMATCH` when what it composes needs
   *   another isolation, `TRANSACTION_CONFLICT` or `DATABASE_BUSY` when others
   *   got in its way for 15 seconds, `CONSTRAINT_VIOLATED`, `OUTCOME_UNKNOWN` …
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
   * On SQLite its statements run on the calling thread, as those of `write`:
   * a slow SELECT pauses the process, and nothing can interrupt it. Read long
   * lists in pages, each a read of its own; whole tables with `exportRows`,
   * damage with `check` and sizes with `sizes`, which run off the event loop.
   * On Postgres the server does the work.
   * @example
   * const all = await database.read("all", () => rows(sql`SELECT id FROM account`));
   */
  read<C extends Callee, O = unknown>(
    operation: C,
    input: CallInput<C, O>,
    options?: WaitOptions,
  ): Promise<CallOutput<C, O>>;

  /**
   * Brings an app's own tables up to date: applies, in order, those migrations
   * that the database does not record for this app, all in one transaction,
   * and records them. Any number of processes may call it at once on a new
   * database; each migration is applied once. What is recorded are names, not
   * content: to change something, add a migration at the end. A list that is
   * the beginning of what is recorded is fine: newer code was here.
   * @throws HoldfastError `SET_UP_CONFLICT` when a recorded migration is missing
   * from the list or stands elsewhere, `READ_ONLY` when something is to be
   * applied and the database was opened read-only, `OPTION_INVALID` and
   * `NAME_INVALID` for a list that makes no sense; what a migration throws, as
   * it is. In each case nothing was changed.
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

  /** Resolves when the queue has room: await it between writes you do not await. */
  writable(options?: WaitOptions): Promise<void>;

  /** Lets the rest of the process run: between the slices of long work, which would else keep it waiting. */
  pause(): Promise<void>;

  /**
   * Keeps the process from ending until the returned function is called or the
   * database is closed. All
   * calls and waits do this by themselves while they are pending; an open
   * database, a subscription and a lease that is kept do not. For waits of
   * your own over `subscribe`, and for a program that only answers others.
   * @example
   * const release = database.keepAlive();
   * process.once("SIGTERM", release);
   */
  keepAlive(): () => void;

  /**
   * Calls the listener after each durable change; returns the way to stop.
   * Does not keep the process alive. With `interests` it is told only changes
   * that one of them names, and still every hint that is not a change. Others'
   * interests cost a write nothing, however many there are: a listener per
   * aggregate is better than one that looks at everything.
   * @throws HoldfastError `DATABASE_CLOSED`, or `OPTION_INVALID` for what is no listener or no list of interests.
   * @example
   * const stop = database.subscribe((hint) => refresh(hint), [
   *   { operation: "deposit", key: "ada" },
   * ]);
   */
  subscribe(listener: (hint: ChangeHint) => void, interests?: readonly Interest[]): () => void;

  /**
   * Calls the watcher with the reason when the server has not been reached for
   * three seconds, and with undefined when it is again; returns the way to stop.
   * Calls that wait meanwhile go on by themselves. Never called on SQLite.
   * @throws HoldfastError `DATABASE_CLOSED`
   */
  watchOutages(watcher: (outage: HoldfastError | undefined) => void): () => void;

  /** Whether the process behind an owner lives. On one machine a death is known at once. */
  liveness(owner: OwnerId): Promise<"alive" | "dead" | "unknown">;

  stats(): Stats;

  /**
   * Takes no new calls, finishes those queued for up to `timeout` (defaults to 10 s), and
   * releases the database. Whatever still waits ends with `DATABASE_CLOSED`. A
   * process that forgets to close ends by itself once nothing is pending.
   */
  close(options?: { readonly timeout?: Duration }): Promise<void>;

  /** Closes it at the end of a block: `await using database = await openSqlite(path)`, from Node 24 on. */
  [Symbol.asyncDispose](): Promise<void>;
}
