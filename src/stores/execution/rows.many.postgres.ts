import type { ExecutionEvent } from "../../model/execution/event.ts";
import { run, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { eventColumnsOf, type EventPlace } from "./event-row.ts";
import { stateValuesOf, type ExecutionRecord } from "./state-row.ts";

/** An event with its place; a set form never asks an inbox. */
export interface PlacedEvent {
  readonly place: Omit<EventPlace, "inbox" | "ordinal">;
  readonly event: ExecutionEvent;
}

/** Inserts events of any number of executions with one statement, in the order given. */
export function* insertEventsOnPostgres(placed: readonly PlacedEvent[]): Tx<void> {
  const places = placed.map(({ place }) => place);
  const columns = placed.map(({ event }) => eventColumnsOf(event));
  yield* run(sql`
    INSERT INTO holdfast_execution_event (execution, version, at, responses, kind, call, seen, body, payload)
    SELECT * FROM unnest(
      ${places.map(({ execution }) => execution)}::bigint[],
      ${places.map(({ version }) => version)}::bigint[],
      ${places.map(({ at }) => at)}::bigint[],
      ${places.map(({ responses }) => responses)}::bigint[],
      ${columns.map(({ kind }) => kind)}::text[],
      ${columns.map(({ call }) => call)}::bigint[],
      ${columns.map(({ seen }) => seen)}::bigint[],
      ${columns.map(({ body }) => body)}::text[],
      ${columns.map(({ payload }) => payload)}::text[]
    )`);
}

/** Writes the states of executions that the transaction has locked. */
export function* writeStatesOnPostgres(
  records: readonly Pick<ExecutionRecord, "key" | "state">[],
): Tx<void> {
  const to = records.map(({ state }) => stateValuesOf(state));
  yield* run(sql`
    UPDATE holdfast_execution e SET
      version = t.version, state = t.state, lifecycle = t.lifecycle, due_at = t.due_at,
      lease_until = t.lease_until, finished_at = t.finished_at, result_kind = t.result_kind,
      failures = t.failures, deaths = t.deaths, alone_deaths = t.alone_deaths,
      lock_version = t.lock_version, is_alone = t.is_alone,
      executor = t.executor, run = t.run, owner = t.owner, max_retries = t.max_retries,
      backoff_ms = t.backoff_ms, backoff_max_ms = t.backoff_max_ms, inbox = t.inbox,
      ordinal = t.ordinal, is_closing = t.is_closing, seen = t.seen, wake_at = t.wake_at, responses = t.responses,
      history_from = t.history_from, responses_from = t.responses_from,
      continuations = t.continuations, code_version = t.code_version, incompatible = t.incompatible
    FROM unnest(
      ${records.map(({ key }) => key)}::bigint[],
      ${to.map((one) => one.version)}::bigint[],
      ${to.map((one) => one.state)}::text[],
      ${to.map((one) => one.lifecycle)}::text[],
      ${to.map((one) => one.due_at)}::bigint[],
      ${to.map((one) => one.lease_until)}::bigint[],
      ${to.map((one) => one.finished_at)}::bigint[],
      ${to.map((one) => one.result_kind)}::text[],
      ${to.map((one) => one.failures)}::bigint[],
      ${to.map((one) => one.deaths)}::bigint[],
      ${to.map((one) => one.alone_deaths)}::bigint[],
      ${to.map((one) => one.lock_version)}::bigint[],
      ${to.map((one) => one.is_alone)}::bigint[],
      ${to.map((one) => one.executor)}::text[],
      ${to.map((one) => one.run)}::text[],
      ${to.map((one) => one.owner)}::text[],
      ${to.map((one) => one.max_retries)}::bigint[],
      ${to.map((one) => one.backoff_ms)}::bigint[],
      ${to.map((one) => one.backoff_max_ms)}::bigint[],
      ${to.map((one) => one.inbox)}::text[],
      ${to.map((one) => one.ordinal)}::bigint[],
      ${to.map((one) => one.is_closing)}::bigint[],
      ${to.map((one) => one.seen)}::bigint[],
      ${to.map((one) => one.wake_at)}::bigint[],
      ${to.map((one) => one.responses)}::bigint[],
      ${to.map((one) => one.history_from)}::bigint[],
      ${to.map((one) => one.responses_from)}::bigint[],
      ${to.map((one) => one.continuations)}::bigint[],
      ${to.map((one) => one.code_version)}::text[],
      ${to.map((one) => one.incompatible)}::text[]
    ) AS t (key, version, state, lifecycle, due_at, lease_until, finished_at, result_kind, failures, deaths,
      alone_deaths, lock_version, is_alone, executor, run, owner, max_retries, backoff_ms, backoff_max_ms, inbox, ordinal, is_closing,
      seen, wake_at, responses, history_from, responses_from, continuations, code_version, incompatible)
    WHERE e.key = t.key`);
}
