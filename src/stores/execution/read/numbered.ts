import { row, type Tx } from "../../../sql/operation.ts";
import { sql, type Statement } from "../../../sql/statement.ts";
import { fittingRows, type Slice } from "../../list.ts";

/**
 * Events and responses are numbered without gaps, so a range of numbers bounds the rows that a page
 * reads, even if a filter rejects most of them.
 */

/** The numbers that a page reads, inclusive; may be empty (`low > high`). */
export interface NumberRange {
  readonly isUp: boolean;
  readonly low: number;
  readonly high: number;
}

/** The first and the last existing number. */
export interface Numbers {
  readonly first: number;
  readonly last: number;
}

/**
 * A range of `span` numbers, up or down, from the given one; by default from the first or the last.
 */
export function rangeFrom(
  { first, last }: Numbers,
  from: number | undefined,
  isUp: boolean,
  span: number,
): NumberRange {
  if (isUp) {
    const low = Math.max(first, Math.min(from ?? first, last + 1));
    return { isUp, low, high: Math.min(low + span - 1, last) };
  }
  const high = Math.min(from ?? last, last);
  return { isUp, low: Math.max(first, high - span + 1), high };
}

/** The first existing number from the given one, up or down: past the gap that pruning has left. */
export function* startPast(
  all: Statement,
  number: Statement,
  { first, last }: Numbers,
  from: number | undefined,
  isUp: boolean,
): Tx<number> {
  const found = isUp
    ? yield* row<{ readonly n: number }>(sql`
        ${all} AND ${number} >= ${from ?? first} ORDER BY ${number} ASC LIMIT 1`)
    : yield* row<{ readonly n: number }>(sql`
        ${all} AND ${number} <= ${from ?? last} ORDER BY ${number} DESC LIMIT 1`);
  return found?.n ?? (isUp ? last + 1 : first - 1);
}

interface Sized {
  readonly bytes: number;
}

/**
 * A slice of the rows in a range that match a filter, in its direction: up to the limit, and as far
 * as they fit into a page.
 */
export function* numberedSlice<S extends Sized, R>(
  { first, last }: Numbers,
  { isUp, low, high }: NumberRange,
  limit: number,
  numberOf: (found: R) => number,
  sizedRows: (smallMax: number) => Tx<readonly S[]>,
  largeRows: (large: readonly S[]) => Tx<readonly R[]>,
): Tx<Slice<R>> {
  const { rows, end, isCut, found } = yield* fittingRows(
    { looked: limit, shown: limit },
    (each: R) => [numberOf(each)],
    sizedRows,
    largeRows,
  );
  const isStopped = isCut || found === limit;
  const reached = isStopped ? Number(end?.[0]) : isUp ? high : low;
  const hasMore = isUp ? reached < last : reached > first;
  return { rows, next: hasMore ? [reached] : undefined };
}
