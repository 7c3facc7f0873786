import { existsSync } from "node:fs";
import { hostname } from "node:os";
import { systemClock } from "../../host/clock.ts";
import { systemEntropy } from "../../host/entropy.ts";
import { sha256Hex } from "../../host/hash.ts";
import { HoldfastError } from "../../model/errors.ts";
import { idSource } from "../../model/ids/id-source.ts";
import type { OwnerId } from "../../model/ids/prefixed-id.ts";
import { Fate } from "../../sql/fate.ts";
import {
  migrate,
  refuseForeignSchema,
  schemaNumber,
  type MigrationContext,
} from "../../sql/migrations.ts";
import { refuseMoved } from "../../sql/move-mark.ts";
import type { Tx } from "../../sql/operation.ts";
import { registerOwner } from "../../stores/owner/owner.ts";
import { Meters } from "../meters.ts";
import { Subscribers } from "../subscribers.ts";
import { retryWhileBusy } from "./write/busy.ts";
import { Checkpointer, checkpointBusyMs } from "./log/checkpointer.ts";
import { Commits } from "./write/commits.ts";
import { Connection, filePragmas } from "./write/connection.ts";
import { OpenSqliteDatabase } from "./database.ts";
import { Busy, TransactionEnded, drive } from "./write/drive.ts";
import type { Driver } from "./drivers/drivers.ts";
import { logBytes, needsEarlyReader, prepareFile, registerFile } from "./file.ts";
import { LogFlusher, noFlusher, type Flusher } from "./write/flusher.ts";
import { databaseBusy } from "./write/database-busy.ts";
import { GroupCommit, type GroupCommitOptions } from "./write/group-commit.ts";
import { HeavyReads } from "./heavy/heavy-reads.ts";
import { logCutShort, type InspectedCut } from "./log/log-cut-short.ts";
import { LogThread } from "./log/log-thread.ts";
import { isAlone } from "./neighbours/owner-locks.ts";
import { Neighbourhood } from "./neighbours/neighbourhood.ts";
import type { SqliteSeams, SqliteSettings } from "./options.ts";
import { Reader } from "./write/reader.ts";
import { schemaGuard } from "./write/schema-guard.ts";
import { rehearseOnThread, switchToLog, transactOnThread } from "./set-up.ts";
import type { SqliteDatabase } from "./sqlite-database.ts";

/**
 * Ids of owners. They do not use the clock and entropy of the settings, because owners of different
 * processes must never share an id.
 */
const owners = idSource({ clock: systemClock, entropy: systemEntropy });

/**
 * An open in progress. Each step registers its undo, in case a later step fails. Changes of the
 * file run on the log's thread, so that no flush blocks this thread. An open that finds an empty
 * log starts no thread.
 */
export class Opening {
  readonly #path: string;
  readonly #settings: SqliteSettings;
  readonly #driver: Driver;
  readonly #meters = new Meters();
  readonly #subscribers = new Subscribers();
  readonly #owner: OwnerId = owners.nextId("Own");
  readonly #isMover: boolean;
  readonly #undo: (() => void | Promise<void>)[] = [];

  constructor(path: string, settings: SqliteSettings, driver: Driver, isMover = false) {
    this.#path = path;
    this.#isMover = isMover;
    this.#settings = settings;
    this.#driver = driver;
  }

