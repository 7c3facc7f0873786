import { byteTools } from "../../host/bytes.ts";
import { systemEntropy } from "../../host/entropy.ts";
import { sha256Hex } from "../../host/hash.ts";
import { sleep, realSoon } from "../../host/timers.ts";
import type { ByteTools } from "../../model/values/byte-tools.ts";
import type { Clock } from "../../model/time/clock.ts";
import { durationMs } from "../../model/time/durations.ts";
import type { Duration } from "../../model/time/durations.ts";
import type { Entropy } from "../../model/entropy.ts";
import { setUp } from "../../stores/app-migration/set-up.ts";
import type {
  AppMigration,
  CallInput,
  CallOutput,
  Callee,
  ChangeHint,
  Database,
  Durability,
  Interest,
  Liveness,
  SetUpReport,
  Stats,
  WaitOptions,
  WriteOptions,
} from "../../sql/database.ts";
import { callable } from "../callable.ts";
import { onGiveUp, orGiveUp } from "../give-up.ts";
import { KeepAlives } from "../keep-alives.ts";
import type { Meters } from "../meters.ts";
import { checkedWrite, refuseUnknown, refuseUnknownWait } from "../option-checks.ts";
import { databaseClosed } from "../refusals.ts";
import type { Subscribers } from "../subscribers.ts";
import { HoldfastError } from "../../model/errors.ts";
import { parseOwnerId, type OwnerId } from "../../model/ids/prefixed-id.ts";
import { Call } from "./write/call.ts";
import type { Checkpointer } from "./log/checkpointer.ts";
import type { Flusher } from "./write/flusher.ts";
import type { BackupResult } from "./heavy/backup.ts";
import type { CheckReport } from "./heavy/check.ts";
import type { RowPage } from "./heavy/export-rows.ts";
import type { HeavyOptions } from "./heavy/heavy-call.ts";
import type { CheckOptions, HeavyReads, RowsOptions } from "./heavy/heavy-reads.ts";
import type { StoredSize } from "./heavy/sizes.ts";
import type { GroupCommit } from "./write/group-commit.ts";
import type { Neighbours } from "./neighbours/neighbours.ts";
import { readOnlyDatabase } from "./write/reader.ts";
import type { Reader } from "./write/reader.ts";
import type { SqliteDatabase } from "./sqlite-database.ts";

/** The parts of an open database, assembled by open.ts. */
export interface SqliteParts {
  readonly durability: Durability;
  readonly clock: Clock;
  readonly owner: OwnerId;
  readonly meters: Meters;
  readonly subscribers: Subscribers;
  readonly reader: Reader;
  readonly flusher: Flusher;
  /** Undefined when read-only. */
  readonly writes: GroupCommit | undefined;
  /** Undefined in memory and when read-only. */
  readonly checkpointer: Checkpointer | undefined;
  /** Undefined in memory, where there is no file to read. */
  readonly heavyReads: HeavyReads | undefined;
  /** The other processes on the file; undefined in memory. */
  readonly neighbours: ((calls: Calls) => Neighbours) | undefined;
  /** Closes the connections and releases the file. */
  readonly letGo: () => void;
}

/** Our own calls, which continue while the database closes. */
export type Calls = Pick<Database, "read" | "write">;

const closeTimeout: Duration = "10s";

export class OpenSqliteDatabase implements SqliteDatabase {
  readonly dialect = "sqlite";
  readonly entropy: Entropy = systemEntropy;
  readonly sha256Hex: (text: string) => string = sha256Hex;
  readonly bytes: ByteTools = byteTools;
  readonly #parts: SqliteParts;
  readonly #neighbours: Neighbours | undefined;
  readonly #reads = new Set<Promise<unknown>>();
  readonly #keepAlives = new KeepAlives();
  #closing: Promise<void> | undefined;

