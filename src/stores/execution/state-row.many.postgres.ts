import { run } from "../../sql/operation.ts";
import type { Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { stateValuesOf, type ExecutionRecord } from "./state-row.ts";

/** Writes the states of executions that the transaction has locked. */
export function* writeStatesOnPostgres(
  records: readonly Pick<ExecutionRecord, "key" | "state">[],
): Tx<void> {
  const to = records.map(({ state }) => stateValuesOf(state));
  yield* run(sql`
    UPDATE holdfast_execution e SET
      version = t.version, state = t.state, lifecycle = t.lifecycle, due_at = t.due_at,
      lease_until = t.lease_until, finished_at = t.finished_at, result_kind = t.result_kind,
      failures = t.failures, deaths = t.deaths, lock_version = t.lock_version,
      executor = t.executor, run = t.run, owner = t.owner, max_retries = t.max_retries,
      backoff_ms = t.backoff_ms, backoff_max_ms = t.backoff_max_ms, inbox = t.inbox,
      ordinal = t.ordinal, is_closing = t.is_closing, seen = t.seen, responses = t.responses,
      history_from = t.history_from, responses_from = t.responses_from,
      continuations = t.continuations, code_version = t.code_version
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
      ${to.map((one) => one.lock_version)}::bigint[],
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
      ${to.map((one) => one.responses)}::bigint[],
      ${to.map((one) => one.history_from)}::bigint[],
      ${to.map((one) => one.responses_from)}::bigint[],
      ${to.map((one) => one.continuations)}::bigint[],
      ${to.map((one) => one.code_version)}::text[]
    ) AS t (key, version, state, lifecycle, due_at, lease_until, finished_at, result_kind, failures, deaths,
      lock_version, executor, run, owner, max_retries, backoff_ms, backoff_max_ms, inbox, ordinal, is_closing,
      seen, responses, history_from, responses_from, continuations, code_version)
    WHERE e.key = t.key`);
}