  async undo(): Promise<void> {
    for (const step of this.#undo.splice(0).toReversed()) await step();
  }

  async memory(): Promise<SqliteDatabase> {
    const connection = await this.#connect(":memory:", false, [
      "foreign_keys = ON",
      "temp_store = MEMORY",
    ]);
    await this.#inTransaction(connection, "BEGIN IMMEDIATE", () => migrate(this.#migration()));
    return new OpenSqliteDatabase({
      durability: "memory",
      clock: this.#settings.clock,
      owner: this.#owner,
      meters: this.#meters,
      subscribers: this.#subscribers,
      reader: this.#reader(connection, true),
      flusher: noFlusher,
      writes: this.#groupCommit(connection, new Commits(connection), noFlusher, {
        prepare: undefined,
        onDurable: (changes) => this.#subscribers.tell(changes),
        afterCommit: () => false,
        onBusy: () => false,
      }),
      checkpointer: undefined,
      heavyReads: undefined,
      neighbours: undefined,
      letGo: () => connection.close(),
    });
  }

  async file(seams: SqliteSeams): Promise<SqliteDatabase> {
    const { readOnly, warn, clock, durability } = this.#settings;
    const real = await prepareFile(this.#path, {
      readOnly,
      mustExist: seams.mustExist,
      warn,
      ...(seams.fileSystem && { probe: seams.fileSystem }),
    });
    const release = registerFile(real, this.#driver);
    this.#undo.push(release);
    const connectReader = () => this.#connect(real, true, this.#filePragmas());
    const early = needsEarlyReader(real) ? await connectReader() : undefined;
    const thread = new LogThread(this.#driver, real, checkpointBusyMs);
    this.#undo.push(() => thread.close());
    const writer = readOnly ? undefined : await this.#writer(real, thread, seams);
    const connection = early ?? (await connectReader());
    if (readOnly)
      await this.#inTransaction(connection, "BEGIN", () =>
        refuseForeignSchema(this.#migration(), true),
      );

    const reader = this.#reader(connection, false);
    const commits = new Commits(writer ?? connection);
    const flusher = this.#flusher(real, commits, seams);
    const neighbourhood = new Neighbourhood(real, writer ?? connection, {
      driver: this.#driver,
      owner: this.#owner,
      clock,
      meters: this.#meters,
      subscribers: this.#subscribers,
      flusher,
      isReadOnly: readOnly,
      socketBase: seams.socketBase,
      watch: seams.watch,
    });
    const { writes, checkpointer } =
      writer === undefined
        ? { writes: undefined, checkpointer: undefined }
        : await this.#writing(writer, commits, flusher, neighbourhood, {
            thread,
            real,
          });
    // From here on a read knows which snapshot is durable.
    if (!flusher.isLogEmpty()) await flusher.flush();
    const database = new OpenSqliteDatabase({
      durability,
      clock,
      owner: this.#owner,
      meters: this.#meters,
      subscribers: this.#subscribers,
      reader,
      flusher,
      writes,
      checkpointer,
      heavyReads: new HeavyReads({ driver: this.#driver, path: real }),
      neighbours: (calls) => neighbourhood.join(calls),
      letGo() {
        connection.close();
        writer?.close();
        release();
      },
    });
    // From here on the database closes itself and its parts.
    this.#undo.length = 0;
    this.#undo.push(() => database.close());
    await database.meetNeighbours();
    return database;
  }

  async #writing(
    writer: Connection,
    commits: Commits,
    flusher: Flusher,
    neighbourhood: Neighbourhood,
    { thread, real }: { readonly thread: LogThread; readonly real: string },
  ): Promise<{ writes: GroupCommit; checkpointer: Checkpointer }> {
    const { limits, warn } = this.#settings;
    const checkpointer = new Checkpointer(thread, real, {
      boundBytes: limits.walBytes,
      whileHeld: (action) => neighbourhood.whileHeld(() => writes.whileHeld(action)),
      onTouched: () => neighbourhood.explained(),
      warn,
    });
    const writes: GroupCommit = this.#groupCommit(writer, commits, flusher, {
      prepare: () => this.#prepareWrites(checkpointer, neighbourhood, thread),
      onDurable: (changes) => {
        this.#subscribers.tell(changes);
        neighbourhood.ring(changes);
      },
      afterCommit: (statements, boundBytes) => {
        checkpointer.wrote(statements, boundBytes);
        return neighbourhood.freeLock();
      },
      onBusy: () => neighbourhood.waitForLock(),
    });
    neighbourhood.arrange(writes);
    // An empty log contains nothing unsound, so only the first write waits.
    if (logBytes(real) > 0) await writes.makeReady();
    return { writes, checkpointer };
  }

  #reader(connection: Connection, sharesWriter: boolean): Reader {
    const { busyBudgetMs, limits } = this.#settings;
    return new Reader(connection, {
      sharesWriter,
      readMsMax: limits.readMs,
      busyBudgetMs,
      onRetry: () => (this.#meters.busyRetries += 1),
      operations: this.#meters.operations,
    });
  }

  #flusher(real: string, commits: Commits, seams: SqliteSeams): Flusher {
    const { durability, readOnly } = this.#settings;
    // A read-only file system may have no log, and then there is nothing to flush.
    const hasNoLog = readOnly && !existsSync(`${real}-wal`);
    if (durability === "normal" || hasNoLog) return noFlusher;
    // Waiters would never be woken again. This makes them look, and they get an error.
    const onFailure = (): void => this.#subscribers.tellUnknown();
    const tuning = { ...seams.flush, readOnly, onFailure };
    const flusher = new LogFlusher(real, this.#meters, commits, tuning);
    this.#undo.push(() => flusher.close());
    return flusher;
  }

  /**
   * Prepares the first write: a log that acknowledgements may rely on, and an owner that others
   * know. Runs on the thread, so that the header of the log is flushed there and not by the first
   * commit on this one.
   */
  async #prepareWrites(
    checkpointer: Checkpointer,
    neighbourhood: Neighbourhood,
    thread: LogThread,
  ): Promise<void> {
    const { busyBudgetMs } = this.#settings;
    if (!(await checkpointer.makeLogSound(busyBudgetMs)))
      throw databaseBusy(busyBudgetMs, this.#path);
    await this.#retry(() => transactOnThread(thread, () => this.#registerOwner()));
    neighbourhood.registered();
  }

  /**
   * Opens the writer. Nothing here changes the file on this thread, so the event loop waits for no
   * flush.
   */
  async #writer(
    real: string,
    thread: LogThread,
    { mustBeCurrent, pragmas = [] }: SqliteSeams,
  ): Promise<Connection> {
    const isLeftLog = logBytes(real) > 0 && isAlone(real, this.#driver);
    if (isLeftLog) await this.#warnOfCut(thread);
    const writer = await this.#connect(real, false, [
      ...this.#filePragmas(),
      "temp_store = MEMORY",
    ]);
    // A foreign schema is refused before anything is changed.
    const found = await this.#inTransaction(writer, "BEGIN", () =>
      refuseForeignSchema(this.#migration(), mustBeCurrent),
    );
    const isLogged = writer.pragma("journal_mode") === "wal";
    if (!isLogged) await this.#switchToLog(thread);
    if (found < schemaNumber)
      await this.#retry(() => transactOnThread(thread, () => migrate(this.#migration())));
    // Damaged pages are found before the log is copied over them.
    else if (isLeftLog)
      await this.#retry(() => rehearseOnThread(thread, () => this.#registerOwner()));
    writer.set(pragmas);
    return writer;
  }

  *#registerOwner(): Tx<void> {
    const now = this.#settings.clock.now();
    // The file may have been moved since it was opened.
    if (!this.#isMover) yield* refuseMoved();
    yield* registerOwner({ owner: this.#owner, host: hostname(), now });
  }

  async #switchToLog(thread: LogThread): Promise<void> {
    // The switch ignores SQLite's own busy wait; our retries cover it too.
    const mode = await this.#retry(() => switchToLog(thread));
    if (mode === "wal") return;
    throw new HoldfastError(
      "DATABASE_NOT_WRITABLE",
      `"${this.#path}" cannot be switched to write-ahead logging (its journal mode stays "${String(mode)}"). Move it to a local disk.`,
      { path: this.#path, mode },
    );
  }

  async #warnOfCut(thread: LogThread): Promise<void> {
    const { value, failure } = await thread.ask({ mode: "INSPECT" });
    // The steps that must read the log report why it is unreadable.
    if (value !== undefined && failure === undefined)
      this.#settings.warn(logCutShort(this.#path, value as InspectedCut));
  }

  #filePragmas(): readonly string[] {
    return filePragmas(this.#settings.limits.cacheBytes);
  }

  #connect(path: string, readOnly: boolean, pragmas: readonly string[]): Promise<Connection> {
    return this.#retry(() => {
      const connection = new Connection(
        this.#driver.open(path, { readOnly }),
        readOnly ? "read" : "write",
        path,
      );
      try {
        connection.set(pragmas);
      } catch (error) {
        connection.close();
        throw error;
      }
      this.#undo.push(() => connection.close());
      return connection;
    });
  }

  #groupCommit(
    writer: Connection,
    commits: Commits,
    flusher: Flusher,
    told: Pick<GroupCommitOptions, "prepare" | "onDurable" | "afterCommit" | "onBusy">,
  ): GroupCommit {
    const { limits, busyBudgetMs, queueCallsMax } = this.#settings;
    const guard = schemaGuard(writer, this.#isMover);
    return new GroupCommit(writer, flusher, this.#meters, {
      limits,
      busyBudgetMs,
      path: this.#path,
      queueCallsMax,
      beforeBatch: () => commits.began(guard()),
      onChanged: () => commits.changed(),
      ...told,
    });
  }

  #inTransaction<T>(connection: Connection, begin: string, start: () => Tx<T>): Promise<T> {
    return this.#retry(() => {
      connection.control(begin);
      try {
        const value = drive(start(), connection, new Fate("open", undefined));
        connection.control("COMMIT");
        return value;
      } catch (error) {
        if (connection.inTransaction) connection.control("ROLLBACK");
        throw error instanceof Busy || error instanceof TransactionEnded ? error.cause : error;
      }
    });
  }

  #retry<T>(action: () => T | Promise<T>): Promise<T> {
    const { busyBudgetMs } = this.#settings;
    return retryWhileBusy(
      action,
      busyBudgetMs,
      () => (this.#meters.busyRetries += 1),
      () => databaseBusy(busyBudgetMs, this.#path),
    );
  }

  #migration(): MigrationContext {
    return {
      dialect: "sqlite",
      mayBeMoved: this.#isMover || this.#settings.readOnly,
      now: this.#settings.clock.now(),
      hash: sha256Hex,
    };
  }
}
