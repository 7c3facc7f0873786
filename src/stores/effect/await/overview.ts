import type { AwaitEnd, AwaitOutcome } from "../../../model/await-event.ts";
import type { AwaitEventId } from "../../../model/await-token.ts";
import { HoldfastError } from "../../../model/errors.ts";
import { optionsOf } from "../../../model/shape.ts";
import type { WaitOptions } from "../../../sql/database.ts";
import { withValues } from "../../damage.ts";
import { checkedScope, sessionOrNone } from "../scope.ts";
import type { EffectScope } from "../scope.ts";
import type { SessionName } from "../../session/session-name.ts";
import { keyPlace, nextCursor } from "../../cursor.ts";
import { checkedLimit, pageNames } from "../../paging.ts";
import type { Page, PageOptions } from "../../list.ts";
import { checkedRowsPerSlice, forgottenInSlices } from "../../slices.ts";
import { readOutcome } from "./context.ts";
import type { AwaitSurroundings } from "./context.ts";
import { awaitEventTable } from "./event-row.ts";
import type { AwaitRecord, AwaitScope } from "./event-row.ts";
import { forgetAwaits } from "./forget.ts";
import { placeIn } from "./place.ts";
import { listAwaitEvents } from "./read.ts";
import { revokeAwaitSlice } from "./revoke.ts";
import type { RevokedSlice } from "./revoke.ts";
import { currentEvent } from "./wait.ts";

/** What may be known of an await-event: all but its token. */
export interface AwaitEvent {
  readonly id: AwaitEventId;
  readonly scope: AwaitScope;
  readonly key: string;
  readonly state: "open" | AwaitEnd;
  readonly openedAt: number;
  readonly dueAt: number | null;
  readonly settledAt: number | null;
  /** When its token ended to count; null while it does. */
  readonly revokedAt: number | null;
  /** Undefined while it is open, and when it was revoked. */
  readonly outcome: AwaitOutcome<unknown, Error> | undefined;
}

export interface ListAwaitEventsOptions extends PageOptions {
  /** Only those of this kind and id. */
  readonly scope?: AwaitScope;
  /** `open` leaves out what has ended; `all` unless told. One that is over and was not asked about since is still open here. */
  readonly state?: "all" | "open";
}

export interface RevokeAwaitEventsOptions {
  /** Only those of this kind and id. */
  readonly scope?: AwaitScope;
  readonly signal?: AbortSignal;
  /** Rows per transaction: 500 unless told. */
  readonly rowsPerSlice?: number;
}

export type ForgetAwaitEventsOptions = Omit<RevokeAwaitEventsOptions, "scope">;

/** Looking at await-events, revoking many, and being done with them. */
export interface AwaitOverview {
  /** One as it stands now; undefined when it was never opened. @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`, `CORRUPT_ROW` */
  get(
    scope: EffectScope,
    key: string,
    wait?: WaitOptions,
  ): Promise<AwaitEvent | undefined>;
  /** A page of those of a session (null: of scopes that belong to none), in the order in which they were opened; large answers make short pages. What cannot be read is named. @throws HoldfastError `CURSOR_INVALID`, `SESSION_NOT_FOUND`, `SESSION_DELETED` */
  list(
    session: SessionName | null,
    options?: ListAwaitEventsOptions,
  ): Promise<Page<AwaitEvent>>;
  /** Revokes all that a session has, or those of one scope, in small transactions; tells how many tokens ended to count. May be repeated. */
  revokeAll(
    session: SessionName | null,
    options?: RevokeAwaitEventsOptions,
  ): Promise<number>;
  /**
   * Removes the await-events and groups of a scope that is done with, in small
   * transactions; tells how many rows. Do this before its effects are
   * forgotten, which groups refer to; what belongs to a session goes with it
   * anyway. Tokens that were given out answer nothing any more, also when the
   * same key is opened again.
   */
  forget(
    scope: EffectScope,
    options?: ForgetAwaitEventsOptions,
  ): Promise<number>;
}

export function awaitOverview(around: AwaitSurroundings): AwaitOverview {
  const { database, clock } = around;
  return {
    async get(scope, key, wait) {
      const event = await currentEvent(around, placeIn(scope, key), wait);
      return event && viewOf(around, event);
    },
    async list(session, given) {
      const options = optionsOf(given, [...pageNames, "scope", "state"]);
      const { after, limit, signal, timeout } = options;
      const input = {
        session: sessionOrNone(session),
        scope: filterOf(options.scope),
        state: checkedState(options.state),
        limit: checkedLimit(limit),
      };
      const { scope, state } = input;
      const owner = `awaits:${JSON.stringify([input.session?.id, scope?.kind, scope?.id, state])}`;
      const found = await database.read(
        listAwaitEvents,
        {
          ...input,
          after: after === undefined ? 0 : keyPlace(owner, after),
        },
        { signal, timeout },
      );
      const { items, damaged } = withValues(
        awaitEventTable,
        found,
        ({ id }) => id,
        (event) => viewOf(around, event),
      );
      return { items, damaged, next: nextCursor(owner, found.next) };
    },
    async revokeAll(session, options) {
      const known = ["scope", "signal", "rowsPerSlice"] as const;
      const { scope, signal, rowsPerSlice } = optionsOf(options, known);
      const rowsMax = checkedRowsPerSlice(rowsPerSlice);
      const named = sessionOrNone(session);
      const wanted = filterOf(scope);
      let revoked = 0;
      for (let after: number | undefined = 0; after !== undefined;) {
        const slice: RevokedSlice = await database.write(
          revokeAwaitSlice,
          {
            session: named,
            scope: wanted,
            after,
            rowsMax,
            now: () => clock.now(),
          },
          { signal },
        );
        revoked += slice.revoked;
        after = slice.next;
      }
      return revoked;
    },
    async forget(scope, options) {
      const known = ["signal", "rowsPerSlice"] as const;
      const { signal, rowsPerSlice } = optionsOf(options, known);
      const rowsMax = checkedRowsPerSlice(rowsPerSlice);
      const slice = { scope: checkedScope(scope), rowsMax };
      return forgottenInSlices(database, rowsMax, () =>
        database.write(forgetAwaits, slice, { signal }),
      );
    },
  };
}

function filterOf(scope: AwaitScope | undefined): AwaitScope | undefined {
  if (scope === undefined) return undefined;
  const { kind, id } = checkedScope(scope);
  return { kind, id };
}

const states = ["all", "open"] as const;

function checkedState(
  state: (typeof states)[number] = "all",
): (typeof states)[number] {
  if (states.includes(state)) return state;
  throw new HoldfastError(
    "OPTION_INVALID",
    `state is one of ${states.join(", ")}; got something else.`,
    { option: "state" },
  );
}

function viewOf({ codec }: AwaitSurroundings, event: AwaitRecord): AwaitEvent {
  const { id, scope, key, state, openedAt, dueAt, settledAt, revokedAt } =
    event;
  return {
    id,
    scope,
    key,
    state,
    openedAt,
    dueAt,
    settledAt,
    revokedAt,
    outcome: readOutcome(codec, event),
  };
}
