import type { ExecutionEvent } from "../../model/execution-event.ts";
import { run } from "../../sql/operation.ts";
import type { Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { eventColumnsOf } from "./event-row.ts";
import type { EventPlace } from "./event-row.ts";

/** An event with its place; a set form has none that asks an inbox. */
export interface PlacedEvent {
  readonly place: Omit<EventPlace, "inbox" | "ordinal">;
  readonly event: ExecutionEvent;
}

/** Inserts events of any number of executions with one statement, in the order given. */
export function* insertEventsOnPostgres(
  placed: readonly PlacedEvent[],
): Tx<void> {
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
