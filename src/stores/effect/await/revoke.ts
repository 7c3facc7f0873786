import { instantOf } from "../../../model/time/clock.ts";
import { lockRow } from "../../../sql/dialect.ts";
import { rows, storeOperation, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { undamaged } from "../../damage.ts";
import { sweep, sweepOptions, type SweepOptions } from "../../removal.ts";
import type { SessionName } from "../../session-name.ts";
import type { SessionRef } from "../../session-row.ts";
import { placeInGroups } from "../groups/place.ts";
import { keptSessionOf, sessionOrNone } from "../scope.ts";
import type { AwaitContext } from "./context.ts";
import { eventColumns, recordOf, type AwaitScope, type EventRow } from "./event-row.ts";
import { inScope, scopeFilter } from "./read.ts";
import { settleAlone } from "./settle.ts";

/** The result of a revocation. */
interface RevokeAwaitEventsReport {
  /** The number of tokens that were revoked. */
  readonly revoked: number;
}

export interface RevokeAwaitEventsOptions extends SweepOptions<RevokeAwaitEventsReport> {
  /** Selects only the events of this scope. */
  readonly scope?: AwaitScope;
}

/** Revokes the await-events of a session, a slice per transaction. @throws HoldfastError `EFFECT_SCOPE_INVALID`, `SESSION_NOT_FOUND`, `SESSION_DELETED`, `ABORTED` */
export async function revokeInSlices(
  context: AwaitContext,
  session: SessionName | null,
  given: RevokeAwaitEventsOptions | undefined,
): Promise<RevokeAwaitEventsReport> {
  const options = sweepOptions(given, ["scope"]);
  const { rowsPerSlice: rowsMax, signal } = options;
  const input = {
    session: sessionOrNone(session),
    scope: scopeFilter(options.scope),
    rowsMax,
  };
  let after = 0;
  return sweep(context, options, async () => {
    const { revoked, next } = await context.database.write(
      revokeAwaitSlice(context),
      { ...input, after },
      { signal },
    );
    after = next ?? after;
    return { report: { revoked }, isDone: next === undefined };
  });
}

interface RevokeSlice {
  readonly session: SessionRef | undefined;
  readonly scope: AwaitScope | undefined;
  readonly after: number;
  readonly rowsMax: number;
}

interface RevokedSlice extends RevokeAwaitEventsReport {
  /** The place to resume from, when there may be more. */
  readonly next: number | undefined;
}

/**
 * Revokes a slice of the await-events of a session, or of one of its scopes. Unreadable rows are
 * skipped, since they cannot be answered either.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND` or `SESSION_DELETED`.
 */
const revokeAwaitSlice = storeOperation("revokeAwaitSlice", {
  key: (input) => input.session?.id ?? "",
  *one(
    { clock }: AwaitContext,
    { scope, after, rowsMax, ...filter }: RevokeSlice,
  ): Tx<RevokedSlice> {
    const session = yield* keptSessionOf(filter);
    const found = yield* rows<EventRow>(sql`
      SELECT ${eventColumns} FROM holdfast_await_event
      WHERE session = ${session} AND key > ${after} AND revoked_at IS NULL${inScope(scope)}
      ORDER BY key LIMIT ${rowsMax} ${lockRow}`);
    const events = found.flatMap((stored) => undamaged(() => recordOf(stored)) ?? []);
    const now = instantOf(() => clock.now());
    for (const event of events) yield* settleAlone(event, { kind: "revoked" }, now);
    yield* placeInGroups(events);
    const next = found.length < rowsMax ? undefined : found.at(-1)?.key;
    return { revoked: events.length, next };
  },
});
