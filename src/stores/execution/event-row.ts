import { corruptRow } from "../../model/corrupt-row.ts";
import type { DelayId } from "../../model/ids/delay-id.ts";
import type { Encoded } from "../../model/values/encoded.ts";
import { payloadField } from "../../model/execution/event-payload.ts";
import type {
  DelayOutcome,
  ExecutionEvent,
  ExecutionResponse,
  LoggedEvent,
  LoggedResponse,
  ResultKind,
} from "../../model/execution/event.ts";
import { isOutcomeOfStep } from "../../model/execution/fork-point.ts";
import type { ExecutionId } from "../../model/ids/execution-id.ts";
import { isHistoryKind } from "../../model/execution/history-event.ts";
import type { Ran } from "../../model/execution/ran.ts";
import type { JoinSetId } from "../../model/ids/join-set-id.ts";
import { row, run, type Tx } from "../../sql/operation.ts";
import { sql, type Statement } from "../../sql/statement.ts";

/**
 * Events and responses as rows. The parts of an event that people and decisions read are in `body`.
 * The user's value is in `payload`, which only its codec can read. `responses` is the number of
 * responses before the event, so that both can be read as one story. With `inbox` and `ordinal`,
 * the n-th question to a join set or a signal finds its n-th response without counting. The result
 * of a child is not copied into a response: it is joined from the child's log.
 */

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

/**
 * The size of the user's parts of an event. The columns are bare, since a database then need not
 * read them.
 */
export const eventBytes: Statement = sql`octet_length(body) + COALESCE(octet_length(payload), 0)`;

/** The row without its body and value if they are large. */
export interface SizedEventRow extends Omit<EventRow, "body"> {
  readonly body: string | null;
  readonly bytes: number;
}

export function sizedEventColumns(smallMax: number): Statement {
  return sql`version, at, responses, kind, call, seen, ${eventBytes} AS bytes,
    CASE WHEN ${eventBytes} <= ${smallMax} THEN body END AS body,
    CASE WHEN ${eventBytes} <= ${smallMax} THEN payload END AS payload`;
}

/** The columns that depend only on the event. */
export interface EventColumns {
  readonly kind: string;
  readonly call: number;
  readonly seen: number;
  readonly body: string;
  readonly payload: Encoded | null;
}

/**
 * The body is what people and decisions read. The user's value is separate, since only its codec
 * can read it.
 */
export function eventColumnsOf(event: ExecutionEvent): EventColumns {
  const { kind } = event;
  if (kind === "stepFinished" || kind === "transactionFinished") return outcomeColumnsOf(event);
  const field = payloadField(kind);
  let payload: Encoded | null = null;
  let call = 0;
  let seen = 0;
  const fields: Record<string, unknown> = {};
  // Copied one by one: an object from which a property was deleted is slow to serialize.
  for (const name of Object.keys(event)) {
    const value = (event as unknown as Readonly<Record<string, unknown>>)[name];
    if (name === field) payload = (value as Encoded | undefined) ?? null;
    else if (name === "call") call = (value as number | undefined) ?? 0;
    else if (name === "seen") seen = (value as number | undefined) ?? 0;
    else if (name === "ran") fields["ran"] = toldRan(value as Ran | undefined);
    else if (name !== "kind") fields[name] = value;
  }
  return { kind, call, seen, body: JSON.stringify(fields), payload };
}

type StepOutcome = Extract<
  ExecutionEvent,
  { readonly kind: "stepFinished" | "transactionFinished" }
>;

/** The usual outcome of a step or transaction, which its body leaves out. */
const usualOutcome = { inputHash: null, outcome: "completed" } as const;

/** The columns of the most frequent events, in a third of the time of the loop above. */
function outcomeColumnsOf(event: StepOutcome): EventColumns {
  const { kind, name, inputHash, outcome, value, call, seen } = event;
  const ran = toldRan(event.ran);
  const isUsual = inputHash === null && outcome === "completed";
  return {
    kind,
    call: call ?? 0,
    seen: seen ?? 0,
    body: isUsual ? usualBody(name, ran) : JSON.stringify({ name, inputHash, outcome, ran }),
    payload: value ?? null,
  };
}

/** Bodies by step name: the same names recur. */
const usualBodies = new Map<string, string>();
const usualBodiesMax = 1_000;

function usualBody(name: string, ran: Ran | undefined): string {
  let body = usualBodies.get(name);
  if (body === undefined) {
    body = JSON.stringify({ name });
    if (usualBodies.size >= usualBodiesMax) usualBodies.clear();
    usualBodies.set(name, body);
  }
  return ran === undefined ? body : `${body.slice(0, -1)},"ran":[${ran[0]},${ran[1]}]}`;
}

/** Undefined, and so not written, for a body that took no time and was recorded at once. */
function toldRan(ran: Ran | undefined): Ran | undefined {
  return ran === undefined || (ran[0] === 0 && ran[1] === 0) ? undefined : ran;
}

