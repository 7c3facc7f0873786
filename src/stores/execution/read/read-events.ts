import type {
  ExecutionEvent,
  LoggedEvent,
} from "../../../model/execution-event.ts";
import { eventNotFound } from "../../../model/execution-errors.ts";
import type { ExecutionId } from "../../../model/execution-id.ts";
import { checkedCount, checkedFilterText } from "../../../model/shape.ts";
import { textsOf } from "../../../sql/dialect.ts";
import { rows, plainOperation } from "../../../sql/operation.ts";
import type { Operation, Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import type { Statement } from "../../../sql/statement.ts";
import { sift } from "../../damage.ts";
import type { Sifted } from "../../damage.ts";
import { eventAt, eventColumns, eventOf } from "../event-row.ts";
import type { EventRow } from "../event-row.ts";
import { checkedLimit, scanRowsMax } from "./page-limit.ts";
import { findStanding, missing, standing } from "./read.ts";

export interface ReadEvent {
  readonly id: ExecutionId;
  readonly version: number;
}

/**
 * One event. @throws HoldfastError `EXECUTION_NOT_FOUND`, with
 *   `details.missing` "event" when the execution exists; `CORRUPT_ROW`.
 */
export const readEvent: Operation<ReadEvent, LoggedEvent> = plainOperation(
  "readEvent",
  {
    key: (input: ReadEvent) => input.id,
    *one({ id, version }) {
      checkedCount("version", version);
      const { key, version: last } = yield* standing(id);
      if (version > last) throw eventNotFound(id, version, last);
      return (yield* eventAt(key, version)) ?? missing(id, version);
    },
  },
);

/** The newest event. @throws HoldfastError `EXECUTION_NOT_FOUND`, `CORRUPT_ROW`. */
export const readLastEvent: Operation<ExecutionId, LoggedEvent> =
  plainOperation("readLastEvent", {
    key: (id: ExecutionId) => id,
    *one(id) {
      const { key, version } = yield* standing(id);
      return (yield* eventAt(key, version)) ?? missing(id, version);
    },
  });

export interface ListEvents {
  readonly id: ExecutionId;
  /** The first version wanted: 0 unless told; newest first: the last one. */
  readonly from?: number | undefined;
  readonly limit: number;
  /** Goes down from `from` instead of up. */
  readonly newestFirst?: boolean | undefined;
  /** Only these. Few of them among many others make short pages. */
  readonly kinds?: readonly ExecutionEvent["kind"][] | undefined;
  /** Tells for each event the backtrace whose range holds it; the innermost when several do. */
  readonly backtraces?: boolean | undefined;
}

export interface ListedEvent extends LoggedEvent {
  /** The hash of its backtrace, when asked for and known. */
  readonly backtrace?: string;
}

export interface EventPage extends Sifted<ListedEvent> {
  /** The `from` of the next page; undefined when there is none. A page may be short, even empty, and have a next one. */
  readonly next: number | undefined;
  /** The newest version there is; undefined when there is no such execution. */
  readonly lastVersion: number | undefined;
}

/**
 * The events of `limit` versions from `from` on; with `kinds` as many of those
 * kinds, among at most 2,000 versions. Of an unknown execution there are none.
 *
 * @throws HoldfastError `OPTION_INVALID`
 */
export const listEvents: Operation<ListEvents, EventPage> = plainOperation(
  "listEvents",
  {
    key: (input: ListEvents) => input.id,
    *one(input) {
      const limit = checkedLimit(input.limit);
      if (input.from !== undefined) checkedCount("from", input.from);
      for (const kind of input.kinds ?? []) checkedFilterText("kinds", kind);
      const found = yield* findStanding(input.id);
      if (found === undefined)
        return {
          items: [],
          damaged: [],
          next: undefined,
          lastVersion: undefined,
        };
      const { key, version: lastVersion } = found;
      const range = rangeOf(input, limit, lastVersion);
      const page = yield* eventRows(key, range, limit, input);
      const reached = page.length === limit ? page.at(-1)?.version : undefined;
      return {
        ...sift(
          "holdfast_execution_event",
          page,
          ({ version }) => `${input.id}#${version}`,
          listedEvent,
        ),
        next: nextFrom(range, reached, lastVersion),
        lastVersion,
      };
    },
  },
);

interface VersionRange {
  readonly isUp: boolean;
  /** Included; may be empty (`low > high`). */
  readonly low: number;
  readonly high: number;
}

/** Versions have no gaps, so a range of them bounds the rows that are looked at. */
function rangeOf(
  { from, newestFirst = false, kinds }: ListEvents,
  limit: number,
  last: number,
): VersionRange {
  const span = kinds === undefined ? limit : scanRowsMax;
  if (newestFirst) {
    const high = Math.min(from ?? last, last);
    return { isUp: false, low: Math.max(0, high - span + 1), high };
  }
  const low = Math.min(from ?? 0, last + 1);
  return { isUp: true, low, high: Math.min(low + span - 1, last) };
}

function nextFrom(
  { isUp, low, high }: VersionRange,
  reached: number | undefined,
  last: number,
): number | undefined {
  const next = isUp ? (reached ?? high) + 1 : (reached ?? low) - 1;
  return next < 0 || next > last ? undefined : next;
}

interface ListedRow extends EventRow {
  readonly backtrace: string | null;
}

function* eventRows(
  execution: number,
  { isUp, low, high }: VersionRange,
  limit: number,
  { kinds, backtraces = false }: ListEvents,
): Tx<readonly ListedRow[]> {
  const only =
    kinds === undefined ? sql`1 = 1` : sql`kind IN ${textsOf(kinds)}`;
  return yield* rows<ListedRow>(sql`
    SELECT ${eventColumns}, ${backtraces ? innermost : none} AS backtrace
    FROM holdfast_execution_event AS e
    WHERE execution = ${execution} AND version >= ${low} AND version <= ${high} AND ${only}
    ORDER BY version ${isUp ? sql`ASC` : sql`DESC`} LIMIT ${limit}`);
}

const none: Statement = sql`NULL`;

// Ranges may overlap, and a join would then list an event once for each.
const innermost: Statement = sql`(
  SELECT b.hash FROM holdfast_execution_backtrace AS b
  WHERE b.execution = e.execution AND b.version_from <= e.version AND b.version_to > e.version
  ORDER BY b.version_from DESC LIMIT 1)`;

function listedEvent(found: ListedRow): ListedEvent {
  const event = eventOf(found);
  const { backtrace } = found;
  return backtrace === null ? event : { ...event, backtrace };
}
