import type {
  LoggedEvent,
  LoggedResponse,
} from "../../../model/execution-event.ts";
import { isHistoryKind } from "../../../model/history-event.ts";
import { integersOf } from "../../../sql/dialect.ts";
import { rows, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { pageBytesMax, rowBytes, rowsWithin } from "../../list.ts";
import {
  eventBytes,
  eventColumns,
  eventOf,
  responseBytes,
  responseColumns,
  responseOf,
  responsePayload,
  responseTables,
  type EventRow,
  type ResponseRow,
} from "../event-row.ts";

/** Some items in order, and whether there are more after them. */
export interface LoadedPage<T> {
  readonly items: readonly T[];
  readonly hasMore: boolean;
}

/** So many rows fit into the few milliseconds a transaction may take. */
const pageRowsMax = 200;

/** Bytes of histories and responses that one call may still read; once they are spent there are no more rows. */
export class ReadBudget {
  #left: number = pageBytesMax;

  get left(): number {
    return this.#left;
  }

  get isSpent(): boolean {
    return this.#left <= 0;
  }

  spend(bytes: number): void {
    this.#left -= bytes;
  }
}

/** History events in order, and how far the log was looked through for them. */
export interface HistoryPage extends LoadedPage<LoggedEvent> {
  /** Read on after this version. */
  readonly upTo: number;
}

interface SizedEvent extends Omit<EventRow, "body"> {
  /** Null when it is to be read apart. */
  readonly body: string | null;
  readonly bytes: number;
}

/**
 * History events after a version; what happened to the lock in between is left
 * out, but costs something too: a run that was only ever locked again ends the
 * page as well. When the budget ended first there may be more.
 */
export function* historyPage(
  execution: number,
  afterVersion: number,
  lastVersion: number,
  budget: ReadBudget,
): Tx<HistoryPage> {
  const items: LoggedEvent[] = [];
  let upTo = afterVersion;
  for (;;) {
    const { found, isAll, isCut } = yield* eventsWithin(
      budget,
      execution,
      upTo,
      pageRowsMax + 1 - items.length,
    );
    for (const event of found) {
      if (isHistoryKind(event.kind)) {
        if (items.length === pageRowsMax) return { items, hasMore: true, upTo };
        items.push(eventOf(event));
      }
      upTo = event.version;
    }
    if (isAll || upTo >= lastVersion) return { items, hasMore: false, upTo };
    if (isCut) return { items, hasMore: true, upTo };
  }
}

function eventsWithin(
  budget: ReadBudget,
  execution: number,
  after: number,
  wanted: number,
): Tx<Read<EventRow>> {
  return readWithin<SizedEvent, EventRow>(
    budget,
    wanted,
    function* (smallMax, count) {
      return yield* rows<SizedEvent>(sql`
        SELECT version, at, responses, kind, call, seen, ${eventBytes} AS bytes,
          CASE WHEN ${eventBytes} <= ${smallMax} THEN body END AS body,
          CASE WHEN ${eventBytes} <= ${smallMax} THEN payload END AS payload
        FROM holdfast_execution_event
        WHERE execution = ${execution} AND version > ${after} ORDER BY version LIMIT ${count}`);
    },
    function* (large) {
      return yield* rows<EventRow>(sql`
        SELECT ${eventColumns} FROM holdfast_execution_event
        WHERE execution = ${execution} AND version IN ${integersOf(large.map(({ version }) => version))} ORDER BY version`);
    },
  );
}

interface SizedResponse extends ResponseRow {
  readonly bytes: number;
}

export function* responsePage(
  execution: number,
  afterSeq: number,
  budget: ReadBudget = new ReadBudget(),
): Tx<LoadedPage<LoggedResponse>> {
  const { found, isAll } = yield* readWithin<SizedResponse, ResponseRow>(
    budget,
    pageRowsMax + 1,
    function* (smallMax, count) {
      return yield* rows<SizedResponse>(sql`
        SELECT ${responseColumns}, ${responseBytes} AS bytes,
          CASE WHEN ${responseBytes} <= ${smallMax} THEN ${responsePayload} END AS payload
        FROM ${responseTables}
        WHERE r.execution = ${execution} AND r.seq > ${afterSeq} ORDER BY r.seq LIMIT ${count}`);
    },
    function* (large) {
      return yield* rows<ResponseRow>(sql`
        SELECT ${responseColumns}, ${responsePayload} AS payload FROM ${responseTables}
        WHERE r.execution = ${execution} AND r.seq IN ${integersOf(large.map(({ seq }) => seq))} ORDER BY r.seq`);
    },
  );
  return {
    items: found.slice(0, pageRowsMax).map(responseOf),
    hasMore: !isAll || found.length > pageRowsMax,
  };
}

interface Read<R> {
  readonly found: readonly R[];
  /** True when there are no others. */
  readonly isAll: boolean;
  /** True when the next one does not fit. */
  readonly isCut: boolean;
}

/**
 * Rows up to so many, in order, as long as they fit into the budget: one at
 * least, unless it is spent. Most values are small, and come with the sizes of
 * all in one statement: even if every row had one as large as that, they would
 * fit. Larger ones follow by a statement of their own, once it is known which
 * of them fit.
 */
function* readWithin<S extends { readonly bytes: number }, R>(
  budget: ReadBudget,
  wanted: number,
  sizedRows: (smallMax: number, count: number) => Tx<readonly S[]>,
  largeRows: (large: readonly S[]) => Tx<readonly R[]>,
): Tx<Read<R>> {
  if (budget.isSpent) return { found: [], isAll: false, isCut: true };
  const smallMax = Math.floor(budget.left / wanted);
  const sized = yield* sizedRows(smallMax, wanted);
  const fitting = rowsWithin(
    sized.map(({ bytes }) => bytes),
    budget.left,
  );
  const kept = sized.slice(0, fitting);
  const large = kept.filter(({ bytes }) => bytes > smallMax);
  const inOrder = large.length === 0 ? [] : yield* largeRows(large);
  let next = 0;
  const found = kept.map((row) => {
    budget.spend(rowBytes + row.bytes);
    if (row.bytes <= smallMax) return row as unknown as R;
    next += 1;
    return inOrder[next - 1] as R;
  });
  const isCut = fitting < sized.length;
  return { found, isAll: !isCut && sized.length < wanted, isCut };
}
