import { HoldfastError } from "../../../model/errors.ts";
import type { ExecutionEvent } from "../../../model/execution-event.ts";
import type { ExecutionId } from "../../../model/execution-id.ts";
import { announce, row, run } from "../../../sql/operation.ts";
import type { Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { insertEvent } from "../event-row.ts";
import type { EventPlace } from "../event-row.ts";
import { signalInbox } from "./inbox.ts";
import { timerSet } from "../topics.ts";

/** Inserts an event, with the rows in other tables that it stands for. */
export function* insertWithEffects(
  place: EventPlace & { readonly id: ExecutionId },
  event: ExecutionEvent,
): Tx<void> {
  switch (event.kind) {
    case "delayRequested":
      yield* insertEvent(place, event);
      return yield* insertDelay(place, event);
    case "joinNext":
      return yield* insertEvent({ ...place, inbox: event.joinSet }, event);
    case "signalReceived":
      return yield* insertEvent(
        { ...place, inbox: signalInbox(event.signal), ordinal: place.ordinal },
        event,
      );
    case "continued":
      yield* insertEvent(place, event);
      // They would wake a run that did not ask for them.
      yield* run(sql`
        DELETE FROM holdfast_execution_delay WHERE execution = ${place.execution}`);
      return;
    default:
      return yield* insertEvent(place, event);
  }
}

/** A delay's id is used once: neither while it is open nor after it was answered. */
function* insertDelay(
  { id, execution }: EventPlace & { readonly id: ExecutionId },
  event: Extract<ExecutionEvent, { readonly kind: "delayRequested" }>,
): Tx<void> {
  const { delay, joinSet, expiresAt } = event;
  const answered = yield* row(sql`
    SELECT seq FROM holdfast_execution_response WHERE execution = ${execution} AND source = ${delay}`);
  const inserted =
    answered === undefined
      ? yield* row<{ readonly key: number }>(sql`
          INSERT INTO holdfast_execution_delay (id, execution, inbox, expires_at, is_paused)
          VALUES (${delay}, ${execution}, ${joinSet}, ${expiresAt}, 0)
          ON CONFLICT (id) DO NOTHING RETURNING key`)
      : undefined;
  if (inserted === undefined)
    throw new HoldfastError(
      "DELAY_EXISTS",
      `Execution ${id} has requested delay ${delay} before; nothing was written. Number the delays of a join set from 1 up.`,
      { id, delay },
    );
  yield* announce(timerSet, id);
}
