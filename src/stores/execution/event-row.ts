import type { Encoded } from "../../model/encoded.ts";
import { corruptRow } from "../../model/corrupt-row.ts";
import { payloadField } from "../../model/event-payload.ts";
import type {
  ExecutionEvent,
  LoggedEvent,
} from "../../model/execution-event.ts";
import { isHistoryKind } from "../../model/history-event.ts";
import { row, run } from "../../sql/operation.ts";
import type { Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import type { Statement } from "../../sql/statement.ts";

/** A row of `holdfast_execution_event`. */
export interface EventRow {
  readonly version: number;
  readonly at: number;
  readonly responses: number;
  readonly kind: string;
  readonly call: number;
  readonly seen: number;
  readonly body: string;
  readonly payload: Encoded | null;
}

export const eventColumns: Statement = sql`version, at, responses, kind, call, seen, body, payload`;

/** How large that of an event is which users fill. Of bare columns, since a database then need not read them. */
export const eventBytes: Statement = sql`octet_length(body) + COALESCE(octet_length(payload), 0)`;

/** The columns that an event fills by itself. */
export interface EventColumns {
  readonly kind: string;
  readonly call: number;
  readonly seen: number;
  readonly body: string;
  readonly payload: Encoded | null;
}

/** The body is what people and decisions read; the user's value is apart, since only its codec can read it. */
export function eventColumnsOf(event: ExecutionEvent): EventColumns {
  const { kind } = event;
  const field = payloadField(kind);
  let payload: Encoded | null = null;
  let call = 0;
  let seen = 0;
  const fields: Record<string, unknown> = {};
  // Copied one by one: an object that `delete` was used on is slow to write out.
  for (const name of Object.keys(event)) {
    const value = (event as unknown as Readonly<Record<string, unknown>>)[name];
    if (name === field) payload = (value as Encoded | undefined) ?? null;
    else if (name === "call") call = (value as number | undefined) ?? 0;
    else if (name === "seen") seen = (value as number | undefined) ?? 0;
    else if (name !== "kind") fields[name] = value;
  }
  return { kind, call, seen, body: JSON.stringify(fields), payload };
}

/** Where an event goes, and the place among the questions to an inbox that it takes, if any. */
export interface EventPlace {
  readonly execution: number;
  readonly version: number;
  readonly at: number;
  readonly responses: number;
  readonly inbox?: string | undefined;
  readonly ordinal?: number | undefined;
}

export function* insertEvent(
  place: EventPlace,
  event: ExecutionEvent,
): Tx<void> {
  const { kind, call, seen, body, payload } = eventColumnsOf(event);
  yield* run(sql`
    INSERT INTO holdfast_execution_event
      (execution, version, at, responses, kind, call, seen, inbox, ordinal, body, payload)
    VALUES (${place.execution}, ${place.version}, ${place.at}, ${place.responses}, ${kind}, ${call}, ${seen},
      ${place.inbox ?? null}, ${place.ordinal ?? null}, ${body}, ${payload})`);
}

/** The event of a version, or undefined when it is not there. @throws HoldfastError `CORRUPT_ROW` */
export function* eventAt(
  execution: number,
  version: number,
): Tx<LoggedEvent | undefined> {
  const found = yield* row<EventRow>(sql`
    SELECT ${eventColumns} FROM holdfast_execution_event
    WHERE execution = ${execution} AND version = ${version}`);
  return found === undefined ? undefined : eventOf(found);
}

/** @throws HoldfastError `CORRUPT_ROW` when the body cannot be read. */
export function eventOf(found: EventRow): LoggedEvent {
  const { version, at, kind, payload } = found;
  const field = payloadField(kind);
  const event = {
    kind,
    ...parsedBody(found),
    ...(isHistoryKind(kind) && { call: found.call, seen: found.seen }),
    ...(field !== undefined && { [field]: payload ?? undefined }),
  };
  return { version, at, event: event as unknown as ExecutionEvent };
}

function parsedBody(found: EventRow): object {
  try {
    const body: unknown = JSON.parse(found.body);
    if (typeof body === "object" && body !== null) return body;
  } catch {
    // Said below, without the text: it may hold what is nobody's business.
  }
  throw corruptRow(
    "holdfast_execution_event",
    found.version,
    `of kind "${found.kind}" has a body that is no JSON object`,
  );
}
