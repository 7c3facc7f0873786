import { durationMs } from "../../model/durations.ts";
import type { Duration } from "../../model/durations.ts";
import { HoldfastError } from "../../model/errors.ts";
import { parseFunctionName } from "../../model/function-name.ts";
import type { ExecutionId } from "../../model/execution-id.ts";
import type { FunctionName } from "../../model/function-name.ts";
import { checkedCount } from "../../model/shape.ts";
import type { Surroundings } from "./context.ts";
import { removeTreeSlice } from "./remove-tree.ts";
import {
  finishedTrees,
  laterOf,
  nextBeingRemoved,
  nextFinishedFunction,
  placeBack,
  placeBefore,
  placesPerStep,
} from "./retention.ts";
import type { TreePlace } from "./retention.ts";

/** Which finished runs are no longer kept: too old, or not among the newest; either is enough. */
export interface RetentionPolicy {
  /** All functions without it. */
  readonly function?: string;
  readonly olderThan?: Duration;
  /** Kept per function. */
  readonly keepNewest?: number;
}

export interface RetentionReport {
  /** Runs removed with everything under them. */
  readonly trees: number;
  readonly rows: number;
  /** Runs left because something under them has not finished, or because their process was not pruned. */
  readonly skipped: number;
}

export interface RetentionOptions {
  readonly signal?: AbortSignal;
  /** Rows per transaction: 500 unless told. More is faster and holds up others longer. */
  readonly rowsPerSlice?: number;
  /** Told after every slice. */
  readonly onProgress?: (soFar: RetentionReport) => void;
}

/** Removing what is no longer wanted. */
export interface ExecutionRetention {
  /**
   * Removes finished runs with their children, logs and results, in small
   * transactions. A run whose removal has begun is gone for everybody, and its
   * id taken until the end. Stopping it, or a crash, leaves whole runs and at
   * most one that the next call, whatever its policy, goes on with first.
   */
  removeFinished(
    policy: RetentionPolicy,
    options?: RetentionOptions,
  ): Promise<RetentionReport>;
}

const treesPerPage = 100;

export function executionRetention(around: Surroundings): ExecutionRetention {
  return {
    async removeFinished(policy, options = {}) {
      const removal = new Removal(around, checkedPolicy(policy), options);
      await removal.ofInterrupted();
      if (policy.function !== undefined)
        await removal.ofFunction(parseFunctionName(policy.function));
      else await removal.ofAllFunctions();
      return removal.report;
    },
  };
}

interface CheckedPolicy {
  readonly olderThanMs: number | null;
  readonly keepNewest: number | null;
}

function checkedPolicy({
  olderThan,
  keepNewest,
}: RetentionPolicy): CheckedPolicy {
  if (olderThan === undefined && keepNewest === undefined)
    throw new HoldfastError(
      "OPTION_INVALID",
      "A retention policy says what to remove: give olderThan, keepNewest or both.",
    );
  return {
    olderThanMs:
      olderThan === undefined ? null : durationMs(olderThan, "olderThan"),
    keepNewest:
      keepNewest === undefined
        ? null
        : checkedCount("keepNewest", keepNewest, { min: 0, max: 1_000_000 }),
  };
}

/** One call of `removeFinished`. */
class Removal {
  readonly #around: Surroundings;
  readonly #policy: CheckedPolicy;
  readonly #options: RetentionOptions;
  readonly #rowsPerSlice: number;
  #trees = 0;
  #rows = 0;
  #skipped = 0;

  constructor(
    around: Surroundings,
    policy: CheckedPolicy,
    options: RetentionOptions,
  ) {
    this.#around = around;
    this.#policy = policy;
    this.#options = options;
    this.#rowsPerSlice = checkedCount(
      "rowsPerSlice",
      options.rowsPerSlice ?? 500,
      { min: 1, max: 10_000 },
    );
  }

  get report(): RetentionReport {
    return { trees: this.#trees, rows: this.#rows, skipped: this.#skipped };
  }

  async ofAllFunctions(): Promise<void> {
    const { database } = this.#around;
    let after = "";
    for (;;) {
      const name = await database.read(nextFinishedFunction, { after });
      if (name === undefined) return;
      await this.ofFunction(name);
      after = name;
    }
  }

  async ofFunction(name: FunctionName): Promise<void> {
    const { database, clock } = this.#around;
    const { olderThanMs, keepNewest } = this.#policy;
    const finishedBefore =
      olderThanMs === null ? null : Math.max(0, clock.now() - olderThanMs);
    const byAge =
      finishedBefore === null ? undefined : placeBefore(finishedBefore);
    const byCount =
      keepNewest === null
        ? undefined
        : await this.#beyondNewest(name, keepNewest);
    const upTo = laterOf(byAge, byCount);
    if (upTo === undefined) return;
    for (let after: TreePlace | null = null; ;) {
      const page: readonly (TreePlace & { readonly id: ExecutionId })[] =
        await database.read(finishedTrees, {
          function: name,
          after,
          upTo,
          limit: treesPerPage,
        });
      for (const { id } of page) await this.#removeTree(id);
      after = page.at(-1) ?? null;
      if (after === null) return;
    }
  }

  /** What was begun, by a call or a process that came to an early end. */
  async ofInterrupted(): Promise<void> {
    const { database } = this.#around;
    for (let after = ""; ;) {
      const id = await database.read(nextBeingRemoved, { after });
      if (id === undefined) return;
      await this.#removeTree(id);
      after = id;
    }
  }

  /** The newest place that is not among the newest so many. What finishes meanwhile is kept besides. */
  async #beyondNewest(
    name: FunctionName,
    keepNewest: number,
  ): Promise<TreePlace | undefined> {
    const { database } = this.#around;
    let before: TreePlace | null = null;
    for (let left = keepNewest + 1; left > 0; left -= placesPerStep) {
      const place: TreePlace | undefined = await database.read(placeBack, {
        function: name,
        before,
        places: Math.min(left, placesPerStep),
      });
      if (place === undefined) return undefined;
      before = place;
      // A read that need not wait for a flush comes back before the event loop does.
      await database.pause();
    }
    return before ?? undefined;
  }

  async #removeTree(id: ExecutionId): Promise<void> {
    const { database, clock } = this.#around;
    const { signal, onProgress } = this.#options;
    for (;;) {
      const { rows, left } = await database.write(
        removeTreeSlice,
        { id, at: clock.now(), rowsMax: this.#rowsPerSlice },
        { signal },
      );
      this.#rows += rows;
      if (left === "gone" && rows > 0) this.#trees += 1;
      if (left === "unfinished") this.#skipped += 1;
      onProgress?.(this.report);
      if (left !== "more") return;
    }
  }
}
