import { existsSync } from "node:fs";
import { systemClock } from "../../host/clock.ts";
import { systemEntropy } from "../../host/entropy.ts";
import { sha256Hex } from "../../host/hash.ts";
import { HoldfastError } from "../../model/errors.ts";
import { idSource } from "../../model/id-source.ts";
import type { OwnerId } from "../../model/prefixed-id.ts";
import { Fate } from "../../sql/fate.ts";
import {
  appliedSchemaNumber,
  migrate,
  refuseForeignSchema,
  schemaNewer,
  schemaNumber,
  verifySchema,
} from "../../sql/migrations.ts";
import type { MigrationContext } from "../../sql/migrations.ts";
import type { Tx } from "../../sql/operation.ts";
import { Meters } from "../meters.ts";
import { Subscribers } from "../subscribers.ts";
import { retryWhileBusy } from "./busy.ts";
import { Checkpointer } from "./checkpointer.ts";
import { Connection } from "./connection.ts";
import { OpenSqliteDatabase } from "./database.ts";
import { Busy, TransactionEnded, drive } from "./drive.ts";
import type { Driver } from "./drivers.ts";
import { prepareFile, registerFile } from "./file.ts";
import { LogFlusher, noFlusher } from "./flusher.ts";
import type { Flusher } from "./flusher.ts";
import { GroupCommit, databaseBusy } from "./group-commit.ts";
import type { GroupCommitOptions } from "./group-commit.ts";
import { HeavyReads } from "./heavy/heavy-reads.ts";
import { Neighbourhood } from "./neighbours/neighbourhood.ts";
import type { SqliteSeams, SqliteSettings } from "./options.ts";
import { Reader } from "./reader.ts";
import type { SqliteDatabase } from "./sqlite-database.ts";

/** Set explicitly on every connection, since drivers have defaults of their own. */
const filePragmas: readonly string[] = [
  "synchronous = NORMAL",
  "foreign_keys = ON",
  "wal_autocheckpoint = 0",
  "checkpoint_fullfsync = 1",
  "mmap_size = 0",
  "cache_size = -16384",
];

/** Not the settings' clock and entropy: owners of different processes must never share an id. */
const owners = idSource({ clock: systemClock, entropy: systemEntropy });

/** One open under way. Each step says how it is undone, should a later one fail. */
export class Opening {
  readonly #path: string;
  readonly #settings: SqliteSettings;
  readonly #driver: Driver;
  readonly #meters = new Meters();
  readonly #subscribers = new Subscribers();
  readonly #owner: OwnerId = owners.nextId("Own");
  readonly #undo: (() => void | Promise<void>)[] = [];

  constructor(path: string, settings: SqliteSettings, driver: Driver) {
    this.#path = path;
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
    await this.#inTransaction(connection, "BEGIN IMMEDIATE", () =>
      migrate(this.#migration()),
    );
    const { clock } = this.#settings;
    return new OpenSqliteDatabase({
      durability: "memory",
      clock,
      owner: this.#owner,
      meters: this.#meters,
      subscribers: this.#subscribers,
      reader: this.#reader(connection, true),
      flusher: noFlusher,
      writes: this.#groupCommit(connection, noFlusher, {
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
    const real = prepareFile(this.#path, {
      readOnly,
      mustExist: seams.mustExist,
      warn,
      ...(seams.fileSystem && { probe: seams.fileSystem }),
    });
    const release = registerFile(real, this.#driver);
    this.#undo.push(release);
    const writer = readOnly ? undefined : await this.#writer(real);
    writer?.set(seams.pragmas ?? []);
    const connection = await this.#connect(real, true, filePragmas);
    if (readOnly)
      await this.#inTransaction(connection, "BEGIN", () =>
        verifySchema(this.#migration()),
      );

    const reader = this.#reader(connection, false);
    const flusher = this.#flusher(real, reader, seams);
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
        : await this.#writing(real, writer, flusher, neighbourhood);
    // From here on a read knows which snapshot is durable.
    if (flusher.isNeeded) await flusher.flush();
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
    // From here on the database closes itself, and what it consists of.
    this.#undo.length = 0;
    this.#undo.push(() => database.close());
    await database.meetNeighbours();
    return database;
  }

  async #writing(
    real: string,
    writer: Connection,
    flusher: Flusher,
    neighbourhood: Neighbourhood,
  ): Promise<{ writes: GroupCommit; checkpointer: Checkpointer }> {
    const { limits, warn } = this.#settings;
    const writes: GroupCommit = this.#groupCommit(writer, flusher, {
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
    const checkpointer = new Checkpointer(this.#driver, real, {
      boundBytes: limits.walBytes,
      whileHeld: (action) =>
        neighbourhood.whileHeld(() => writes.whileHeld(action)),
      onTouched: () => neighbourhood.explained(),
      warn,
    });
    this.#undo.push(() => checkpointer.close());
    await this.#makeLogSound(checkpointer);
    return { writes, checkpointer };
  }

