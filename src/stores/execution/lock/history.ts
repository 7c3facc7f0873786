import type { DelayId } from "../../../model/delay-id.ts";
import type { Encoded } from "../../../model/encoded.ts";
import type {
  DelayOutcome,
  ExecutionResponse,
  LoggedEvent,
  LoggedResponse,
  ResultKind,
} from "../../../model/execution-event.ts";
import type { ExecutionId } from "../../../model/execution-id.ts";
import { isHistoryKind } from "../../../model/history-event.ts";
import type { JoinSetId } from "../../../model/join-set-id.ts";
import { rows } from "../../../sql/operation.ts";
import type { Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import type { Statement } from "../../../sql/statement.ts";
import { eventColumns, eventOf } from "../event-row.ts";
import type { EventRow } from "../event-row.ts";
import { ReadBudget, readWithin } from "../../read-budget.ts";

/** Some items in order, and whether there are more after them. */
export interface Page<T> {
  readonly items: readonly T[];
  readonly hasMore: boolean;
}

/** So many rows fit into the few milliseconds a transaction may take. */
const pageRowsMax = 200;

/** Text that one call reads of histories and responses; there is always one page more. */
export const pageCharactersMax: number = 1024 * 1024;

/** History events in order, and how far the log was looked through for them. */
export interface HistoryPage extends Page<LoggedEvent> {
  /** Read on after this version. */
  readonly upTo: number;
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
    const from = upTo;
    const wanted = pageRowsMax + 1 - items.length;
    const { rows: found, isAll } = yield* readWithin(
      budget,
      wanted,
      function* (last: EventRow | undefined, count) {
        return yield* rows<EventRow>(sql`
          SELECT ${eventColumns} FROM holdfast_execution_event
          WHERE execution = ${execution} AND version > ${last?.version ?? from} ORDER BY version LIMIT ${count}`);
      },
      ({ body, payload }) => body.length + (payload?.length ?? 0),
    );
    for (const event of found) {
      if (isHistoryKind(event.kind)) {
        if (items.length === pageRowsMax) return { items, hasMore: true, upTo };
        items.push(eventOf(event));
      }
      upTo = event.version;
    }
    if (isAll || upTo >= lastVersion) return { items, hasMore: false, upTo };
    if (budget.isSpent) return { items, hasMore: true, upTo };
  }
}

interface ResponseRow {
  readonly seq: number;
  readonly at: number;
  readonly kind: "child" | "delay" | "signal";
  readonly inbox: string;
  readonly source: string;
  readonly outcome: string;
  readonly finished_version: number | null;
  readonly payload: Encoded | null;
}

/** Responses with the results of children, which are in the children's logs. */
export const responseRows: Statement = sql`
  SELECT r.seq, r.at, r.kind, r.inbox, r.source, r.outcome, r.finished_version,
    COALESCE(r.payload, e.payload) AS payload
  FROM holdfast_execution_response r
    LEFT JOIN holdfast_execution_event e ON e.execution = r.child AND e.version = r.finished_version`;

export function* responsePage(
  execution: number,
  afterSeq: number,
  budget: ReadBudget = new ReadBudget(pageCharactersMax),
): Tx<Page<LoggedResponse>> {
  const { rows: found, isAll } = yield* readWithin(
    budget,
    pageRowsMax + 1,
    function* (last: ResponseRow | undefined, count) {
      return yield* rows<ResponseRow>(sql`
        ${responseRows} WHERE r.execution = ${execution} AND r.seq > ${last?.seq ?? afterSeq}
        ORDER BY r.seq LIMIT ${count}`);
    },
    ({ payload }) => payload?.length ?? 0,
  );
  return {
    items: found.slice(0, pageRowsMax).map(responseOf),
    hasMore: !isAll || found.length > pageRowsMax,
  };
}

export function responseOf(found: ResponseRow): LoggedResponse {
  return { seq: found.seq, at: found.at, response: responseBody(found) };
}

function responseBody(found: ResponseRow): ExecutionResponse {
  switch (found.kind) {
    case "child":
      return {
        kind: "child",
        joinSet: found.inbox as JoinSetId,
        child: found.source as ExecutionId,
        finishedVersion: found.finished_version ?? 0,
        resultKind: found.outcome as ResultKind,
        result: found.payload as Encoded,
      };
    case "delay":
      return {
        kind: "delay",
        joinSet: found.inbox as JoinSetId,
        delay: found.source as DelayId,
        outcome: found.outcome as DelayOutcome,
      };
    default:
      return {
        kind: "signal",
        signal: found.inbox.slice(2),
        signalKey: found.source.slice(found.inbox.length + 1),
        value: found.payload as Encoded,
      };
  }
}
