import { sleep } from "../../host/timers.ts";
import type { Clock } from "../../model/clock.ts";
import { durationMs } from "../../model/durations.ts";
import type { Duration } from "../../model/durations.ts";
import { HoldfastError } from "../../model/errors.ts";
import type { Operation, Tx } from "../../sql/operation.ts";
import type {
  ChangeHint,
  Database,
  Durability,
  Stats,
  WaitOptions,
} from "../../stores/database.ts";
import { callable } from "../callable.ts";
import type { Callable } from "../callable.ts";
import { onGiveUp, orGiveUp } from "../give-up.ts";
import type { Meters } from "../meters.ts";
import type { Subscribers } from "../subscribers.ts";
import { Call } from "./call.ts";
import type { Checkpointer } from "./checkpointer.ts";
import type { Flusher } from "./flusher.ts";
import type { GroupCommit } from "./group-commit.ts";
import { readOnlyDatabase } from "./reader.ts";
import type { Reader } from "./reader.ts";

/** What an open database consists of; open.ts puts it together. */
export interface SqliteParts {
  readonly durability: Durability;
  readonly clock: Clock;
  readonly meters: Meters;
  readonly subscribers: Subscribers;
  readonly reader: Reader;
  readonly flusher: Flusher;
  /** Absent when read-only. */
  readonly writes: GroupCommit | undefined;
  /** Absent in memory and when read-only. */
  readonly checkpointer: Checkpointer | undefined;
  /** Closes the connections and gives the file back. */
  readonly letGo: () => void;
}

const closeTimeout: Duration = "10s";

export class SqliteDatabase implements Database {
  readonly dialect = "sqlite";
  readonly #parts: SqliteParts;
  #closing: Promise<void> | undefined;

  constructor(parts: SqliteParts) {
    this.#parts = parts;
  }

  get durability(): Durability {
    return this.#parts.durability;
  }

  get clock(): Clock {
    return this.#parts.clock;
  }

  write<I, O>(
    operation: Operation<I, O>,
    input: I,
    options?: WaitOptions,
  ): Promise<O>;
  write<O>(name: string, body: () => Tx<O>, options?: WaitOptions): Promise<O>;
  write(
    what: Operation<unknown, unknown> | string,
    how: unknown,
    options?: WaitOptions,
  ): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const { writes } = this.#parts;
      if (this.#closing !== undefined) throw closed();
      if (writes === undefined) throw readOnlyDatabase();
      const { name, start, change } = callable(what, how);
      const call = new Call(name, start, change, resolve, reject);
      call.stopWaiting = onGiveUp(`write "${name}"`, options, (error) => {
        call.stopWaiting?.();
        writes.cancel(call);
        reject(error);
      });
      try {
        writes.submit(call);
      } catch (error) {
        call.stopWaiting?.();
        throw error;
      }
    });
  }

  read<I, O>(
    operation: Operation<I, O>,
    input: I,
    options?: WaitOptions,
  ): Promise<O>;
  read<O>(name: string, body: () => Tx<O>, options?: WaitOptions): Promise<O>;
  async read(
    what: Operation<unknown, unknown> | string,
    how: unknown,
    options?: WaitOptions,
  ): Promise<unknown> {
    if (this.#closing !== undefined) throw closed();
    const { name, start }: Callable = callable(what, how);
    const { reader, flusher } = this.#parts;
    return orGiveUp(`read "${name}"`, options, () =>
      reader.read(name, start, flusher),
    );
  }

  async writable(options?: WaitOptions): Promise<void> {
    const { writes } = this.#parts;
    if (this.#closing !== undefined) throw closed();
    if (writes === undefined) throw readOnlyDatabase();
    return orGiveUp("writable()", options, () => writes.room());
  }

  subscribe(listener: (hint: ChangeHint) => void): () => void {
    if (this.#closing !== undefined) throw closed();
    return this.#parts.subscribers.add(listener);
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
      clockOffsetMs: 0,
    });
  }

  close(options?: { readonly timeout?: Duration }): Promise<void> {
    const timeoutMs = durationMs(options?.timeout ?? closeTimeout, "timeout");
    return (this.#closing ??= this.#close(timeoutMs));
  }

  async #close(timeoutMs: number): Promise<void> {
    const { writes, flusher, checkpointer, letGo } = this.#parts;
    if (writes !== undefined) {
      const tooLate = new AbortController();
      const deadline = sleep(timeoutMs, tooLate.signal).catch(() => undefined);
      await Promise.race([writes.idle(), deadline]);
      tooLate.abort();
      writes.refuse(closed());
    }
    // The order matters: the log is flushed and its descriptor closed before
    // the last checkpoint, and the writer goes last, since it may delete the log.
    await flusher.close();
    await checkpointer?.close();
    letGo();
  }
}

function closed(): HoldfastError {
  return new HoldfastError(
    "DATABASE_CLOSED",
    "The database was closed before this call was taken; nothing was done. Open it again to go on.",
  );
}
