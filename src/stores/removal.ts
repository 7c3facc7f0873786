import { HoldfastError } from "../model/errors.ts";
import {
  checkedCount,
  givenFunction,
  givenSignal,
  optionsOf,
  tellProgress,
} from "../model/shape.ts";
import type { Database } from "../sql/database.ts";
import type { Tx } from "../sql/operation.ts";

/** Options of a sweep: long work in small transactions, between which other calls run. */
export interface SweepOptions<R> {
  /** Stops the sweep between two slices; finished slices stay done. */
  readonly signal?: AbortSignal;
  /** Rows per transaction, 1 to 10,000; defaults to 500. */
  readonly rowsPerSlice?: number;
  /** Called after each slice with the totals so far. */
  readonly onProgress?: (report: R) => void;
}

const sweepOptionNames = ["signal", "rowsPerSlice", "onProgress"] as const;

const rowsPerSliceDefault = 500;

/** One transaction of a sweep. */
export interface SweptSlice<R> {
  readonly report: R;
  readonly isDone: boolean;
}

/**
 * Checks the options of a sweep. `others` names its additional options.
 *
 * @throws HoldfastError `OPTION_INVALID`
 */
export function sweepOptions<O extends SweepOptions<never>>(
  given: O | undefined,
  others: readonly Exclude<keyof O & string, keyof SweepOptions<never>>[] = [],
): O & { readonly rowsPerSlice: number } {
  const options = optionsOf<O>(given, [...others, ...sweepOptionNames]);
  const { signal, onProgress, rowsPerSlice = rowsPerSliceDefault } = options;
  givenSignal(signal);
  givenFunction("onProgress", onProgress);
  checkedCount("rowsPerSlice", rowsPerSlice, { min: 1, max: 10_000 });
  return { ...options, rowsPerSlice };
}

/**
 * Does long work in slices, each in its own transaction, until a slice reports that it is done.
 * Lets the rest of the process run in between.
 *
 * @throws HoldfastError `ABORTED` when the signal stopped it between two slices.
 */
export async function sweep<R extends object>(
  { database }: { readonly database: Pick<Database, "pause"> },
  { signal, onProgress }: SweepOptions<R>,
  slice: () => Promise<SweptSlice<R>>,
): Promise<R> {
  for (let report: R | undefined; ;) {
    if (signal?.aborted === true) throw stopped(signal);
    const { report: own, isDone } = await slice();
    report = report === undefined ? own : added(report, own);
    tellProgress(onProgress, report);
    if (isDone) return report;
    await database.pause();
  }
}

/** Merges two reports: adds numbers and joins lists. */
function added<R extends object>(one: R, other: R): R {
  const sum = { ...one } as Record<string, unknown>;
  for (const [name, value] of Object.entries(other)) {
    const before = sum[name];
    if (typeof value === "number" && typeof before === "number") sum[name] = before + value;
    else if (Array.isArray(value) && Array.isArray(before))
      sum[name] = [...(before as unknown[]), ...(value as unknown[])];
    else sum[name] = value;
  }
  return sum as R;
}

function stopped(signal: AbortSignal): HoldfastError {
  return new HoldfastError(
    "ABORTED",
    "The signal stopped the sweep between two slices. Finished slices are kept; call it again to continue.",
    {},
    { cause: signal.reason },
  );
}

/**
 * Rows that are removed with their owner, such as the queue of a session. Each aggregate declares
 * them beside its rows. The code that removes the owner goes through the list, so no store knows
 * another store's tables.
 */
export interface OwnedRows {
  readonly table: string;
  /**
   * Removes up to `rowsMax` rows of an owner and returns their number. A smaller number means that
   * none are left.
   */
  readonly remove: (owner: number, rowsMax: number) => Tx<number>;
}

/**
 * Removes up to `rowsMax` rows of an owner, one kind after the other, and returns their number. A
 * smaller number means that none are left.
 */
export function* removeOwned(
  kinds: readonly OwnedRows[],
  owner: number,
  rowsMax: number,
): Tx<number> {
  let removed = 0;
  for (const { remove } of kinds) {
    removed += yield* remove(owner, rowsMax - removed);
    if (removed >= rowsMax) return removed;
  }
  return removed;
}
