import type { ExecutionEvent, LoggedEvent } from "../../../model/execution/event.ts";
import { parseExecutionId, type ExecutionId } from "../../../model/ids/execution-id.ts";
import { checkedCount, checkedFilterText, givenFlag, givenList } from "../../../model/shape.ts";
import { integersOf, textsOf } from "../../../sql/dialect.ts";
import { rows, type Tx } from "../../../sql/operation.ts";
import { sql, type Statement } from "../../../sql/statement.ts";
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
import { deliveredEvent } from "../delivered.ts";
import {
  eventColumns,
  eventOf,
  sizedEventColumns,
  type EventRow,
  type SizedEventRow,
} from "../event-row.ts";
import { standing } from "../state-row.ts";
import { scanRowsMax } from "./list-path.ts";
import { numberedSlice, rangeFrom, startPast } from "./numbered.ts";

export interface ListEventsOptions extends PageOptions {
  /** The first version of the list: defaults to 0, with newest first to the last one. */
  readonly from?: number;
  /** Lists downwards from `from` instead of upwards. */
  readonly newestFirst?: boolean;
  /** Only these kinds. If few events match, pages are short. */
  readonly kinds?: readonly ExecutionEvent["kind"][];
  /** Adds to each event the backtrace whose range contains it, the innermost if several do. */
  readonly backtraces?: boolean;
}

export interface ListedEvent extends LoggedEvent<unknown> {
  /** The hash of its backtrace, if requested and known. */
  readonly backtrace?: string;
}

interface EventFilter {
  readonly id: ExecutionId;
  readonly from: number | undefined;
  readonly newestFirst: boolean;
  readonly kinds: readonly string[] | undefined;
  readonly backtraces: boolean;
}

interface ListedRow extends EventRow {
  readonly backtrace: string | null;
}

interface SizedRow extends SizedEventRow {
  readonly backtrace: string | null;
}

/**
 * The events of an execution by version. With `kinds` a page reads at most 2,000 versions.
 * @throws HoldfastError `EXECUTION_NOT_FOUND`, `OPTION_INVALID`, `CURSOR_INVALID`
 */
export const eventList: List<
  ExecutionContext,
  [id: string, options?: ListEventsOptions],
  ListedEvent
> = list("listEvents", {
  table: "holdfast_execution_event",
  given(_: ExecutionContext, id: string, options?: ListEventsOptions) {
    const { filter, page } = pageOf(options, ["from", "newestFirst", "kinds", "backtraces"]);
    return { filter: checkedFilter(id, filter), page };
  },
  slice: eventSlice,
  keyOf: ({ version }: ListedRow, { id }) => `${id}#${version}`,
  itemOf(context, found, { id }) {
    const event = deliveredEvent(context, id, eventOf(found));
    const { backtrace } = found;
    return backtrace === null ? event : { ...event, backtrace };
  },
});

function checkedFilter(
  id: string,
  { from, newestFirst, kinds, backtraces }: ListEventsOptions,
): EventFilter {
  return {
    id: parseExecutionId(id),
    from: from === undefined ? undefined : checkedCount("from", from),
    newestFirst: givenFlag("newestFirst", newestFirst) ?? false,
    kinds: kinds && givenList("kinds", kinds).map((kind) => checkedFilterText("kinds", kind)),
    backtraces: givenFlag("backtraces", backtraces) ?? false,
  };
}

function* eventSlice(
  _: ExecutionContext,
  { id, from, newestFirst, kinds, backtraces }: EventFilter,
  { after, limit }: SliceBounds,
): Tx<Slice<ListedRow>> {
  const found = yield* standing(id);
  const versions = { first: 0, last: found.version };
  const isUp = !newestFirst;
  const asked = after ? numberAt(after, 0) + (isUp ? 1 : -1) : from;
  const start =
    found.prunedBefore === 0
      ? asked
      : yield* startPast(
          sql`SELECT version AS n FROM holdfast_execution_event WHERE execution = ${found.key}`,
          sql`version`,
          versions,
          asked,
          isUp,
        );
  const range = rangeFrom(versions, start, isUp, kinds === undefined ? limit : scanRowsMax);
  const only = kinds === undefined ? sql`1 = 1` : sql`kind IN ${textsOf(kinds)}`;
  const backtrace = sql`${backtraces ? innermost : none} AS backtrace FROM holdfast_execution_event AS e`;
  const order = isUp ? sql`ORDER BY version ASC` : sql`ORDER BY version DESC`;
  return yield* numberedSlice<SizedRow, ListedRow>(
    versions,
    range,
    limit,
    ({ version }) => version,
    function* (smallMax) {
      return yield* rows<SizedRow>(sql`
        SELECT ${sizedEventColumns(smallMax)}, ${backtrace}
        WHERE execution = ${found.key} AND version >= ${range.low} AND version <= ${range.high} AND ${only}
        ${order} LIMIT ${limit}`);
    },
    function* (large) {
      return yield* rows<ListedRow>(sql`
        SELECT ${eventColumns}, ${backtrace}
        WHERE execution = ${found.key} AND version IN ${integersOf(large.map(({ version }) => version))} ${order}`);
    },
  );
}

const none: Statement = sql`NULL`;

// Ranges may overlap, and a join would then list an event once for each.
const innermost: Statement = sql`(
  SELECT b.hash FROM holdfast_execution_backtrace AS b
  WHERE b.execution = e.execution AND b.version_from <= e.version AND b.version_to > e.version
  ORDER BY b.version_from DESC LIMIT 1)`;
