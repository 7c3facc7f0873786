import { HoldfastError } from "../model/errors.ts";
import { checkedCount, givenFunction, givenSignal, optionsOf } from "../model/shape.ts";
import type { Database } from "../sql/database.ts";
import type { Tx } from "../sql/operation.ts";

/** What a sweep may be told: long work in small transactions, between which others get their turn. */
export interface SweepOptions<R> {
  /** Stops it between two slices; what was done stays done. */
  readonly signal?: AbortSignal;
  /** Rows per transaction, 1 to 10,000; defaults to 500. */
  readonly rowsPerSlice?: number;
  /** Called after each slice with what has been done so far. */
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
 * The options of a sweep, checked. `others` names those that it has besides.
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
 * Does long work slice by slice, each a transaction of its own, until one says
 * that it is done. Lets the rest of the process run in between.
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
    onProgress?.(report);
    if (isDone) return report;
    await database.pause();
  }
}

/** Both reports together: numbers are added up, lists joined. */
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
    "The signal stopped the sweep between two slices. What it has done stays done; call it again to go on.",
    {},
    { cause: signal.reason },
  );
}

/**
 * Rows that go when their owner goes, such as the queue of a session: each
 * aggregate says so beside its rows, and whoever removes the owner goes
 * through the list, so that no store knows another's tables.
 */
export interface OwnedRows {
  readonly table: string;
  /** Removes up to so many rows of an owner; tells how many. When they are fewer, none are left. */
  readonly remove: (owner: number, rowsMax: number) => Tx<number>;
}

/** Removes rows of an owner, kind after kind, up to so many; tells how many. When they are fewer, none are left. */
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
