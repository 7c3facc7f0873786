import { HoldfastError } from "../../../model/errors.ts";
import { givenFunction, tellProgress } from "../../../model/shape.ts";
import { tracedFailure } from "../../../model/traced-failure.ts";
import { onGiveUp } from "../../give-up.ts";
import { refuseUnknown, wholeNumber } from "../../option-checks.ts";
import { backUp } from "./backup.ts";
import type { BackupResult } from "./backup.ts";
import { fullCheck, quickCheck } from "./check.ts";
import type { CheckReport } from "./check.ts";
import type { Driver } from "../drivers/drivers.ts";
import { checkKey, checkTable, readRows } from "./export-rows.ts";
import type { RowKey, RowPage } from "./export-rows.ts";
import type { HeavyCall, HeavyOptions, OpenFile } from "./heavy-call.ts";
import { identityOf } from "./heavy-connection.js";
import { HeavyRequests } from "./heavy-requests.ts";
import { measureSizes } from "./sizes.ts";
import type { StoredSize } from "./sizes.ts";

export interface CheckOptions extends HeavyOptions {
  /**
   * Checks the whole file and the references that SQLite knows, in one long snapshot.
   * `maintenance(database).check()` checks whether values can be read, match their hashes and have
   * everything they refer to.
   */
  readonly full?: boolean;
}

export interface RowsOptions {
  readonly signal?: AbortSignal | undefined;
  /** Rows per page. Defaults to 1,000; a page ends earlier at 1 MiB or `maxSnapshotMs`. */
  readonly pageRows?: number;
  /** Starts after this row: the `last` of an earlier page. */
  readonly after?: RowKey;
}

export interface HeavyReadsParts {
  readonly driver: Driver;
  /** The real path of the file. */
  readonly path: string;
  /** The longest life of a page's snapshot. Defaults to 15 ms. */
  readonly maxSnapshotMs?: number;
  /** For tests: allows asking SQLite for exact sizes. */
  readonly dbstat?: boolean;
}

/** The most calls in progress at once; further calls are refused. */
const callsMax = 64;
/** Below the 20 ms for which the checkpointer waits for readers, so pages do not make it fail. */
const snapshotMs = 15;
const pageRowsUsual = 1_000;
const pageBytesMax = 1_048_576;

/**
 * Reads that would take too long on the event loop: checks, exports, sizes and backups of a SQLite
 * file. All of them can be given up and run beside writers, and none changes the database.
 */
export class HeavyReads {
  readonly #driver: Driver;
  readonly #file: OpenFile;
  readonly #maxSnapshotMs: number;
  readonly #dbstat: boolean;
  readonly #requests: HeavyRequests;
  readonly #calls = new Map<AbortController, Promise<unknown>>();
  /** The queue of long statements that need their own process. */
  #lane: Promise<unknown> = Promise.resolve();
  #closing: Promise<void> | undefined;

  constructor(parts: HeavyReadsParts) {
    this.#driver = parts.driver;
    const { path } = parts;
    this.#file = { path, identity: identityOf(path) ?? "" };
    this.#maxSnapshotMs = wholeNumber("maxSnapshotMs", parts.maxSnapshotMs ?? snapshotMs);
    this.#dbstat = parts.dbstat ?? true;
    this.#requests = new HeavyRequests(parts.driver, this.#file);
  }

  /** See `SqliteDatabase.check`. */
  check(options: CheckOptions = {}): Promise<CheckReport> {
    refuseUnknown(options, ["full", "signal", "timeout", "onProgress"]);
    return this.#call("check", options, (call) =>
      options.full === true
        ? this.#inLane(call, () => fullCheck(this.#driver, this.#file, call))
        : quickCheck(this.#requests, call),
    );
  }

  /** See `SqliteDatabase.backup`. */
  backup(to: string, options: HeavyOptions = {}): Promise<BackupResult> {
    refuseUnknown(options, ["signal", "timeout", "onProgress"]);
    return this.#call("backup", options, (call) =>
      this.#inLane(call, () => backUp(this.#driver, this.#file, to, call)),
    );
  }

  /** See `SqliteDatabase.exportRows`. */
  async *rows(table: string, options: RowsOptions = {}): AsyncGenerator<RowPage, void, undefined> {
    checkTable(table);
    refuseUnknown(options, ["signal", "pageRows", "after"]);
    const { signal, pageRows = pageRowsUsual } = options;
    checkKey(options.after);
    const bounds = {
      rowsMax: wholeNumber("pageRows", pageRows, 1, 100_000),
      bytesMax: pageBytesMax,
      msMax: this.#maxSnapshotMs,
    };
    let after = options.after;
    for (;;) {
      const { page, isLast } = await this.#call("export", { signal }, (call) =>
        readRows(this.#requests, table, { ...bounds, after }, call.signal),
      );
      const isEmpty = page.rows.length + page.damaged.length === 0;
      if (!isEmpty) yield page;
      if (isLast) return;
      after = page.last;
    }
  }

  /** See `SqliteDatabase.sizes`. */
  sizes(options: HeavyOptions = {}): Promise<readonly StoredSize[]> {
    refuseUnknown(options, ["signal", "timeout", "onProgress"]);
    return this.#call("sizes", options, (call) => measureSizes(this.#requests, call, this.#dbstat));
  }

  /**
   * Ends all calls in progress with `DATABASE_CLOSED`. Resolves when none of them reads the file
   * any more.
   */
  close(): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  async #close(): Promise<void> {
    const calls = [...this.#calls.values()];
    for (const abandoned of this.#calls.keys()) abandoned.abort(closed());
    await Promise.allSettled(calls);
    await this.#requests.close();
  }

  async #call<T>(
    what: string,
    options: HeavyOptions,
    work: (call: HeavyCall) => Promise<T>,
  ): Promise<T> {
    if (this.#closing !== undefined) throw closed();
    if (this.#calls.size >= callsMax) throw queueFull();
    givenFunction("onProgress", options.onProgress);
    const abandoned = new AbortController();
    const stop = onGiveUp(what, options, (error) => abandoned.abort(error));
    const call: HeavyCall = {
      signal: abandoned.signal,
      onProgress: (progress) => tellProgress(options.onProgress, progress),
    };
    const working = work(call);
    this.#calls.set(abandoned, working);
    try {
      return await working;
    } catch (error) {
      return await tracedFailure(error);
    } finally {
      stop?.();
      this.#calls.delete(abandoned);
    }
  }

  /** Runs work when its turn comes, unless the caller gives up. */
  async #inLane<T>({ signal }: HeavyCall, work: () => Promise<T>): Promise<T> {
    const before = this.#lane;
    let leave = (): void => undefined;
    this.#lane = new Promise<void>((resolve) => (leave = resolve)).then(() => before);
    try {
      await new Promise<unknown>((resolve, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason as Error), {
          once: true,
        });
        before.then(resolve, reject);
      });
      return await work();
    } finally {
      leave();
    }
  }
}

function closed(): HoldfastError {
  return new HoldfastError(
    "DATABASE_CLOSED",
    "The database was closed before this was done; it left nothing behind. Open it again to continue.",
  );
}

function queueFull(): HoldfastError {
  return new HoldfastError(
    "QUEUE_FULL",
    `${callsMax} checks, exports and backups are already in progress. Await some of them first.`,
    { callsMax },
  );
}
