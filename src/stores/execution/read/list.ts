import { isMoving } from "../../../sql/dialect.ts";
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
 * Executions by time of creation, equal times by id. A page looks at no more
 * than 2,000 rows: with filters that few of them pass it may be short, even
 * empty, and still have more after it.
 *
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
  const start = after ? { createdAt: numberAt(after, 0), id: textAt(after, 1) } : filter.newerThan;
  const walk = (bounds?: ScanBounds): Walk => walkOf(path, filter, now, start, limit, bounds);
  const { rows: found, next } = yield* walked(walk, limit);
  const kept = yield* withDetails(found, now);
  const isCut = kept.length < found.length;
  return {
    rows: filter.newerThan === undefined ? kept : kept.toReversed(),
    next: isCut ? placeOf(kept.at(-1)) : next,
  };
}

/**
 * Reads a page, and where it stopped looking when it is not full. Where two
 * statements may see different rows, what the first has looked at cannot be
 * told by the second: the page is then read again, up to that place.
 */
function* walked(walk: (bounds?: ScanBounds) => Walk, limit: number): Tx<Slice<SummaryRow>> {
  const { page, end } = walk();
  const found = yield* rows<SummaryRow>(page);
  if (found.length > limit || end === undefined) return cutAt(found, limit);
  const upTo = placeOf(yield* row<RowPlace>(end));
  if (!(yield* isMovingNow())) return { rows: found, next: upTo };
  const again = yield* rows<SummaryRow>(walk({ upTo }).page);
  const slice = cutAt(again, limit);
  return { ...slice, next: slice.next ?? upTo };
}

function cutAt(found: readonly SummaryRow[], limit: number): Slice<SummaryRow> {
  const kept = found.slice(0, limit);
  const isFull = found.length > limit;
  return { rows: kept, next: isFull ? placeOf(kept.at(-1)) : undefined };
}

/** Whether the next statement may see other rows than the last one. */
function* isMovingNow(): Tx<boolean> {
  const found = yield* row<{ readonly is_moving: number }>(sql`
    SELECT CASE WHEN ${isMoving} THEN 1 ELSE 0 END AS is_moving`);
  return found?.is_moving === 1;
}

type RowPlace = Pick<SummaryRow, "created_at" | "id">;

/** Of a page that is read again: the last row that it may look at, if that is known. */
interface ScanBounds {
  readonly upTo: Place | undefined;
}

interface Walk {
  /** One row more than the page holds, in the order of the walk. */
  readonly page: Statement;
  /** The last row the page may look at; undefined when it looks at all there are. */
  readonly end: Statement | undefined;
}

/**
 * The inner query knows only the path, and its limit keeps the filters out of
 * it: neither database can then choose an index for a filter and sort a
 * million rows, or walk past as many that no filter lets through.
 */
function walkOf(
  path: ListPath,
  filter: ExecutionFilter,
  now: number,
  start: ListPlace | undefined,
  limit: number,
  bounds: ScanBounds | undefined,
): Walk {
  const conditions = conditionsOf(filter, now, path.answers);
  const passes = allOf(conditions);
  const isNewer = filter.newerThan !== undefined;
  // A tree that is being removed is gone, though its rows go one after the other.
  const within = allOf([
    beyond(start, isNewer),
    ...notBeyond(bounds?.upTo, isNewer),
    ...timesOf(filter),
    sql`removing_at IS NULL`,
  ]);
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
  // Again with room for rows that come meanwhile: they must not move its end.
  const rowsMax = bounds === undefined ? scanRowsMax : 2 * scanRowsMax;
  const scan = conditions.length === 0 ? limit + 1 : rowsMax;
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

function notBeyond(upTo: Place | undefined, isNewer: boolean): Statement[] {
  if (upTo === undefined) return [];
  const [createdAt, id] = [numberAt(upTo, 0), textAt(upTo, 1)];
  return isNewer
    ? [sql`(created_at, id) <= (${createdAt}, ${id})`]
    : [sql`(created_at, id) >= (${createdAt}, ${id})`];
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

function placeOf(found: RowPlace | undefined): Place | undefined {
  return found && [found.created_at, found.id];
}
