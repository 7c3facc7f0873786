import { tellProgress } from "../../../model/shape.ts";
import { isExecutionStatus, type ExecutionStatus } from "../../../model/execution/status.ts";
import type { FunctionName } from "../../../model/ids/function-name.ts";
import { row, rows, storeOperation, type StoreOperation, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { sweepOptions, type SweepOptions } from "../../removal.ts";
import type { ExecutionContext } from "../context.ts";
import { statusAt } from "./list-filter.ts";

export interface ExecutionCount {
  readonly function: FunctionName;
  readonly status: ExecutionStatus;
  readonly count: number;
}

export interface CountProgress {
  readonly counted: number;
  /** The share of the table that has been read, from 0 to 1. */
  readonly share: number;
}

export interface CountOptions extends SweepOptions<CountProgress> {
  /** Rows per read, 1 to 10,000; defaults to 5,000. */
  readonly rowsPerSlice?: number;
}

export interface ExecutionCounts {
  /** The counts by function, then status; zero counts are left out. */
  readonly counts: readonly ExecutionCount[];
  /** Executions with an unknown status. */
  readonly unreadable: number;
}

/**
 * The number of rows grouped in one read: 2.5 ms at best and 5 in the median of 100 thousand
 * executions, on a busy machine.
 */
const rowsPerSliceDefault = 5_000;

/**
 * Counts all executions that existed at the start, slice by slice. Each slice is a snapshot of its
 * own, so an execution that changes meanwhile is counted as it was when its slice was read.
 * @throws HoldfastError `ABORTED`, `OPTION_INVALID`
 */
export async function countExecutions(
  context: ExecutionContext,
  options?: CountOptions,
): Promise<ExecutionCounts> {
  const { database, clock } = context;
  const { signal, onProgress } = sweepOptions(options);
  const rowsMax = options?.rowsPerSlice ?? rowsPerSliceDefault;
  const now = clock.now();
  const totals = new Totals();
  const lastKey = await database.read(lastExecutionKey(context), undefined, {
    signal,
  });
  for (let after = 0; after < lastKey;) {
    const slice = await database.read(
      countSlice(context),
      { after, upTo: lastKey, rowsMax, now },
      { signal },
    );
    for (const group of slice.groups) totals.add(group);
    // Rows at the end may have been deleted since: then nothing is left.
    after = slice.lastKey ?? lastKey;
    tellProgress(onProgress, { counted: totals.counted, share: after / lastKey });
    // A read that need not wait for a flush returns before the event loop turns.
    if (after < lastKey) await database.pause();
  }
  return totals.report();
}

interface CountSlice {
  readonly after: number;
  readonly upTo: number;
  readonly rowsMax: number;
  /** Separates due from scheduled executions: the same for all slices. */
  readonly now: number;
}

interface Group {
  readonly function: FunctionName;
  readonly status: string | null;
  readonly n: number;
  readonly last_key: number;
}

const lastExecutionKey: StoreOperation<ExecutionContext, undefined, number> = storeOperation(
  "lastExecutionKey",
  {
    key: () => "",
    *one() {
      const last = yield* row<{ readonly key: number }>(sql`
        SELECT key FROM holdfast_execution ORDER BY key DESC LIMIT 1`);
      return last?.key ?? 0;
    },
  },
);

const countSlice = storeOperation("countSlice", {
  key: () => "",
  *one(
    _: ExecutionContext,
    { after, upTo, rowsMax, now }: CountSlice,
  ): Tx<{ readonly groups: readonly Group[]; readonly lastKey: number | undefined }> {
    const groups = yield* rows<Group>(sql`
      SELECT function, status, count(*) AS n, max(key) AS last_key
      FROM (
        SELECT key, function, ${statusAt(now)} AS status
        FROM holdfast_execution WHERE key > ${after} AND key <= ${upTo} AND is_erased IS NULL ORDER BY key LIMIT ${rowsMax}) AS slice
      GROUP BY function, status`);
    return {
      groups,
      lastKey: groups.length ? Math.max(...groups.map(({ last_key: key }) => key)) : undefined,
    };
  },
});

class Totals {
  readonly #counts = new Map<string, ExecutionCount>();
  #unreadable = 0;
  counted = 0;

  add({ function: name, status, n }: Group): void {
    this.counted += n;
    if (status === null || !isExecutionStatus(status)) {
      this.#unreadable += n;
      return;
    }
    // Names contain no space.
    const place = `${name} ${status}`;
    const count = (this.#counts.get(place)?.count ?? 0) + n;
    this.#counts.set(place, { function: name, status, count });
  }

  report(): ExecutionCounts {
    const inOrder = [...this.#counts].toSorted(([a], [b]) => (a < b ? -1 : 1));
    return {
      counts: inOrder.map(([, count]) => count),
      unreadable: this.#unreadable,
    };
  }
}
