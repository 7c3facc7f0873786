import { row, rows, plainOperation } from "../../../sql/operation.ts";
import type { Operation, Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import type { Statement } from "../../../sql/statement.ts";
import type { Damaged } from "../../damage.ts";
import { cursorText, parseCursor } from "./list-cursor.ts";
import type { ListCursor } from "./list-cursor.ts";
import { assertFilter, conditionsOf, filterText } from "./list-filter.ts";
import type { ExecutionFilter } from "./list-filter.ts";
import { choosePath } from "./list-path.ts";
import type { ListPath } from "./list-path.ts";
import { checkedLimit, scanRowsMax } from "./page-limit.ts";
import { findStanding } from "./read.ts";
import { summariesOf, summaryColumns } from "./summary.ts";
import type { ExecutionSummary, SummaryRow } from "./summary.ts";

export interface ListExecutions {
  readonly filter?: ExecutionFilter | undefined;
  readonly limit: number;
  /** `older` or `newer` of an earlier page with the same filters; without one the list begins at its newest. */
  readonly cursor?: string | undefined;
  /** Tells what is due from what is scheduled. */
  readonly now: number;
}

export interface ExecutionPage {
  /** Newest first, whichever way the pages go. */
  readonly items: readonly ExecutionSummary[];
  readonly damaged: readonly Damaged[];
  /** Whether more may follow in the direction of this page. */
  readonly hasMore: boolean;
  /** What is older than this page; undefined when nothing is. */
  readonly older: string | undefined;
  /** What is newer than this page, now or later; undefined only for a list without rows. */
  readonly newer: string | undefined;
}

/**
 * Executions by time of creation, equal times by id. A page looks at no more
 * than 2,000 rows: with filters that few of them pass it may be short, even
 * empty, and still have more after it.
 *
 * @throws HoldfastError `OPTION_INVALID`, `CURSOR_INVALID`
 */
export const listExecutions: Operation<ListExecutions, ExecutionPage> =
  plainOperation("listExecutions", {
    key: ({ filter }: ListExecutions) => filter?.function ?? "",
    *one({ filter = {}, limit: wanted, cursor: text, now }) {
      const limit = checkedLimit(wanted);
      assertFilter(filter);
      const cursor =
        text === undefined ? undefined : parseCursor(text, filterText(filter));
      const parent =
        filter.parent === undefined
          ? undefined
          : yield* findStanding(filter.parent);
      if (filter.parent !== undefined && parent === undefined) return emptyPage;
      const path = yield* choosePath(filter, parent?.key);
      const walk = walkOf(path, filter, now, cursor, limit);
      const found = yield* rows<SummaryRow>(walk.page);
      const kept = found.slice(0, limit);
      const end =
        found.length > limit ? placeOf(kept.at(-1)) : yield* endOfScan(walk);
      const isNewer = cursor?.direction === "newer";
      return {
        ...summariesOf(isNewer ? kept.toReversed() : kept),
        hasMore: end !== undefined,
        ...edgesOf(
          filterText(filter),
          cursor,
          placeOf(kept[0]),
          placeOf(kept.at(-1)),
          end,
        ),
      };
    },
  });

const emptyPage: ExecutionPage = {
  items: [],
  damaged: [],
  hasMore: false,
  older: undefined,
  newer: undefined,
};

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
  cursor: ListCursor | undefined,
  limit: number,
): Walk {
  const conditions = conditionsOf(filter, now, path.answers);
  const passes = allOf(conditions);
  // A tree that is being removed is gone, though its rows go one after the other.
  const within = allOf([
    beyond(cursor),
    ...timesOf(filter),
    sql`removing_at IS NULL`,
  ]);
  const order =
    cursor?.direction === "newer"
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

function beyond(cursor: ListCursor | undefined): Statement {
  if (cursor === undefined) return sql`1 = 1`;
  const { direction, inclusive, createdAt, id } = cursor;
  if (direction === "older")
    return inclusive
      ? sql`(created_at, id) <= (${createdAt}, ${id})`
      : sql`(created_at, id) < (${createdAt}, ${id})`;
  return inclusive
    ? sql`(created_at, id) >= (${createdAt}, ${id})`
    : sql`(created_at, id) > (${createdAt}, ${id})`;
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

interface Place {
  readonly createdAt: number;
  readonly id: string;
}

function placeOf(
  found: Pick<SummaryRow, "created_at" | "id"> | undefined,
): Place | undefined {
  return found && { createdAt: found.created_at, id: found.id };
}

/**
 * The cursors of both edges. `first` and `last` are in the order of the walk;
 * `end` is where it goes on. An empty page keeps its own cursor's place, and
 * the way back from there begins with that place.
 */
function edgesOf(
  filter: string,
  cursor: ListCursor | undefined,
  first: Place | undefined,
  last: Place | undefined,
  end: Place | undefined,
): Pick<ExecutionPage, "older" | "newer"> {
  const direction = cursor?.direction ?? "older";
  const edge = (
    way: ListCursor["direction"],
    place: Place | undefined,
    inclusive = false,
  ): string | undefined =>
    place && cursorText({ ...place, direction: way, inclusive }, filter);
  const back = direction === "older" ? "newer" : "older";
  const backward = first ? edge(back, first) : edge(back, cursor, true);
  const forward = edge(direction, end);
  return direction === "older"
    ? { older: forward, newer: backward }
    : {
        older: backward,
        newer:
          forward ?? edge("newer", last ?? cursor, !last && cursor?.inclusive),
      };
}