  constructor(parts: SqliteParts) {
    this.#parts = parts;
    this.#neighbours = parts.neighbours?.({
      read: (what, how) => this.#read(what, how) as Promise<never>,
      write: (what, how) => this.#write(what, how) as Promise<never>,
    });
  }

  get owner(): OwnerId {
    return this.#parts.owner;
  }

  /** The last step of opening: makes the processes on the file known to each other. */
  async meetNeighbours(): Promise<void> {
    await this.#neighbours?.join();
  }

  get durability(): Durability {
    return this.#parts.durability;
  }

  get clock(): Clock {
    return this.#parts.clock;
  }

  write<C extends Callee, O>(
    what: C,
    how: CallInput<C, O>,
    options?: WriteOptions,
  ): Promise<CallOutput<C, O>> {
    if (this.#closing !== undefined) return Promise.reject(databaseClosed());
    return this.#write(what, how, options) as Promise<CallOutput<C, O>>;
  }

  read<C extends Callee, O>(
    what: C,
    how: CallInput<C, O>,
    options?: WaitOptions,
  ): Promise<CallOutput<C, O>> {
    if (this.#closing !== undefined) return Promise.reject(databaseClosed());
    return this.#read(what, how, options) as Promise<CallOutput<C, O>>;
  }

  setUp(
    app: string,
    migrations: readonly AppMigration[],
    options?: WaitOptions,
  ): Promise<SetUpReport> {
    const context = {
      read: this.read.bind(this),
      write: this.write.bind(this),
      clock: this.clock,
      // The file has one writer, so there is nothing to lock.
      *lock() {},
    };
    return setUp(context, app, migrations, options);
  }

  async writable(options?: WaitOptions): Promise<void> {
    const { writes } = this.#parts;
    if (this.#closing !== undefined) throw databaseClosed();
    if (writes === undefined) throw readOnlyDatabase();
    refuseUnknownWait(options);
    return orGiveUp("writable()", options, () => writes.room());
  }

  pause(): Promise<void> {
    return new Promise(realSoon);
  }

  keepAlive(): () => void {
    if (this.#closing !== undefined) throw databaseClosed();
    return this.#keepAlives.hold();
  }

  subscribe(listener: (hint: ChangeHint) => void, interests?: readonly Interest[]): () => void {
    if (this.#closing !== undefined) throw databaseClosed();
    const { subscribers } = this.#parts;
    const isFirst = subscribers.isEmpty;
    const stop = subscribers.add(listener, interests);
    if (isFirst) this.#neighbours?.listen(true);
    return () => {
      stop();
      if (subscribers.isEmpty) this.#neighbours?.listen(false);
    };
  }

  /** A file has no outages: it works, or its calls say why not. */
  watchOutages(): () => void {
    if (this.#closing !== undefined) throw databaseClosed();
    return () => undefined;
  }

  async liveness(given: OwnerId): Promise<Liveness> {
    const owner = parseOwnerId(given);
    if (this.#closing !== undefined) throw databaseClosed();
    if (owner === this.owner) return "alive";
    return (await this.#neighbours?.liveness(owner)) ?? "unknown";
  }

  async check(options?: CheckOptions): Promise<CheckReport> {
    return this.#heavyReads().check(options);
  }

  async backup(to: string, options?: HeavyOptions): Promise<BackupResult> {
    return this.#heavyReads().backup(to, options);
  }

  exportRows(table: string, options?: RowsOptions): AsyncGenerator<RowPage, void, undefined> {
    return this.#heavyReads().rows(table, options);
  }

  async sizes(options?: HeavyOptions): Promise<readonly StoredSize[]> {
    return this.#heavyReads().sizes(options);
  }

  stats(): Stats {
    const { meters, writes, checkpointer } = this.#parts;
    return meters.snapshot({
      queueDepth: writes?.queueDepth ?? 0,
      walBytes: checkpointer?.walBytes ?? 0,
      checkpoints: checkpointer?.counts ?? {
        passive: 0,
        restarts: 0,
        failures: 0,
      },
      logHeldBack: checkpointer?.heldBack,
      clockOffsetMs: 0,
      peers: this.#neighbours?.stats() ?? noPeers,
    });
  }

  async close(options?: { readonly timeout?: Duration }): Promise<void> {
    if (options !== undefined) refuseUnknown(options, ["timeout"]);
    const timeoutMs = durationMs(options?.timeout ?? closeTimeout, "timeout");
    if (this.#closing === undefined) {
      this.#closing = this.#close(timeoutMs).finally(() => this.#keepAlives.end());
      this.#parts.subscribers.tellClosing();
    }
    await this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #heavyReads(): HeavyReads {
    if (this.#closing !== undefined) throw databaseClosed();
    const { heavyReads } = this.#parts;
    if (heavyReads !== undefined) return heavyReads;
    throw new HoldfastError(
      "DATABASE_PATH_INVALID",
      "A database in memory has no file to check, copy or export. Use a database file for that.",
    );
  }

  #write(what: Callee, how: unknown, options?: WriteOptions): Promise<unknown> {
    return new Promise((resolve) => {
      const { writes } = this.#parts;
      if (writes === undefined) throw readOnlyDatabase();
      const body = callable(what, how, checkedWrite(options), this.owner);
      const call = new Call(body, resolve);
      if (options !== undefined)
        call.stopWaiting = onGiveUp(`write "${body.name}"`, options, (error) => {
          if (!writes.cancel(call)) return;
          call.stopWaiting?.();
          call.reject(error);
        });
      try {
        writes.submit(call);
      } catch (error) {
        call.stopWaiting?.();
        call.reject(error);
      }
    });
  }

  async #read(what: Callee, how: unknown, options?: WaitOptions): Promise<unknown> {
    refuseUnknownWait(options);
    const body = callable(what, how);
    const { reader, flusher } = this.#parts;
    return orGiveUp(`read "${body.name}"`, options, () => {
      const read = reader.read(body, flusher);
      // Remembered, so that a close does not take away the read's connection.
      this.#reads.add(read);
      return read.finally(() => this.#reads.delete(read));
    });
  }

  async #close(timeoutMs: number): Promise<void> {
    const { writes, flusher, checkpointer, heavyReads, letGo } = this.#parts;
    const tooLate = new AbortController();
    const deadline = sleep(timeoutMs, tooLate.signal).catch(() => undefined);
    await Promise.race([this.#drained(), deadline]);
    writes?.refuse(databaseClosed());
    await Promise.race([Promise.allSettled(this.#reads), deadline]);
    tooLate.abort();
    // Heavy reads end first, since a snapshot in use keeps the log from being emptied.
    await heavyReads?.close();
    await this.#neighbours?.letGo();
    // The order matters: the log is flushed and its descriptor closed before the last checkpoint.
    // The writer closes last, since it may delete the log.
    await flusher.close();
    await checkpointer?.close(flusher.hasFailed);
    letGo();
    // The event loop frees closed resources. A program that opens and closes in a loop would
    // otherwise never let it run, and would keep 0.8 MB for each.
    await this.pause();
  }

  /** Writes everything queued and notifies the other processes that this one closes. */
  async #drained(): Promise<void> {
    await this.#parts.writes?.idle();
    this.#parts.subscribers.clear();
    // When writes have stopped, the others cannot be notified; the released lock shows it.
    await this.#neighbours?.leave().catch(() => undefined);
  }
}

const noPeers: Stats["peers"] = {
  connected: 0,
  unavailable: undefined,
  unwatched: undefined,
};
