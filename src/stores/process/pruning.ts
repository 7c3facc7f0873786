import { durationMs } from "../../model/durations.ts";
import type { Duration } from "../../model/durations.ts";
import { HoldfastError } from "../../model/errors.ts";
import {
  givenFunction,
  givenObject,
  givenSignal,
  optionsOf,
} from "../../model/shape.ts";
import { isDamage } from "../damage.ts";
import type { Damaged } from "../damage.ts";
import { checkedRowsPerSlice } from "../slices.ts";
import type { ProcessSurroundings } from "./context.ts";
import { nextBeingPruned, prunableProcesses, pruneSlice } from "./prune.ts";
import type { PrunablePlace, PrunedSlice } from "./prune.ts";

export interface ProcessPruneOptions {
  readonly signal?: AbortSignal;
  /** Rows per transaction: 500 unless told. More is faster and holds up others longer. */
  readonly rowsPerSlice?: number;
  /** Told after every slice. */
  readonly onProgress?: (soFar: ProcessPruneReport) => void;
}

export interface ProcessPruneReport {
  /** Processes that became tombstones. */
  readonly pruned: number;
  /** Events removed, also of those whose pruning was interrupted before. */
  readonly rows: number;
  /** Rows that cannot be read, by id: pruning goes on past them. */
  readonly damaged: readonly Damaged[];
}

/** Forgetting what ended long ago. */
export interface ProcessPruning {
  /**
   * Makes tombstones of processes that ended long ago, in small transactions:
   * their names, status, times and hashes stay, their payloads go. Stopping it,
   * or a crash, leaves at most one that the next call goes on with first. An
   * execution of theirs may then be removed by retention too.
   */
  prune(
    policy: {
      /** How long ago a process must have ended. */
      readonly olderThan: Duration;
    },
    options?: ProcessPruneOptions,
  ): Promise<ProcessPruneReport>;
}

const processesPerPage = 100;

export function processPruning(around: ProcessSurroundings): ProcessPruning {
  return {
    async prune(policy, given) {
      const known = ["signal", "rowsPerSlice", "onProgress"] as const;
      const options = optionsOf(given, known);
      givenSignal(options.signal);
      givenFunction("onProgress", options.onProgress);
      const { olderThan } = givenObject("policy", policy);
      const olderThanMs = durationMs(olderThan, "olderThan");
      const pruning = new Pruning(around, options);
      await pruning.interrupted();
      await pruning.ended(olderThanMs);
      return pruning.report;
    },
  };
}

/** One call of `prune`. */
class Pruning {
  readonly #around: ProcessSurroundings;
  readonly #rowsMax: number;
  readonly #signal: AbortSignal | undefined;
  readonly #onProgress: ProcessPruneOptions["onProgress"];
  readonly #damaged: Damaged[] = [];
  #pruned = 0;
  #rows = 0;

  constructor(around: ProcessSurroundings, options: ProcessPruneOptions) {
    this.#around = around;
    const { signal, rowsPerSlice, onProgress } = options;
    this.#signal = signal;
    this.#onProgress = onProgress;
    this.#rowsMax = checkedRowsPerSlice(rowsPerSlice);
  }

  get report(): ProcessPruneReport {
    return {
      pruned: this.#pruned,
      rows: this.#rows,
      damaged: [...this.#damaged],
    };
  }

  async interrupted(): Promise<void> {
    const { database } = this.#around;
    for (let after = 0; ;) {
      this.#stopIfAborted();
      const next = await database.read(nextBeingPruned, { after });
      if (next === undefined) return;
      await this.#prune(next.key, next.id);
      after = next.key;
    }
  }

  async ended(olderThanMs: number): Promise<void> {
    const { database, clock } = this.#around;
    const endedUntil = clock.now() - olderThanMs;
    for (let after: PrunablePlace | null = null; ;) {
      this.#stopIfAborted();
      const page: readonly PrunablePlace[] = await database.read(
        prunableProcesses,
        { endedUntil, after, limit: processesPerPage },
      );
      for (const { key, id } of page) await this.#prune(key, id);
      const last = page.at(-1);
      if (last === undefined) return;
      after = last;
    }
  }

  #stopIfAborted(): void {
    if (this.#signal?.aborted === true) throw stopped(this.#signal.reason);
  }

  async #prune(process: number, id: string): Promise<void> {
    const { database, clock } = this.#around;
    try {
      for (let isDone = false; !isDone;) {
        this.#stopIfAborted();
        const slice: PrunedSlice = await database.write(
          pruneSlice,
          { process, at: clock.now(), rowsMax: this.#rowsMax },
          { signal: this.#signal },
        );
        this.#rows += slice.rows;
        this.#pruned += Number(slice.isPruned);
        this.#onProgress?.(this.report);
        isDone = slice.isDone;
      }
    } catch (error) {
      if (!isDamage(error)) throw error;
      this.#damaged.push({ table: "holdfast_process", key: id });
    }
  }
}

function stopped(cause: unknown): HoldfastError {
  return new HoldfastError(
    "ABORTED",
    "Pruning was stopped between two slices. Call it again to go on.",
    {},
    { cause },
  );
}
