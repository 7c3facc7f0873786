import { canonicalText } from "../model/values/canonical.ts";
import { checkedCount, optionsOf } from "../model/shape.ts";
import { isRecord } from "../model/values/spoken-kind.ts";
import type { WaitOptions } from "../sql/database.ts";
import { storeOperation } from "../sql/operation.ts";
import type { StoreOperation, Tx } from "../sql/operation.ts";
import type { StoreContext } from "./context.ts";
import { cursorPlace, cursorText } from "./cursor.ts";
import { sift } from "./damage.ts";
import type { Damaged } from "./damage.ts";
import type { SessionRef } from "./session-row.ts";
import { onlyWait, reads, readsLocking } from "./method.ts";
import type { Call, Method } from "./method.ts";

/** Selects a page of a list. */
export interface PageOptions extends WaitOptions {
  /** `next` of the previous page. */
  readonly after?: string;
  /** 1 to 1,000; defaults to 50. A page is shorter when its rows are large. */
  readonly limit?: number;
}

/** A page of a list. */
export interface Page<T> {
  readonly items: readonly T[];
  /** The cursor of the next page; undefined at the end. */
  readonly next: string | undefined;
  /**
   * The number of rows that were examined for a page that ended before it was full. More matches
   * may follow: continue at `next`.
   */
  readonly looked?: number;
  /** Unreadable rows, which the list skips. */
  readonly damaged: readonly Damaged[];
}

const limitDefault = 50;
const limitMax = 1_000;
/** The bytes of values at which a page ends. A page has at least one row. */
export const pageBytesMax: number = 1024 * 1024;

/** The place of a row in a list: the values that it is ordered by. */
export type Place = readonly (string | number | null)[];

/** The rows that a list reads in one call. */
export interface Slice<R> {
  readonly rows: readonly R[];
  /** The place to continue from; undefined at the end. */
  readonly next: Place | undefined;
  /** The `looked` of the page. */
  readonly looked?: number | undefined;
  /** Unreadable rows of other tables that belong to these rows. */
  readonly damaged?: readonly Damaged[];
}

/** The bounds of a slice. */
export interface SliceBounds {
  /** Only rows after this place. */
  readonly after: Place | undefined;
  /** The largest number of rows. */
  readonly limit: number;
}

export interface ListForms<
  C extends StoreContext,
  Args extends readonly unknown[],
  F extends object,
  R,
  T,
> {
  /** The table of damaged rows. */
  readonly table: string;
  /** Checks the caller's arguments. The filter is data: a cursor of another filter is refused. */
  readonly given: (context: C, ...args: Args) => FilterCall<F>;
  readonly slice: (context: C, filter: F, bounds: SliceBounds) => Tx<Slice<R>>;
  readonly keyOf: (row: R, filter: F) => string;
  /** Maps a row to what the caller sees. When it throws, the row is reported as damaged. */
  readonly itemOf: (context: C, row: R, filter: F) => T;
}

/** The validated arguments of a list: a filter, and the page of the matches. */
interface FilterCall<F> {
  readonly filter: F;
  readonly page: PageOptions;
}

export interface List<C extends StoreContext, Args extends readonly unknown[], T> {
  readonly operation: StoreOperation<C, ListInput, Page<T>>;
  readonly given: (context: C, ...args: Args) => Call<ListInput>;
}

interface ListInput {
  readonly filter: object;
  readonly after: Place | undefined;
  readonly limit: number;
}

/**
 * Defines a list: `{ after, limit, …filter }` gives `{ items, next, damaged }`.
 *
 * @example
 * export const queueList = list("listQueue", {
 *   table: "holdfast_queue_batch",
 *   given(_, session: SessionName, options?: ListQueueOptions) {
 *     const { filter: { state }, page } = pageOf(options, ["state"]);
 *     return { filter: { session: sessionNamed(session), state: checkedState(state) }, page };
 *   },
 *   slice: (context, filter, bounds) => sliced(bounds, placeOf, (after, count) => rowsOf(filter, after, count)),
 *   keyOf: ({ id }) => id,
 *   itemOf: (context, row) => batchOf(context, row),
 * });
 */