/** The outcome in the body of a step's or transaction's outcome event. */
export function outcomeIn(body: string): string {
  const { outcome } = { ...usualOutcome, ...(JSON.parse(body) as object) };
  return outcome;
}

/** The place of an event, and its place among the questions to an inbox, if any. */
export interface EventPlace {
  readonly execution: number;
  readonly version: number;
  readonly at: number;
  readonly responses: number;
  readonly inbox?: string | undefined;
  readonly ordinal?: number | undefined;
}

export function* insertEvent(place: EventPlace, event: ExecutionEvent): Tx<void> {
  const { kind, call, seen, body, payload } = eventColumnsOf(event);
  yield* run(sql`
    INSERT INTO holdfast_execution_event
      (execution, version, at, responses, kind, call, seen, inbox, ordinal, body, payload)
    VALUES (${place.execution}, ${place.version}, ${place.at}, ${place.responses}, ${kind}, ${call}, ${seen},
      ${place.inbox ?? null}, ${place.ordinal ?? null}, ${body}, ${payload})`);
}

/** The event of a version, or undefined if it is missing. @throws HoldfastError `CORRUPT_ROW` */
export function* eventAt(execution: number, version: number): Tx<LoggedEvent | undefined> {
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
    ...(isOutcomeOfStep(kind) && usualOutcome),
    ...bodyOf(found),
    ...(isHistoryKind(kind) && { call: found.call, seen: found.seen }),
    ...(kind === "continued" && { seen: found.seen }),
    ...(field !== undefined && { [field]: payload ?? undefined }),
  };
  return { version, at, event: event as unknown as ExecutionEvent };
}

/** @throws HoldfastError `CORRUPT_ROW` */
export function bodyOf(found: Pick<EventRow, "version" | "kind" | "body">): object {
  try {
    const body: unknown = JSON.parse(found.body);
    if (typeof body === "object" && body !== null) return body;
  } catch {
    // Reported below, without the text: it may hold private data.
  }
  throw corruptRow(
    "holdfast_execution_event",
    found.version,
    `of kind "${found.kind}" has a body that is not a JSON object`,
  );
}

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

const responseFields: Statement = sql`r.seq, r.at, r.kind, r.inbox, r.source, r.outcome, r.finished_version`;

/** A row with its value. The value of a child is the result in the child's log. */
export interface ValuedResponseRow extends ResponseRow {
  readonly value_hash: string | null;
  /** The body of the event that holds the result of a child, with its hash. */
  readonly result_body: string | null;
}

const hashFields: Statement = sql`r.value_hash, e.body AS result_body`;

export const responseColumns: Statement = sql`
  ${responseFields}, ${hashFields}, COALESCE(r.payload, e.payload) AS payload`;

/** The row without its value if that is large. */
export interface SizedResponseRow extends ValuedResponseRow {
  readonly bytes: number;
}

/** The size of the value. The columns are bare, since a database then need not read them. */
export const responseBytes: Statement = sql`COALESCE(octet_length(r.payload), octet_length(e.payload), 0)`;

export function sizedResponseColumns(smallMax: number): Statement {
  return sql`${responseFields}, ${hashFields}, ${responseBytes} AS bytes,
    CASE WHEN ${responseBytes} <= ${smallMax} THEN COALESCE(r.payload, e.payload) END AS payload`;
}

export const responseTables: Statement = sql`
  holdfast_execution_response r
    LEFT JOIN holdfast_execution_event e ON e.execution = r.child AND e.version = r.finished_version`;

export function responseOf(found: ResponseRow): LoggedResponse {
  return { seq: found.seq, at: found.at, response: responseBody(found) };
}

/** A response, and the hash stored with its value; null when it has no value. */
export interface StoredResponse extends LoggedResponse {
  readonly hash: string | null;
}

export function storedResponseOf(found: ValuedResponseRow): StoredResponse {
  const { payload, value_hash: hash, result_body: body } = found;
  return {
    ...responseOf(found),
    hash: payload === null ? null : (hash ?? resultHashIn(body)),
  };
}

/**
 * The hash of a result in the body of the event that holds it. Empty, which is not a valid hash, if
 * the body has none.
 */
function resultHashIn(body: string | null): string {
  return endIn(body).resultHash;
}

/** The hash, and the number of messages that were not received, in the body of an end. */
export function endIn(body: string | null): {
  readonly resultHash: string;
  readonly unread: number | undefined;
} {
  try {
    const { resultHash, unread } = Object(JSON.parse(body ?? "")) as Readonly<
      Record<string, unknown>
    >;
    if (typeof resultHash === "string")
      return { resultHash, unread: typeof unread === "number" ? unread : undefined };
  } catch {
    // An unreadable body has no hash.
  }
  return { resultHash: "", unread: undefined };
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
