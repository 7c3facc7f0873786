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
import { onlyWait, reads } from "./method.ts";
import type { Call, Method } from "./method.ts";

/** Which page of a list. */
export interface PageOptions extends WaitOptions {
  /** `next` of the page before. */
  readonly after?: string;
  /** 1 to 1,000; defaults to 50. A page is shorter when its rows are large. */
  readonly limit?: number;
}

/** A page of a list. */
export interface Page<T> {
  readonly items: readonly T[];
  /** Where to go on; undefined at the end. */
  readonly next: string | undefined;
  /** Rows that cannot be read: the list goes on past them. */
  readonly damaged: readonly Damaged[];
}

const limitDefault = 50;
const limitMax = 1_000;
/** Bytes of values that a page reads: beyond it ends, with one row at least. */
export const pageBytesMax: number = 1024 * 1024;

/** Where in a list a row stands: what its order goes by. */
export type Place = readonly (string | number | null)[];

/** What a list looks at in one call. */
export interface Slice<R> {
  readonly rows: readonly R[];
  /** Where to go on; undefined at the end. */
  readonly next: Place | undefined;
  /** Rows of other tables that belong to these and cannot be read. */
  readonly damaged?: readonly Damaged[];
}

/** Which rows a slice is to have. */
export interface SliceBounds {
  /** Only rows behind it. */
  readonly after: Place | undefined;
  /** At most so many rows. */
  readonly limit: number;
}

export interface ListForms<
  C extends StoreContext,
  Args extends readonly unknown[],
  F extends object,
  R,
  T,
> {
  /** Where damaged rows are. */
  readonly table: string;
  /** Checks what a caller gave. The filter is data: a cursor of another filter is refused. */
  readonly given: (context: C, ...args: Args) => FilterCall<F>;
  readonly slice: (context: C, filter: F, bounds: SliceBounds) => Tx<Slice<R>>;
  readonly keyOf: (row: R, filter: F) => string;
  /** What a caller is shown of a row. When it throws, the row is named as damaged. */
  readonly itemOf: (context: C, row: R) => T;
}

/** What a caller's arguments come to: a filter, and which page of what it lets through. */
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
          (row) => forms.itemOf(context, row),
        );
        const next = slice.next && cursorText(ownerOf(context, name, filter), slice.next);
        return { items, next, damaged: [...(slice.damaged ?? []), ...damaged] };
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

/** The method of a list. */
export function lists<C extends StoreContext, Args extends readonly unknown[], T>(
  context: C,
  { operation, given }: List<C, Args, T>,
): Method<Args, Page<T>> {
  return reads(context, operation, given);
}

/** What a cursor belongs to: the list and the hash of its filter, which may be long and private. Only pages with a cursor pay for it. */
function ownerOf({ database }: StoreContext, name: string, filter: object): string {
  const known = Object.entries(filter as Readonly<Record<string, unknown>>)
    .filter(([, value]) => value !== undefined)
    .map(([option, value]): [string, unknown] => [option, isSessionRef(value) ? value.id : value]);
  const hash = database.sha256Hex(canonicalText(Object.fromEntries(known)));
  return `${name}:${hash.slice(0, 16)}`;
}

/** A session is the same list whether a caller gives its id or its handle. */
function isSessionRef(value: unknown): value is SessionRef {
  return (
    isRecord(value) &&
    "id" in value &&
    Object.keys(value).every((name) => name === "id" || name === "generation")
  );
}

/** The options of a list, told apart: which page, and which filter. Others are refused. @throws HoldfastError `OPTION_INVALID` */
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

/** A slice of rows that are known to be small: names and numbers. */
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
 * A slice of rows that may be large. First the bytes of those that come next
 * are read, which costs little, since no value is; then as many rows as fit
 * into a page, one at least.
 *
 * The two statements may see different rows, in a body that is readCommitted.
 * So the second one looks for one row more where the first has seen the end:
 * it finds it only when others have come in front.
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
  const found = yield* rows(after, isCut ? count : count + 1);
  const page = found.slice(0, count);
  const last = page.at(-1);
  const hasMore = isCut || found.length > count;
  return {
    rows: page,
    next: hasMore && last !== undefined ? placeOf(last) : undefined,
  };
}

/** A slice of rows of which few are large: see `fittingRows`. */
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

/** What a row costs besides its values: a hundred thousand short ones are too much as well. */
export const rowBytes = 100;

/** How many of the rows that come next fit into so many bytes: one at least, if there is one. */
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
  /** Where the last of them stood, also when it has gone since; undefined when there was none. */
  readonly end: Place | undefined;
  /** Whether there were more than fit. */
  readonly isCut: boolean;
  /** How many there were. */
  readonly found: number;
}

/**
 * Rows in order as long as they fit into a page, one at least. Most values are
 * small, and come with the sizes of all in one statement: even if every row
 * had one as large as `smallMax`, they would fit. Larger ones follow by a
 * statement of their own, once it is known which of them fit; those that have
 * gone by then are left out.
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
  // Without its value a row has its place all the same.
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
