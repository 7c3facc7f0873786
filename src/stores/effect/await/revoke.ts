import { instantOf } from "../../../model/clock.ts";
import type { Now } from "../../../model/clock.ts";
import { lockRow } from "../../../sql/dialect.ts";
import { rows, plainOperation } from "../../../sql/operation.ts";
import type { Operation } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { placeInGroups } from "../groups/place.ts";
import { undamaged } from "../../damage.ts";
import { sharedKeyOf } from "./session-key.ts";
import type { SessionRef } from "../../session/session-row.ts";
import { eventColumns, recordOf } from "./event-row.ts";
import type { AwaitScope, EventRow } from "./event-row.ts";
import { settledAlone } from "./settle.ts";

export interface RevokeSlice {
  readonly session: SessionRef | undefined;
  readonly scope: AwaitScope | undefined;
  readonly after: number;
  readonly rowsMax: number;
  readonly now: Now;
}

export interface RevokedSlice {
  readonly revoked: number;
  /** Where to go on, when there may be more. */
  readonly next: number | undefined;
}

/**
 * Revokes a slice of the await-events of a session, or of one scope in it.
 * One that cannot be read is passed over: nobody can answer it either.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND` or `SESSION_DELETED`.
 */
export const revokeAwaitSlice: Operation<RevokeSlice, RevokedSlice> =
  plainOperation("revokeAwaitSlice", {
    key: (input: RevokeSlice) => input.session?.id ?? "",
    *one({ scope, after, rowsMax, now: tell, ...given }) {
      const session = yield* sharedKeyOf(given);
      const own = sql`session = ${session} AND key > ${after} AND revoked_at IS NULL`;
      const wanted =
        scope === undefined
          ? own
          : sql`${own} AND scope_kind = ${scope.kind} AND scope = ${scope.id}`;
      const found = yield* rows<EventRow>(sql`
        SELECT ${eventColumns} FROM holdfast_await_event WHERE ${wanted} ORDER BY key LIMIT ${rowsMax} ${lockRow}`);
      const events = found.flatMap(
        (stored) => undamaged(() => recordOf(stored)) ?? [],
      );
      const now = instantOf(tell);
      for (const event of events)
        yield* settledAlone(event, { kind: "revoked" }, now);
      yield* placeInGroups(events);
      const next = found.length < rowsMax ? undefined : found.at(-1)?.key;
      return { revoked: events.length, next };
    },
  });
