import { effectUnfinished } from "../../model/effect/errors.ts";
import {
  decideEffect,
  holderOfEffect,
  type EffectHolder,
  type RecordedState,
} from "../../model/effect/effect.ts";
import type { Encoded } from "../../model/values/encoded.ts";
import type { WaitOptions } from "../../sql/database.ts";
import { lockRow } from "../../sql/dialect.ts";
import { row, rows, storeOperation, type StoreOperation, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import {
  list,
  pageOf,
  sliced,
  type List,
  type PageOptions,
  type Slice,
  type SliceBounds,
} from "../list.ts";
import { optionsAndWait, type Call } from "../method.ts";
import { readEnvelope, readFailure, readValue, type EffectContext } from "./context.ts";
import {
  columnsWithoutOutcome,
  effectColumns,
  namesOf,
  stateOf,
  whichEffect,
  type EffectRef,
  type EffectRequest,
  type EffectRow,
} from "./effect-row.ts";
import {
  aggregateOf,
  checkedEffect,
  checkedScope,
  livingSessionOf,
  type EffectScope,
  type EffectScopeRef,
} from "./scope.ts";
import { answerOf, type EffectAnswer } from "./take.ts";

/**
 * Returns the answer that a claim would get, without claiming. A settled effect is replayed without
 * any write.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`, `CORRUPT_ROW`
 */
export const askEffect: StoreOperation<
  EffectContext,
  AskEffect,
  EffectAnswer | { readonly kind: "run" }
> = storeOperation("askEffect", {
  key: ({ effect }: AskEffect) => aggregateOf(effect),
  one: (context: EffectContext, { effect }) => answerTo(context, effect, false),
});

/**
 * The answer of `claim` and `record` in strict replay. It reads what is recorded and writes
 * nothing.
 *
 * @throws HoldfastError `EFFECT_NOT_RECORDED`, `EFFECT_UNFINISHED`,
 *   `SESSION_NOT_FOUND`, `SESSION_DELETED`, `CORRUPT_ROW`
 */
export const replayEffect = storeOperation("replayEffect", {
  key: ({ effect }) => aggregateOf(effect),
  *one(context: EffectContext, { effect }: AskEffect): Tx<EffectAnswer> {
    const answer = yield* answerTo(context, effect, true);
    if (answer.kind === "run") throw effectUnfinished(namesOf(effect));
    return answer;
  },
});

interface AskEffect {
  readonly effect: EffectRequest;
}

function* answerTo(
  { clock }: EffectContext,
  effect: EffectRequest,
  isStrict: boolean,
): Tx<EffectAnswer | { readonly kind: "run" }> {
  const session = yield* livingSessionOf(effect.scope);
  const found = yield* row<EffectRow>(sql`
    SELECT ${effectColumns} FROM holdfast_effect WHERE ${whichEffect(session, effect)}`);
  // The first claim sets the due time, so an effect without a row is claimed even if it is not due.
  const { hash, clearHash } = effect;
  const question = { effect: { hash, clearHash }, now: clock.now(), isStrict };
  const decision = decideEffect(stateOf(found), question);
  return decision.kind === "run" ? decision : yield* answerOf(effect, found, decision);
}

interface FullRow extends EffectRow {
  readonly replayKey: string;
  readonly attempt: number;
  readonly kind: string;
  readonly createdAt: number;
  readonly envelope: Encoded;
}

/** An effect as it is stored, with its envelope and outcome. */
interface StoredEffect extends FullRow {
  readonly state: RecordedState;
}

const nameColumns = sql`replay_key AS "replayKey", attempt, kind, created_at AS "createdAt"`;

/** An effect as `get` returns it. */
export interface EffectView {
  readonly replayKey: string;
  readonly attempt: number;
  readonly kind: string;
  readonly input: unknown;
  readonly hash: string;
  readonly createdAt: number;
  readonly dueAt: number | null;
  readonly state:
    | {
        readonly kind: "inProgress";
        /** The worker that holds it, or held it last. */
        readonly holder: EffectHolder | null;
      }
    | {
        readonly kind: "completed";
        readonly settledAt: number;
        readonly value: unknown;
      }
    | {
        readonly kind: "failed";
        readonly settledAt: number;
        readonly error: Error;
        readonly isTransient: boolean;
      };
}

export interface GetEffectOptions extends WaitOptions {
  /** The number of the attempt; defaults to 1. */
  readonly attempt?: number;
}

/** @throws HoldfastError `EFFECT_SCOPE_INVALID`, `EFFECT_INVALID`, `ID_MALFORMED`, `OPTION_INVALID` */
export function givenGet(
  _: EffectContext,
  scope: EffectScope,
  key: string,
  given?: GetEffectOptions,
): Call<EffectRef> {
  const { options, wait } = optionsAndWait(given, ["attempt"]);
  return { input: checkedEffect(scope, key, options.attempt), wait };
}

/**
 * Locks the effect of a read, if it exists.
 * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`
 */
export function* lockReadEffect(ref: EffectRef): Tx<void> {
  const session = yield* livingSessionOf(ref.scope);
  yield* row(sql`SELECT key FROM holdfast_effect WHERE ${whichEffect(session, ref)} ${lockRow}`);
}

/**
 * Reads one effect, or undefined.
 * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`, `CORRUPT_ROW`
 */
export const readEffect = storeOperation("readEffect", {
  key: (ref) => aggregateOf(ref),
  *one(_: EffectContext, ref: EffectRef): Tx<StoredEffect | undefined> {
    const session = yield* livingSessionOf(ref.scope);
    const found = yield* row<FullRow>(sql`
      SELECT ${effectColumns}, ${nameColumns}, envelope
      FROM holdfast_effect WHERE ${whichEffect(session, ref)}`);
    return found === undefined ? undefined : { ...found, state: stateOf(found) };
  },
});

/** @throws HoldfastError `CORRUPT_ROW` */
export function shownEffect(
  context: EffectContext,
  found: StoredEffect | undefined,
): EffectView | undefined {
  if (found === undefined) return undefined;
  const { key, replayKey, attempt, kind, hash, createdAt, dueAt } = found;
  const { input } = Object(readEnvelope(context, found)) as { readonly input?: unknown };
  const state = stateView(context, key, found.state);
  return { replayKey, attempt, kind, input, hash, createdAt, dueAt, state };
}

function stateView(context: EffectContext, key: number, state: RecordedState): EffectView["state"] {
  if (state.kind === "inProgress") {
    const holder = state.claim === null ? null : holderOfEffect(state.claim);
    return { kind: "inProgress", holder };
  }
  const { settledAt, isTransient } = state;
  const settled = { ...state, key };
  return state.status === "completed"
    ? { kind: "completed", settledAt, value: readValue(context, settled) }
    : { kind: "failed", settledAt, error: readFailure(context, settled), isTransient };
}

/** An effect in a list, without its values, which may be large. */
export interface EffectSummary {
  readonly replayKey: string;
  readonly attempt: number;
  readonly kind: string;
  readonly hash: string;
  readonly status: "inProgress" | "completed" | "failed";
  readonly isTransient: boolean;
  readonly createdAt: number;
  readonly dueAt: number | null;
  readonly settledAt: number | null;
  /** The worker that holds it, or held it last. */
  readonly holder: EffectHolder | null;
}

type ListedRow = Omit<FullRow, "envelope">;

/**
 * Lists the effects of a scope in the order of their keys.
 * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`
 */
export const effectList: List<
  EffectContext,
  [scope: EffectScope, options?: PageOptions],
  EffectSummary
> = list("listEffects", {
  table: "holdfast_effect",
  given(_: EffectContext, scope: EffectScope, options?: PageOptions) {
    return { filter: checkedScope(scope), page: pageOf(options, []).page };
  },
  slice: effectSlice,
  keyOf: ({ key }: ListedRow) => String(key),
  itemOf: (_, found) => summaryOf(found),
});

/** Reads no outcomes, since they may be large and the list does not show them. */
function* effectSlice(
  _: EffectContext,
  scope: EffectScopeRef,
  bounds: SliceBounds,
): Tx<Slice<ListedRow>> {
  const session = yield* livingSessionOf(scope);
  return yield* sliced(
    bounds,
    (last: ListedRow) => [last.replayKey, last.attempt],
    function* (after, count) {
      const [replayKey, attempt] = after ?? ["", 0];
      return yield* rows<ListedRow>(sql`
        SELECT ${columnsWithoutOutcome}, CASE WHEN outcome IS NULL THEN NULL ELSE '' END AS outcome, ${nameColumns}
        FROM holdfast_effect
        WHERE session = ${session} AND scope_kind = ${scope.kind} AND scope = ${scope.id}
          AND (replay_key, attempt) > (${String(replayKey)}, ${Number(attempt)})
        ORDER BY replay_key, attempt LIMIT ${count}`);
    },
  );
}

function summaryOf(found: ListedRow): EffectSummary {
  const { replayKey, attempt, kind, hash, createdAt, dueAt } = found;
  const names = { replayKey, attempt, kind, hash, createdAt, dueAt };
  const state = stateOf(found);
  if (state.kind === "settled") {
    const { status, isTransient, settledAt } = state;
    return { ...names, status, isTransient, settledAt, holder: null };
  }
  const holder = state.claim === null ? null : holderOfEffect(state.claim);
  return { ...names, status: "inProgress", isTransient: false, settledAt: null, holder };
}
