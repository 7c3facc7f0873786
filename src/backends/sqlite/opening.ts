import { existsSync } from "node:fs";
import { sha256Hex } from "../../host/hash.ts";
import { HoldfastError } from "../../model/errors.ts";
import { Fate } from "../../sql/fate.ts";
import {
  appliedSchemaNumber,
  migrate,
  schemaNewer,
  schemaNumber,
  verifySchema,
} from "../../sql/migrations.ts";
import type { MigrationContext } from "../../sql/migrations.ts";
import type { Tx } from "../../sql/operation.ts";
import type { Database } from "../../stores/database.ts";
import { Meters } from "../meters.ts";
import { Subscribers } from "../subscribers.ts";
import { retryWhileBusy } from "./busy.ts";
import { Checkpointer } from "./checkpointer.ts";
import { Connection } from "./connection.ts";
import { SqliteDatabase } from "./database.ts";
import { Busy, TransactionEnded, drive } from "./drive.ts";
import type { Driver } from "./drivers.ts";
import { prepareFile, registerFile } from "./file.ts";
import { LogFlusher, noFlusher } from "./flusher.ts";
import type { Flusher } from "./flusher.ts";
import { GroupCommit, databaseBusy } from "./group-commit.ts";
import type { SqliteSeams, SqliteSettings } from "./options.ts";
import { Reader } from "./reader.ts";

/** Set explicitly on every connection, since drivers have defaults of their own. */
const filePragmas: readonly string[] = [
  "synchronous = NORMAL",
  "foreign_keys = ON",
  "wal_autocheckpoint = 0",
  "checkpoint_fullfsync = 1",
  "mmap_size = 0",
  "cache_size = -16384",
];

/** One open under way. Each step says how it is undone, should a later one fail. */
export class Opening {
  readonly #path: string;
  readonly #settings: SqliteSettings;
  readonly #driver: Driver;
  readonly #meters = new Meters();
  readonly #subscribers = new Subscribers();
  readonly #undo: (() => void | Promise<void>)[] = [];

  constructor(path: string, settings: SqliteSettings, driver: Driver) {
    this.#path = path;
    this.#settings = settings;
    this.#driver = driver;
  }

  async undo(): Promise<void> {
    for (const step of this.#undo.splice(0).toReversed()) await step();
  }

  async memory(): Promise<Database> {
    const connection = await this.#connect(":memory:", false, [
      "foreign_keys = ON",
      "temp_store = MEMORY",
    ]);
    await this.#inTransaction(connection, "BEGIN IMMEDIATE", () =>
      migrate(this.#migration()),
    );
    const { clock, busyBudgetMs } = this.#settings;
    return new SqliteDatabase({
      durability: "memory",
      clock,
      meters: this.#meters,
      subscribers: this.#subscribers,
      reader: new Reader(connection, true, busyBudgetMs, () => undefined),
      flusher: noFlusher,
      writes: this.#groupCommit(connection, noFlusher, () => undefined),
      checkpointer: undefined,
      letGo: () => connection.close(),
    });
  }

  async file(seams: SqliteSeams): Promise<Database> {
    const { readOnly, warn, clock, durability, busyBudgetMs } = this.#settings;
    const real = prepareFile(this.#path, {
      readOnly,
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

    const reader = new Reader(
      connection,
      false,
      busyBudgetMs,
      () => (this.#meters.busyRetries += 1),
    );
    const flusher = this.#flusher(`${real}-wal`, reader, seams);
    let checkpointer: Checkpointer | undefined;
    const writes =
      writer &&
      this.#groupCommit(writer, flusher, (statements, boundBytes) =>
        checkpointer?.wrote(statements, boundBytes),
      );
    if (writes !== undefined) {
      checkpointer = new Checkpointer(
        this.#driver,
        real,
        this.#settings.limits.walBytes,
        (action) => writes.whileHeld(action),
      );
      this.#undo.push(() => checkpointer?.close());
      await this.#emptyLog(checkpointer);
    }
    // From here on a read knows which snapshot is durable.
    if (flusher.isNeeded) await flusher.flush();
    return new SqliteDatabase({
      durability,
      clock,
      meters: this.#meters,
      subscribers: this.#subscribers,
      reader,
      flusher,
      writes,
      checkpointer,
      letGo() {
        connection.close();
        writer?.close();
        release();
      },
    });
  }

  #flusher(wal: string, reader: Reader, seams: SqliteSeams): Flusher {
    const { durability, readOnly } = this.#settings;
    // A read-only file system may have no log; then there is nothing to flush.
    if (durability === "normal" || !existsSync(wal)) return noFlusher;
    const flusher = new LogFlusher(wal, this.#meters, reader, {
      ...seams.flush,
      readOnly,
    });
    this.#undo.push(() => flusher.close());
    return flusher;
  }

  async #emptyLog(checkpointer: Checkpointer): Promise<void> {
    const { busyBudgetMs } = this.#settings;
    if (await checkpointer.restartAtOpen(busyBudgetMs)) return;
    throw databaseBusy(busyBudgetMs);
  }

  async #writer(real: string): Promise<Connection> {
    const writer = await this.#connect(real, false, []);
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
      const connection = new Connection(this.#driver.open(path, { readOnly }));
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
    afterCommit: (statements: number, boundBytes: number) => void,
  ): GroupCommit {
    const { limits, busyBudgetMs, queueCallsMax } = this.#settings;
    return new GroupCommit(writer, flusher, this.#meters, this.#subscribers, {
      limits,
      busyBudgetMs,
      queueCallsMax,
      beforeBatch: schemaGuard(writer),
      afterCommit,
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
    seen = version;
    const found = drive(
      appliedSchemaNumber(),
      writer,
      new Fate("open", undefined),
    );
    if (found > schemaNumber) throw schemaNewer(found, schemaNumber);
  };
}
