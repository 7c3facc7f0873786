import { row, rows, type Tx } from "../../../sql/operation.ts";
import { sql, type Statement } from "../../../sql/statement.ts";
import { numberAt, textAt } from "../../cursor.ts";
import {
  list,
  pageOf,
  type List,
  type Place,
  type Slice,
  type SliceBounds,
} from "../../list.ts";
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
  keyOf: ({ id }: SummaryRow) => id,
  itemOf: (_, found) => summaryOf(found),
});

function* executionSlice(
  { clock }: ExecutionContext,
  filter: ExecutionFilter,
  { after, limit }: SliceBounds,
): Tx<Slice<SummaryRow>> {
  const parent =
    filter.parent === undefined
      ? undefined
      : yield* findStanding(filter.parent);
  if (filter.parent !== undefined && parent === undefined)
    return { rows: [], next: undefined };
  const path = yield* choosePath(filter, parent?.key);
  const start = after
    ? { createdAt: numberAt(after, 0), id: textAt(after, 1) }
    : filter.newerThan;
  const walk = walkOf(path, filter, clock.now(), start, limit);
  const found = yield* rows<SummaryRow>(walk.page);
  const kept = found.slice(0, limit);
  return {
    rows: filter.newerThan === undefined ? kept : kept.toReversed(),
    next: found.length > limit ? placeOf(kept.at(-1)) : yield* endOfScan(walk),
  };
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
): Walk {
  const conditions = conditionsOf(filter, now, path.answers);
  const passes = allOf(conditions);
  const isNewer = filter.newerThan !== undefined;
  // A tree that is being removed is gone, though its rows go one after the other.
  const within = allOf([
    beyond(start, isNewer),
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

/** Where the page stopped looking, when there may be more beyond. */
function* endOfScan({ end }: Walk): Tx<Place | undefined> {
  if (end === undefined) return undefined;
  return placeOf(yield* row<Pick<SummaryRow, "created_at" | "id">>(end));
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

function placeOf(
  found: Pick<SummaryRow, "created_at" | "id"> | undefined,
): Place | undefined {
  return found && [found.created_at, found.id];
}