export function list<
  C extends StoreContext,
  Args extends readonly unknown[],
  F extends object,
  R,
  T,
>(name: string, forms: ListForms<C, Args, F, R, T>): List<C, Args, T> {
  return {
    operation: storeOperation<C, ListInput, Page<T>>(name, {
      key: () => name,
      *one(context, { filter, after, limit }) {
        const bounds = { after, limit };
        const slice = yield* forms.slice(context, filter as F, bounds);
        const { items, damaged } = sift(
          forms.table,
          slice.rows,
          (row) => forms.keyOf(row, filter as F),
          (row) => forms.itemOf(context, row, filter as F),
        );
        const next = slice.next && cursorText(ownerOf(context, name, filter), slice.next);
        const { looked } = slice;
        return {
          items,
          next,
          ...(looked !== undefined && { looked }),
          damaged: [...(slice.damaged ?? []), ...damaged],
        };
      },
    }),
    given(context, ...args) {
      const { filter, page } = forms.given(context, ...args);
      const { after, limit = limitDefault, signal, timeout } = page;
      return {
        input: {
          filter,
          after:
            after === undefined
              ? undefined
              : (cursorPlace(ownerOf(context, name, filter), after) as Place),
          limit: checkedCount("limit", limit, { min: 1, max: limitMax }),
        },
        wait: { signal, timeout },
      };
    },
  };
}

/**
 * The method of a list. A list of one thing gets the lock of that thing, which takes the filter.
 * Any other list is refused as part of a write.
 */
export function lists<C extends StoreContext, Args extends readonly unknown[], T>(
  context: C,
  { operation, given }: List<C, Args, T>,
  lock?: (filter: never) => Tx<unknown>,
): Method<Args, Page<T>> {
  if (lock === undefined) return reads(context, operation, given);
  const locking = readsLocking(({ filter }: ListInput) => lock(filter as never));
  return locking(context, operation, given);
}

/**
 * Names the owner of a cursor: the list and the hash of its filter, which may be long and private.
 * Only pages with a cursor pay for the hash.
 */
function ownerOf({ database }: StoreContext, name: string, filter: object): string {
  const known = Object.entries(filter as Readonly<Record<string, unknown>>)
    .filter(([, value]) => value !== undefined)
    .map(([option, value]): [string, unknown] => [option, isSessionRef(value) ? value.id : value]);
  const hash = database.sha256Hex(canonicalText(Object.fromEntries(known)));
  return `${name}:${hash.slice(0, 16)}`;
}

/** A session is the same list, whether a caller passes its id or its handle. */
function isSessionRef(value: unknown): value is SessionRef {
  return (
    isRecord(value) &&
    "id" in value &&
    Object.keys(value).every((name) => name === "id" || name === "generation")
  );
}

/**
 * Separates the options of a list into the page and the filter. Other options are refused.
 * @throws HoldfastError `OPTION_INVALID`
 */
export function pageOf<O extends PageOptions>(
  given: O | undefined,
  filters: readonly Exclude<keyof O & string, keyof PageOptions>[],
): {
  readonly filter: Omit<O, keyof PageOptions>;
  readonly page: PageOptions;
} {
  const { signal, timeout, after, limit, ...filter } = optionsOf<O>(given, [
    ...filters,
    ...pageOptionNames,
  ]);
  const wait = onlyWait({ signal, timeout });
  return {
    filter,
    page: {
      ...wait,
      ...(after !== undefined && { after }),
      ...(limit !== undefined && { limit }),
    },
  };
}

const pageOptionNames = [
  "signal",
  "timeout",
  "after",
  "limit",
] as const satisfies readonly (keyof PageOptions)[];

/** Reads a slice of rows that are known to be small: names and numbers. */
export function* sliced<R>(
  { after, limit }: SliceBounds,
  placeOf: (row: R) => Place,
  rows: (after: Place | undefined, count: number) => Tx<readonly R[]>,
): Tx<Slice<R>> {
  const found = yield* rows(after, limit + 1);
  if (found.length <= limit) return { rows: found, next: undefined };
  const page = found.slice(0, limit);
  return { rows: page, next: placeOf(page.at(-1) as R) };
}