  #reader(connection: Connection, sharesWriter: boolean): Reader {
    const { busyBudgetMs, limits } = this.#settings;
    return new Reader(connection, {
      sharesWriter,
      readMsMax: limits.readMs,
      busyBudgetMs,
      onRetry: () => (this.#meters.busyRetries += 1),
    });
  }

  #flusher(real: string, reader: Reader, seams: SqliteSeams): Flusher {
    const { durability, readOnly } = this.#settings;
    // A read-only file system may have no log; then there is nothing to flush.
    if (durability === "normal" || !existsSync(`${real}-wal`)) return noFlusher;
    const flusher = new LogFlusher(real, this.#meters, reader, {
      ...seams.flush,
      readOnly,
    });
    this.#undo.push(() => flusher.close());
    return flusher;
  }

  async #makeLogSound(checkpointer: Checkpointer): Promise<void> {
    const { busyBudgetMs } = this.#settings;
    if (await checkpointer.makeLogSound(busyBudgetMs)) return;
    throw databaseBusy(busyBudgetMs);
  }

  async #writer(real: string): Promise<Connection> {
    const writer = await this.#connect(real, false, []);
    // A schema that is not ours is refused before anything is changed.
    await this.#inTransaction(writer, "BEGIN", () =>
      refuseForeignSchema(this.#migration()),
    );
    // The switch to WAL ignores SQLite's own busy wait; ours covers it too.
    const mode = await this.#retry(() => writer.pragma("journal_mode = WAL"));
    if (mode !== "wal")
      throw new HoldfastError(
        "DATABASE_NOT_WRITABLE",
        `"${this.#path}" cannot be switched to write-ahead logging (its journal mode stays "${String(mode)}"). Move it to a local disk.`,
        { path: this.#path, mode },
      );
    await this.#retry(() =>
      writer.set([...filePragmas, "temp_store = MEMORY"]),
    );
    await this.#inTransaction(writer, "BEGIN IMMEDIATE", () =>
      migrate(this.#migration()),
    );
    return writer;
  }

  #connect(
    path: string,
    readOnly: boolean,
    pragmas: readonly string[],
  ): Promise<Connection> {
    return this.#retry(() => {
      const connection = new Connection(
        this.#driver.open(path, { readOnly }),
        readOnly ? "read" : "write",
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
    flusher: Flusher,
    told: Pick<GroupCommitOptions, "onDurable" | "afterCommit" | "onBusy">,
  ): GroupCommit {
    const { limits, busyBudgetMs, queueCallsMax } = this.#settings;
    return new GroupCommit(writer, flusher, this.#meters, {
      limits,
      busyBudgetMs,
      queueCallsMax,
      beforeBatch: schemaGuard(writer),
      ...told,
    });
  }

  #inTransaction<T>(
    connection: Connection,
    begin: string,
    start: () => Tx<T>,
  ): Promise<T> {
    return this.#retry(() => {
      connection.control(begin);
      try {
        const value = drive(start(), connection, new Fate("open", undefined));
        connection.control("COMMIT");
        return value;
      } catch (error) {
        if (connection.inTransaction) connection.control("ROLLBACK");
        throw error instanceof Busy || error instanceof TransactionEnded
          ? error.cause
          : error;
      }
    });
  }

  #retry<T>(action: () => T): Promise<T> {
    const { busyBudgetMs } = this.#settings;
    return retryWhileBusy(
      action,
      busyBudgetMs,
      () => (this.#meters.busyRetries += 1),
      () => databaseBusy(busyBudgetMs),
    );
  }

  #migration(): MigrationContext {
    return {
      dialect: "sqlite",
      now: this.#settings.clock.now(),
      hash: sha256Hex,
    };
  }
}

/**
 * Another process may migrate the file while we have it open. `data_version`
 * moves with every foreign commit; only then is the schema looked at.
 */
function schemaGuard(writer: Connection): () => void {
  let seen = writer.pragma("data_version");
  return () => {
    const version = writer.pragma("data_version");
    if (version === seen) return;
    const found = drive(
      appliedSchemaNumber(),
      writer,
      new Fate("open", undefined),
    );
    if (found > schemaNumber) throw schemaNewer(found, schemaNumber);
    seen = version;
  };
}
