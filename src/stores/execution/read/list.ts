import { row, rows, type Tx } from "../../../sql/operation.ts";
import { sql, type Statement } from "../../../sql/statement.ts";
import { numberAt, textAt } from "../../cursor.ts";
import { list, pageOf, type List, type Place, type Slice, type SliceBounds } from "../../list.ts";
import type { ExecutionContext } from "../context.ts";
import { findStanding } from "../state-row.ts";
import {
  checkedFilter,
  conditionsOf,
  filterNames,
  type ExecutionFilter,
  type ListExecutionsOptions,
  type ListPlace,
} from "./list-filter.ts";
import { choosePath, scanRowsMax, type ListPath } from "./list-path.ts";
import {
  summaryColumns,
  summaryOf,
  withDetails,
  type DetailedRow,
  type ExecutionSummary,
  type SummaryRow,
} from "./summary.ts";

/**
 * Executions by time of creation, equal times by id. A page is filled from at most 10,000 rows. If
 * few rows match the filters, it may be short or empty and still have a next page. It then reports
 * the number of rows that it read.
 * @throws HoldfastError `OPTION_INVALID`, `CURSOR_INVALID`
 */
export const executionList: List<
  ExecutionContext,
  [options?: ListExecutionsOptions],
  ExecutionSummary
> = list("listExecutions", {
  table: "holdfast_execution",
  given(_: ExecutionContext, options?: ListExecutionsOptions) {
    const { filter, page } = pageOf(options, filterNames);
    return { filter: checkedFilter(filter), page };
  },
  slice: executionSlice,
  keyOf: ({ id }: DetailedRow) => id,
  itemOf: (_, found) => summaryOf(found),
});

function* executionSlice(
  { clock }: ExecutionContext,
  filter: ExecutionFilter,
  { after, limit }: SliceBounds,
): Tx<Slice<DetailedRow>> {
  const parent = filter.parent === undefined ? undefined : yield* findStanding(filter.parent);
  if (filter.parent !== undefined && parent === undefined) return { rows: [], next: undefined };
  const now = clock.now();
  const path = yield* choosePath(filter, parent?.key, now);
  const bounds = { after, limit };
  const { rows: found, next, looked } = yield* foundAlong(path, filter, now, bounds);
  const kept = yield* withDetails(found, now);
  const isCut = kept.length < found.length;
  return {
    rows: filter.newerThan === undefined ? kept : kept.toReversed(),
    next: isCut ? placeOf(kept.at(-1)) : next,
    looked: isCut ? undefined : looked,
  };
}

/** The rows of a page along a path. */
export function* foundAlong(
  path: ListPath,
  filter: ExecutionFilter,
  now: number,
  { after, limit }: SliceBounds,
): Tx<Slice<SummaryRow>> {
  return yield* filled(path, filter, now, after ? listPlace(after) : filter.newerThan, limit);
}

/** The number of stretches of `scanRowsMax` rows that a page searches: 5 ms at best on SQLite. */
const scansMax = 5;

/**
 * Reads stretch after stretch until the page is full, and reports the number of rows read if it is
 * not.
 */
function* filled(
  path: ListPath,
  filter: ExecutionFilter,
  now: number,
  start: ListPlace | undefined,
  limit: number,
): Tx<Slice<SummaryRow>> {
  const found: SummaryRow[] = [];
  let from = start;
  for (let scans = 1; ; scans += 1) {
    const missing = limit - found.length;
    const walk = walkOf(path, filter, now, from, missing);
    const { rows: more, next } = yield* walked(walk, missing);
    found.push(...more);
    if (next === undefined || found.length === limit) return { rows: found, next };
    if (scans === scansMax) return { rows: found, next, looked: scans * scanRowsMax };
    from = listPlace(next);
  }
}

/** Reads a page, and the place where it stopped if the page is not full. */
function* walked({ page, end }: Walk, limit: number): Tx<Slice<SummaryRow>> {
  const found = yield* rows<SummaryRow>(page);
  if (found.length > limit || end === undefined) return cutAt(found, limit);
  return { rows: found, next: placeOf(yield* row<RowPlace>(end)) };
}

function cutAt(found: readonly SummaryRow[], limit: number): Slice<SummaryRow> {
  const kept = found.slice(0, limit);
  const isFull = found.length > limit;
  return { rows: kept, next: isFull ? placeOf(kept.at(-1)) : undefined };
}

type RowPlace = Pick<SummaryRow, "created_at" | "id">;

interface Walk {
  /** One row more than the page holds, in the order of the walk. */
  readonly page: Statement;
  /** The last row that the page may read; undefined when it reads all rows. */
  readonly end: Statement | undefined;
}

/**
 * The inner query knows only the path, and its limit keeps the filters out of it. Neither database
 * can then choose an index for a filter and sort a million rows, or walk over a million rows that
 * no filter accepts.
 */
function walkOf(
  path: ListPath,
  filter: ExecutionFilter,
  now: number,
  start: ListPlace | undefined,
  limit: number,
): Walk {
  const conditions = conditionsOf(filter, now, path.answers);
  const passes = allOf(conditions);
  const isNewer = filter.newerThan !== undefined;
  // A tree that is being removed counts as missing, though its rows are removed one by one.
  const within = allOf([beyond(start, isNewer), ...timesOf(filter), sql`removing_at IS NULL`]);
  const order = isNewer
    ? sql`ORDER BY created_at ASC, id ASC`
    : sql`ORDER BY created_at DESC, id DESC`;
  if (path.kind === "few")
    return {
      // CROSS JOIN, because SQLite then begins with the few.
      page: sql`
        SELECT ${summaryColumns}
        FROM (${path.keys}) AS few CROSS JOIN holdfast_execution AS near
        WHERE key = found AND ${within} AND ${passes} ${order} LIMIT ${limit + 1}`,
      end: undefined,
    };
  const scan = conditions.length === 0 ? limit + 1 : scanRowsMax;
  const ordered = sql`FROM holdfast_execution WHERE ${path.where} AND ${within} ${order}`;
  return {
    page: sql`
      SELECT ${summaryColumns} FROM (SELECT ${summaryColumns} ${ordered} LIMIT ${scan}) AS near
      WHERE ${passes} ${order} LIMIT ${limit + 1}`,
    end:
      conditions.length === 0
        ? undefined
        : sql`SELECT created_at, id ${ordered} LIMIT 1 OFFSET ${scan - 1}`,
  };
}

function beyond(start: ListPlace | undefined, isNewer: boolean): Statement {
  if (start === undefined) return sql`1 = 1`;
  const { createdAt, id } = start;
  return isNewer
    ? sql`(created_at, id) > (${createdAt}, ${id})`
    : sql`(created_at, id) < (${createdAt}, ${id})`;
}

function timesOf({ createdFrom, createdTo }: ExecutionFilter): Statement[] {
  return [
    ...(createdFrom === undefined ? [] : [sql`created_at >= ${createdFrom}`]),
    ...(createdTo === undefined ? [] : [sql`created_at < ${createdTo}`]),
  ];
}

function allOf(conditions: readonly Statement[]): Statement {
  let all = sql`1 = 1`;
  for (const condition of conditions) all = sql`${all} AND ${condition}`;
  return all;
}

function listPlace(place: Place): ListPlace {
  return { createdAt: numberAt(place, 0), id: textAt(place, 1) };
}

export function placeOf(found: RowPlace | undefined): Place | undefined {
  return found && [found.created_at, found.id];
}