/**
 * Reads a slice of rows that may be large. It first reads only the byte sizes of the next rows,
 * which is cheap since no value is read. Then it reads as many rows as fit into a page, at least
 * one.
 */
export function* slicedByBytes<R>(
  { after, limit }: SliceBounds,
  placeOf: (row: R) => Place,
  bytesOf: (after: Place | undefined, count: number) => Tx<readonly number[]>,
  rows: (after: Place | undefined, count: number) => Tx<readonly R[]>,
): Tx<Slice<R>> {
  const bytes = yield* bytesOf(after, limit + 1);
  const count = Math.min(rowsWithin(bytes, pageBytesMax), limit);
  if (count === 0) return { rows: [], next: undefined };
  const isCut = bytes.length > count;
  const page = yield* rows(after, count);
  const last = page.at(-1);
  return { rows: page, next: isCut && last !== undefined ? placeOf(last) : undefined };
}

/** Reads a slice of rows of which few are large: see `fittingRows`. */
export function* slicedFitting<S extends { readonly bytes: number }, R>(
  { after, limit }: SliceBounds,
  placeOf: (row: R) => Place,
  sizedRows: (after: Place | undefined, count: number, smallMax: number) => Tx<readonly S[]>,
  largeRows: (large: readonly S[]) => Tx<readonly R[]>,
): Tx<Slice<R>> {
  const { rows, end, isCut } = yield* fittingRows(
    { looked: limit + 1, shown: limit },
    placeOf,
    (smallMax) => sizedRows(after, limit + 1, smallMax),
    largeRows,
  );
  return { rows, next: isCut ? end : undefined };
}

/** The cost of a row besides its values: a hundred thousand short rows are too many as well. */
export const rowBytes = 100;

/** Counts the next rows that fit into a number of bytes: at least one, if any exist. */
export function rowsWithin(bytes: readonly number[], bytesMax: number): number {
  let sum = 0;
  for (const [index, own] of bytes.entries()) {
    sum += rowBytes + own;
    if (sum > bytesMax) return Math.max(1, index);
  }
  return bytes.length;
}

/** Rows that fit. */
export interface Fitting<R> {
  readonly rows: readonly R[];
  /**
   * The place of the last row that fits, even if that row has gone since; undefined when no row was
   * found.
   */
  readonly end: Place | undefined;
  /** True when more rows were found than fit. */
  readonly isCut: boolean;
  /** The number of rows found. */
  readonly found: number;
}

/**
 * Reads rows in order while they fit into a page, at least one. Most values are small, and one
 * statement reads them with the sizes of all. They would fit even if every row had one as large as
 * `smallMax`. A second statement reads the larger values, once it is known which of them fit. Rows
 * that were removed in between are left out.
 */
export function* fittingRows<S extends { readonly bytes: number }, R>(
  { looked, shown }: { readonly looked: number; readonly shown: number },
  placeOf: (row: R) => Place,
  sizedRows: (smallMax: number) => Tx<readonly S[]>,
  largeRows: (large: readonly S[]) => Tx<readonly R[]>,
): Tx<Fitting<R>> {
  const smallMax = Math.floor(pageBytesMax / looked);
  const sized = yield* sizedRows(smallMax);
  const sizes = sized.map(({ bytes }) => bytes);
  const count = Math.min(rowsWithin(sizes, pageBytesMax), shown);
  // A row keeps its place even without its value.
  const kept = sized.slice(0, count) as readonly unknown[] as readonly (S & R)[];
  const last = kept.at(-1);
  const end = last && placeOf(last);
  const { length: all } = sized;
  const isCut = count < all;
  const large = kept.filter(({ bytes }) => bytes > smallMax);
  if (large.length === 0) return { rows: kept, end, isCut, found: all };
  const textOf = (row: R): string => placeOf(row).join(" ");
  const found = new Map((yield* largeRows(large)).map((row) => [textOf(row), row]));
  const rows = kept.flatMap((row) => {
    const whole = row.bytes > smallMax ? found.get(textOf(row)) : row;
    return whole === undefined ? [] : [whole];
  });
  return { rows, end, isCut, found: all };
}
