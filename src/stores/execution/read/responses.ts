import type { LoggedResponse } from "../../../model/execution/event.ts";
import { parseExecutionId, type ExecutionId } from "../../../model/ids/execution-id.ts";
import { checkedCount, checkedFilterText, givenFlag } from "../../../model/shape.ts";
import { integersOf } from "../../../sql/dialect.ts";
import { rows, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { numberAt } from "../../cursor.ts";
import {
  list,
  pageOf,
  type List,
  type PageOptions,
  type Slice,
  type SliceBounds,
} from "../../list.ts";
import type { ExecutionContext } from "../context.ts";
import { deliveredResponse } from "../delivered.ts";
import {
  responseColumns,
  responseTables,
  sizedResponseColumns,
  storedResponseOf,
  type SizedResponseRow,
  type ValuedResponseRow,
} from "../event-row.ts";
import { standing } from "../state-row.ts";
import { scanRowsMax } from "./list-path.ts";
import { numberedSlice, rangeFrom, startPast } from "./numbered.ts";

export interface ListResponsesOptions extends PageOptions {
  /** The first number of the list: defaults to the first, with `backward` to the last one. */
  readonly from?: number;
  /** Pages go down from `from`; within a page the numbers still go up. */
  readonly backward?: boolean;
  /** Only responses of one set. If few responses match, pages are short. */
  readonly joinSet?: string;
  /** Only signals that no run before the last new start has read. */
  readonly unread?: boolean;
}

interface ResponseFilter {
  readonly id: ExecutionId;
  readonly from: number | undefined;
  readonly backward: boolean;
  readonly joinSet: string | undefined;
  readonly unread: boolean;
}

const table = "holdfast_execution_response";

/**
 * Responses in the order of their numbers, in either direction of the pages. With `joinSet` a page
 * reads at most 2,000 of them.
 * @throws HoldfastError `EXECUTION_NOT_FOUND`, `OPTION_INVALID`, `CURSOR_INVALID`
 */
export const responseList: List<
  ExecutionContext,
  [id: string, options?: ListResponsesOptions],
  LoggedResponse<unknown>
> = list("listResponses", {
  table,
  given(_: ExecutionContext, id: string, options?: ListResponsesOptions) {
    const { filter, page } = pageOf(options, ["from", "backward", "joinSet", "unread"]);
    return { filter: checkedFilter(id, filter), page };
  },
  slice: responseSlice,
  keyOf: ({ seq }: ValuedResponseRow, { id }) => `${id}#${seq}`,
  itemOf: (context, found, { id }) => deliveredResponse(context, id, storedResponseOf(found)),
});

function checkedFilter(
  id: string,
  { from, backward, joinSet, unread }: ListResponsesOptions,
): ResponseFilter {
  return {
    id: parseExecutionId(id),
    from: from === undefined ? undefined : checkedCount("from", from),
    backward: givenFlag("backward", backward) ?? false,
    joinSet: joinSet === undefined ? undefined : checkedFilterText("joinSet", joinSet),
    unread: givenFlag("unread", unread) ?? false,
  };
}

function* responseSlice(
  _: ExecutionContext,
  { id, from, backward, joinSet, unread }: ResponseFilter,
  { after, limit }: SliceBounds,
): Tx<Slice<ValuedResponseRow>> {
  const found = yield* standing(id);
  const numbers = { first: 1, last: found.responses };
  const isUp = !backward;
  const asked = after ? numberAt(after, 0) + (isUp ? 1 : -1) : from;
  const start =
    found.prunedBefore === 0
      ? asked
      : yield* startPast(
          sql`SELECT seq AS n FROM holdfast_execution_response WHERE execution = ${found.key}`,
          sql`seq`,
          numbers,
          asked,
          isUp,
        );
  const isUnread = unread ? sql`r.kind = 'signal' AND r.read_by IS NULL` : sql`1 = 1`;
  const only =
    joinSet === undefined
      ? isUnread
      : // Not a bare column: with its index a large set would be read as a whole and sorted.
        sql`r.inbox || '' = ${joinSet} AND ${isUnread}`;
  const range = rangeFrom(
    numbers,
    start,
    isUp,
    joinSet === undefined && !unread ? limit : scanRowsMax,
  );
  const order = isUp ? sql`ORDER BY r.seq ASC` : sql`ORDER BY r.seq DESC`;
  const slice = yield* numberedSlice<SizedResponseRow, ValuedResponseRow>(
    numbers,
    range,
    limit,
    ({ seq }) => seq,
    function* (smallMax) {
      return yield* rows<SizedResponseRow>(sql`
        SELECT ${sizedResponseColumns(smallMax)} FROM ${responseTables}
        WHERE r.execution = ${found.key} AND r.seq >= ${range.low} AND r.seq <= ${range.high} AND ${only}
        ${order} LIMIT ${limit}`);
    },
    function* (large) {
      return yield* rows<ValuedResponseRow>(sql`
        SELECT ${responseColumns} FROM ${responseTables}
        WHERE r.execution = ${found.key} AND r.seq IN ${integersOf(large.map(({ seq }) => seq))} ${order}`);
    },
  );
  return isUp ? slice : { ...slice, rows: slice.rows.toReversed() };
}
