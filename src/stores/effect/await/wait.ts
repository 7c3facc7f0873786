import { isOverdue, type AwaitOutcome } from "../../../model/effect/await-event.ts";
import type { WaitOptions } from "../../../sql/database.ts";
import { onlyWait } from "../../method.ts";
import { waitUntil } from "../../wait.ts";
import { checkedPlace, deletionOf, type EffectScope } from "../scope.ts";
import { readOutcome, type AwaitContext } from "./context.ts";
import {
  awaitEventEnded,
  awaitEventNotFound,
  awaitEventRevoked,
  awaitTitle,
  type AwaitPlace,
  type AwaitRecord,
} from "./event-row.ts";
import { eventView, readAwaitEvent, type AwaitEvent } from "./read.ts";
import { endAwaitEvent } from "./settle.ts";

/** See `AwaitEvents.get`. */
export async function getEvent(
  context: AwaitContext,
  scope: EffectScope,
  key: string,
  wait?: WaitOptions,
): Promise<AwaitEvent | undefined> {
  const place = checkedPlace("await-event", scope, key);
  const event = await currentEvent(context, place, onlyWait(wait));
  return event && eventView(context, event);
}

/**
 * Reads the current state of an await-event. An overdue event is recorded as timed out before its
 * caller sees it. Otherwise a clock that is set back would accept an answer to an event that was
 * already seen as timed out.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED` or `CORRUPT_ROW`.
 */
async function currentEvent(
  context: AwaitContext,
  place: AwaitPlace,
  wait?: WaitOptions,
): Promise<AwaitRecord | undefined> {
  const { database, clock } = context;
  const found = await database.read(readAwaitEvent(context), place, wait);
  if (found === undefined || !isOverdue(found, clock.now())) return found;
  const input = { ...place, end: "timedOut" } as const;
  const ended = await database.write(endAwaitEvent(context), input, wait);
  return ended.event;
}

/** See `AwaitEvents.wait`. */
export async function waitForOutcome(
  context: AwaitContext,
  scope: EffectScope,
  key: string,
  wait?: WaitOptions,
): Promise<AwaitOutcome<unknown, Error>> {
  const place = checkedPlace("await-event", scope, key);
  const event = await waitForEvent(context, place, onlyWait(wait));
  const outcome = readOutcome(context, event);
  if (outcome !== undefined) return outcome;
  throw awaitEventRevoked(place);
}

/**
 * Resolves with an await-event once it has ended: answered or cancelled in any process, or timed
 * out at its due time.
 *
 * @throws HoldfastError `AWAIT_EVENT_NOT_FOUND`, `AWAIT_EVENT_REVOKED`,
 *   `SESSION_NOT_FOUND`, `SESSION_DELETED`, and those of `waitUntil`.
 */
async function waitForEvent(
  context: AwaitContext,
  place: AwaitPlace,
  wait: WaitOptions,
): Promise<AwaitRecord> {
  const deleted = deletionOf(place.scope.session);
  // Set by the first look. If the session is created again, its event is a different one.
  let id: string | undefined;
  return waitUntil<AwaitRecord>(
    context.database,
    {
      what: awaitTitle(place),
      clock: context.clock,
      interests: [{ operation: awaitEventEnded }, ...deleted],
      async look() {
        const event = await currentEvent(context, place);
        if (event === undefined || (id ?? event.id) !== event.id) throw awaitEventNotFound(place);
        id = event.id;
        if (event.state === "revoked") throw awaitEventRevoked(place);
        if (event.state !== "open") return { isThere: true, value: event };
        return {
          isThere: false,
          again: event.dueAt ?? undefined,
          interests: [{ operation: awaitEventEnded, key: id }, ...deleted],
        };
      },
    },
    wait,
  );
}
