import type { DelayId } from "../../model/delay-id.ts";
import type { Encoded } from "../../model/encoded.ts";
import type {
  DelayOutcome,
  ExecutionResponse,
  LoggedResponse,
  ResultKind,
} from "../../model/execution-event.ts";
import type { ExecutionId } from "../../model/execution-id.ts";
import type { JoinSetId } from "../../model/join-set-id.ts";
import { sql, type Statement } from "../../sql/statement.ts";

/** A row of `holdfast_execution_response`, with the result of a child from the child's log. */
export interface ResponseRow {
  readonly seq: number;
  readonly at: number;
  readonly kind: "child" | "delay" | "signal";
  readonly inbox: string;
  readonly source: string;
  readonly outcome: string;
  readonly finished_version: number | null;
  readonly payload: Encoded | null;
}

export const responseColumns: Statement = sql`r.seq, r.at, r.kind, r.inbox, r.source, r.outcome, r.finished_version`;

/** The value of a response, which for a child is the result in the child's log. */
export const responsePayload: Statement = sql`COALESCE(r.payload, e.payload)`;

/** How large that is. Of bare columns, since a database then need not read them. */
export const responseBytes: Statement = sql`COALESCE(octet_length(r.payload), octet_length(e.payload), 0)`;

export const responseTables: Statement = sql`
  holdfast_execution_response r
    LEFT JOIN holdfast_execution_event e ON e.execution = r.child AND e.version = r.finished_version`;

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
