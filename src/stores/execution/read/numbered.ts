import type { Tx } from "../../../sql/operation.ts";
import { pageBytesMax, rowsWithin, type Slice } from "../../list.ts";

/**
 * Events and responses have numbers without gaps, so a range of numbers bounds
 * the rows that a page looks at, also where a filter lets few of them through.
 */

/** Which numbers a page looks at. Included; may be empty (`low > high`). */
export interface NumberRange {
  readonly isUp: boolean;
  readonly low: number;
  readonly high: number;
}

/** The first and the last number that there are. */
export interface Numbers {
  readonly first: number;
  readonly last: number;
}

/** So many numbers from one on, up or down; from the first or the last by default. */
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

/** How large the row of a number is. */
export interface NumberedBytes {
  readonly n: number;
  readonly bytes: number;
}

/**
 * A slice of the rows in a range, in its direction. First the bytes of rows
 * that pass the filter are read, up to so many; then those that fit.
 */
export function* numberedSlice<R>(
  { first, last }: Numbers,
  range: NumberRange,
  limit: number,
  bytesOf: (range: NumberRange, count: number) => Tx<readonly NumberedBytes[]>,
  rowsOf: (range: NumberRange) => Tx<readonly R[]>,
): Tx<Slice<R>> {
  const sizes = yield* bytesOf(range, limit);
  const fitting = rowsWithin(
    sizes.map(({ bytes }) => bytes),
    pageBytesMax,
  );
  const isCut = fitting < sizes.length || sizes.length === limit;
  const end = range.isUp ? range.high : range.low;
  const reached = (isCut ? sizes[fitting - 1]?.n : undefined) ?? end;
  const near = range.isUp
    ? { ...range, high: reached }
    : { ...range, low: reached };
  const hasMore = range.isUp ? reached < last : reached > first;
  return {
    rows: fitting === 0 ? [] : yield* rowsOf(near),
    next: hasMore ? [reached] : undefined,
  };
}
