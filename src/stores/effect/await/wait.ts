import { isOverdue } from "../../../model/await-event.ts";
import type { Clock } from "../../../model/clock.ts";
import { optionsOf } from "../../../model/shape.ts";
import type { Database, WaitOptions } from "../../../sql/database.ts";
import { waitUntil } from "../../wait.ts";
import { givenWait, waitNames } from "../../given.ts";
import { awaitEventNotFound, awaitEventRevoked, awaitTitle } from "./errors.ts";
import type { AwaitPlace, AwaitRecord } from "./event-row.ts";
import { readAwaitEvent } from "./read.ts";
import { endAwaitEvent } from "./settle.ts";
import { awaitEventEnded } from "./topics.ts";

interface Around {
  readonly database: Database;
  readonly clock: Clock;
}

/**
 * An await-event as it stands now. One whose time is over is recorded as such
 * before its caller learns of it: else a clock that is set back would let
 * somebody answer what was seen to have timed out.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED` or `CORRUPT_ROW`.
 */
export async function currentEvent(
  { database, clock }: Around,
  place: AwaitPlace,
  options?: WaitOptions,
): Promise<AwaitRecord | undefined> {
  const found = await database.read(readAwaitEvent, place, options);
  if (found === undefined || !isOverdue(found, clock.now())) return found;
  const now = (): number => clock.now();
  const input = { ...place, end: "timedOut", now } as const;
  const { event } = await database.write(endAwaitEvent, input, options);
  return event;
}

/**
 * Resolves with an await-event once it has ended, by whomever: answered or
 * cancelled in this process or another, or timed out at its instant.
 *
 * @throws HoldfastError `AWAIT_EVENT_NOT_FOUND`, `AWAIT_EVENT_REVOKED`,
 *   `SESSION_NOT_FOUND`, `SESSION_DELETED`, and those of `waitUntil`.
 */
export async function waitForEvent(
  around: Around,
  place: AwaitPlace,
  options?: WaitOptions,
): Promise<AwaitRecord> {
  const session = place.scope.session?.id;
  // Found by the first look. Should the session be created again, its own is another one.
  let id: string | undefined;
  return waitUntil<AwaitRecord>(
    around.database,
    {
      what: awaitTitle(place),
      clock: around.clock,
      isRelevant: ({ operation, key }) =>
        (operation === awaitEventEnded && (id ?? key) === key) ||
        (operation === "deleteSession" && key === session),
      async look() {
        const event = await currentEvent(around, place);
        if (event === undefined || (id ?? event.id) !== event.id)
          throw awaitEventNotFound(place);
        id = event.id;
        if (event.state === "revoked") throw awaitEventRevoked(place);
        return event.state === "open"
          ? { isThere: false, again: event.dueAt ?? undefined }
          : { isThere: true, value: event };
      },
    },
    givenWait(optionsOf(options, waitNames)),
  );
}
