import type { AwaitEnd, AwaitOutcome } from "../../../model/effect/await-event.ts";
import type { AwaitEventId } from "../../../model/effect/await-token.ts";
import { HoldfastError } from "../../../model/errors.ts";
import { rows, storeOperation, type Tx } from "../../../sql/operation.ts";
import { sql, type Statement } from "../../../sql/statement.ts";
import {
  list,
  pageOf,
  slicedByBytes,
  type List,
  type PageOptions,
  type Place,
  type Slice,
  type SliceBounds,
} from "../../list.ts";
import type { SessionName } from "../../session-name.ts";
import type { SessionRef } from "../../session-row.ts";
import { aggregateOf, checkedScope, livingSessionOf, sessionOrNone } from "../scope.ts";
import { readOutcome, type AwaitContext } from "./context.ts";
import {
  awaitEventTable,
  eventAt,
  eventColumns,
  recordOf,
  type AwaitPlace,
  type AwaitRecord,
  type AwaitScope,
  type EventRow,
} from "./event-row.ts";

/** An await-event as callers see it, without its token. */
export interface AwaitEvent {
  readonly id: AwaitEventId;
  readonly scope: AwaitScope;
  readonly key: string;
  readonly state: "open" | AwaitEnd;
  readonly openedAt: number;
  readonly dueAt: number | null;
  readonly settledAt: number | null;
  /** The time of revocation; null while the token is valid. */
  readonly revokedAt: number | null;
  /** Undefined while the event is open, and when it was revoked. */
  readonly outcome: AwaitOutcome<unknown, Error> | undefined;
}

/** @throws HoldfastError `CORRUPT_ROW` */
export function eventView(context: AwaitContext, event: AwaitRecord): AwaitEvent {
  const { id, scope, key, state, openedAt, dueAt, settledAt, revokedAt } = event;
  return {
    id,
    scope,
    key,
    state,
    openedAt,
    dueAt,
    settledAt,
    revokedAt,
    outcome: readOutcome(context, event),
  };
}

/**
 * An await-event as it is stored.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED` or `CORRUPT_ROW`.
 */
export const readAwaitEvent = storeOperation("readAwaitEvent", {
  key: (input) => aggregateOf(input),
  *one(_: AwaitContext, input: AwaitPlace): Tx<AwaitRecord | undefined> {
    return yield* eventAt(yield* livingSessionOf(input.scope), input);
  },
});

export interface ListAwaitEventsOptions extends PageOptions {
  /** Selects only the events of this scope. */
  readonly scope?: AwaitScope;
  /**
   * `open` leaves out ended events; defaults to `all`. An overdue event that no caller has asked for
   * since is still open here.
   */
  readonly state?: "all" | "open";
}

interface AwaitFilter {
  /** Undefined for events of scopes without a session. */
  readonly session: SessionRef | undefined;
  readonly scope: AwaitScope | undefined;
  readonly state: "all" | "open";
}

/**
 * Lists the await-events of a session as they are recorded, in the order in which they were opened.
 * @throws HoldfastError `SESSION_NOT_FOUND` or `SESSION_DELETED`.
 */
export const awaitList: List<
  AwaitContext,
  [session: SessionName | null, options?: ListAwaitEventsOptions],
  AwaitEvent
> = list("listAwaitEvents", {
  table: awaitEventTable,
  given(_: AwaitContext, session: SessionName | null, options?: ListAwaitEventsOptions) {
    const { filter, page } = pageOf(options, ["scope", "state"]);
    return {
      filter: {
        session: sessionOrNone(session),
        scope: scopeFilter(filter.scope),
        state: checkedState(filter.state),
      },
      page,
    };
  },
  slice: awaitSlice,
  keyOf: ({ id }: EventRow) => id,
  itemOf: (context, found) => eventView(context, recordOf(found)),
});

function* awaitSlice(
  _: AwaitContext,
  filter: AwaitFilter,
  bounds: SliceBounds,
): Tx<Slice<EventRow>> {
  const session = yield* livingSessionOf(filter);
  const next = (after: Place | undefined, count: number): Statement => sql`
    FROM holdfast_await_event
    WHERE session = ${session}${inScope(filter.scope)} AND key > ${Number(after?.[0] ?? 0)}
      ${filter.state === "all" ? sql`` : sql`AND state = 'open'`}
    ORDER BY key LIMIT ${count}`;
  return yield* slicedByBytes(
    bounds,
    ({ key }: EventRow) => [key],
    function* (after, count) {
      const found = yield* rows<{ readonly bytes: number }>(sql`
        SELECT COALESCE(octet_length(payload), 0) AS bytes ${next(after, count)}`);
      return found.map(({ bytes }) => bytes);
    },
    function* (after, count) {
      return yield* rows<EventRow>(sql`SELECT ${eventColumns} ${next(after, count)}`);
    },
  );
}

/** The condition that selects the await-events of one scope, if one is given. */
export function inScope(scope: AwaitScope | undefined): Statement {
  return scope === undefined ? sql`` : sql` AND scope_kind = ${scope.kind} AND scope = ${scope.id}`;
}

/** @throws HoldfastError `EFFECT_SCOPE_INVALID` */
export function scopeFilter(scope: AwaitScope | undefined): AwaitScope | undefined {
  if (scope === undefined) return undefined;
  const { kind, id } = checkedScope(scope);
  return { kind, id };
}

const states = ["all", "open"] as const;

function checkedState(state: (typeof states)[number] = "all"): (typeof states)[number] {
  if (states.includes(state)) return state;
  throw new HoldfastError("OPTION_INVALID", `Option state must be one of ${states.join(", ")}.`, {
    option: "state",
  });
}
