import { rows, plainOperation } from "../../../sql/operation.ts";
import type { Operation } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { sift } from "../../damage.ts";
import type { Sifted } from "../../damage.ts";
import { pageCharactersMax } from "../../execution/lock/history.ts";
import { ReadBudget, readWithin } from "../../read-budget.ts";
import { livingKeyOf } from "./session-key.ts";
import type { SessionRef } from "../../session/session-row.ts";
import {
  aggregateOf,
  awaitEventTable,
  eventAt,
  eventColumns,
  recordOf,
} from "./event-row.ts";
import type {
  AwaitPlace,
  AwaitRecord,
  AwaitScope,
  EventRow,
} from "./event-row.ts";

/**
 * An await-event as it is stored.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED` or `CORRUPT_ROW`.
 */
export const readAwaitEvent: Operation<AwaitPlace, AwaitRecord | undefined> =
  plainOperation("readAwaitEvent", {
    key: (input: AwaitPlace) => aggregateOf(input),
    *one(input) {
      return yield* eventAt(yield* livingKeyOf(input.scope), input);
    },
  });

export interface ListAwaitEvents {
  /** Undefined for those whose scopes belong to none. */
  readonly session: SessionRef | undefined;
  /** Only those of this scope. */
  readonly scope: AwaitScope | undefined;
  readonly state: "all" | "open";
  /** The `next` of the page before; 0 for the first page. */
  readonly after: number;
  readonly limit: number;
}

/** A page of await-events or groups as they are stored. */
export interface StoredPage<E> extends Sifted<E> {
  /** Where to go on, when there are more. */
  readonly next: number | undefined;
}

/**
 * A page of a session's await-events in the order in which they were opened,
 * as they are recorded.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND` or `SESSION_DELETED`.
 */
export const listAwaitEvents: Operation<
  ListAwaitEvents,
  StoredPage<AwaitRecord>
> = plainOperation("listAwaitEvents", {
  key: (input: ListAwaitEvents) => input.session?.id ?? "",
  *one({ scope, state, after, limit, ...given }) {
    const session = yield* livingKeyOf(given);
    const own = sql`session = ${session}`;
    const scoped =
      scope === undefined
        ? own
        : sql`${own} AND scope_kind = ${scope.kind} AND scope = ${scope.id}`;
    const wanted = state === "all" ? scoped : sql`${scoped} AND state = 'open'`;
    const { rows: found, isAll } = yield* readWithin(
      new ReadBudget(pageCharactersMax),
      limit + 1,
      function* (last: EventRow | undefined, count) {
        return yield* rows<EventRow>(sql`
          SELECT ${eventColumns} FROM holdfast_await_event
          WHERE ${wanted} AND key > ${last?.key ?? after} ORDER BY key LIMIT ${count}`);
      },
      ({ payload }) => payload?.length ?? 0,
    );
    const page = found.slice(0, limit);
    return {
      ...sift(awaitEventTable, page, ({ id }) => id, recordOf),
      next: !isAll || found.length > limit ? page.at(-1)?.key : undefined,
    };
  },
});
