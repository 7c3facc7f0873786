import { effectNotRecorded, effectUnfinished } from "../../model/effect/errors.ts";
import {
  decideEffect,
  holderOfEffect,
  type EffectHolder,
  type EffectState,
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
import { answerOf, conflictWith, type ClaimEffectOutcome } from "./claim.ts";
import { readEnvelope, readFailure, readValue, type EffectContext } from "./context.ts";
import {
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

interface AskEffect {
  readonly effect: EffectRequest;
  readonly isStrict: boolean;
}

/** The answers that involve no claim. */
type Unclaimed = Exclude<ClaimEffectOutcome, { readonly kind: "claimed" }>;

type EffectAnswer =
  | Unclaimed
  /** The effect is not recorded or not held, so the caller may claim it. */
  | { readonly kind: "free"; readonly key: number | undefined }
  | { readonly kind: "missing" }
  | { readonly kind: "unfinished" };

/**
 * Returns the answer that a claim would get, without claiming. A settled effect is replayed without
 * any write.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`, `CORRUPT_ROW`
 */
export const askEffect: StoreOperation<EffectContext, AskEffect, EffectAnswer> = storeOperation(
  "askEffect",
  {
    key: (input: AskEffect) => aggregateOf(input.effect),
    one: effectAnswer,
  },
);

function* effectAnswer(
  { clock }: EffectContext,
  { effect, isStrict }: AskEffect,
): Tx<EffectAnswer> {
  const session = yield* livingSessionOf(effect.scope);
  const found = yield* row<EffectRow>(sql`
    SELECT ${effectColumns} FROM holdfast_effect WHERE ${whichEffect(session, effect)}`);
  const { hash, clearHash, dueAt } = effect;
  const question = { hash, clearHash, dueAt, now: clock.now(), isStrict };
  const decision = decideEffect(stateOf(found), question);
  if (decision.kind === "missing" || decision.kind === "unfinished") return { kind: decision.kind };
  if (found === undefined) return { kind: "free", key: undefined };
  switch (decision.kind) {
    case "claim":
    case "takeover":
    case "reenter":
      return { kind: "free", key: found.key };
    case "conflict":
      return yield* conflictWith(found);
    default:
      return answerOf(found, decision);
  }
}

/**
 * The answer of `claim` and `record` in strict replay. It reads what is recorded and writes
 * nothing.
 *
 * @throws HoldfastError `EFFECT_NOT_RECORDED`, `EFFECT_UNFINISHED`,
 *   `SESSION_NOT_FOUND`, `SESSION_DELETED`, `CORRUPT_ROW`
 */
export const replayEffect = storeOperation("replayEffect", {
  key: ({ effect }) => aggregateOf(effect),
  *one(context: EffectContext, { effect }: { readonly effect: EffectRequest }): Tx<Unclaimed> {
    const answer = yield* effectAnswer(context, { effect, isStrict: true });
    if (answer.kind === "missing") throw effectNotRecorded(namesOf(effect));
    if (answer.kind === "unfinished" || answer.kind === "free")
      throw effectUnfinished(namesOf(effect));
    return answer;
  },
});

/** An effect as it is stored, with its envelope and outcome. */
interface StoredEffect {
  readonly key: number;
  readonly replayKey: string;
  readonly attempt: number;
  readonly kind: string;
  readonly createdAt: number;
  readonly state: Exclude<EffectState, { readonly kind: "absent" }>;
  readonly envelope: Encoded;
}

interface FullRow extends EffectRow {
  readonly replay_key: string;
  readonly attempt: number;
  readonly kind: string;
  readonly created_at: number;
  readonly envelope: Encoded;
}

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
      SELECT ${effectColumns}, replay_key, attempt, kind, created_at, envelope
      FROM holdfast_effect WHERE ${whichEffect(session, ref)}`);
    return found === undefined ? undefined : storedOf(found);
  },
});

/** @throws HoldfastError `CORRUPT_ROW` */
export function shownEffect(
  context: EffectContext,
  found: StoredEffect | undefined,
): EffectView | undefined {
  if (found === undefined) return undefined;
  const { key, replayKey, attempt, kind, createdAt, state } = found;
  const envelope = readEnvelope(context, { ...found, hash: state.hash });
  const { input } = Object(envelope) as { readonly input?: unknown };
  const { hash, dueAt } = state;
  return {
    replayKey,
    attempt,
    kind,
    input,
    hash,
    createdAt,
    dueAt,
    state: stateView(context, key, state),
  };
}

function stateView(
  context: EffectContext,
  key: number,
  state: StoredEffect["state"],
): EffectView["state"] {
  if (state.kind === "inProgress") {
    const holder = state.claim === null ? null : holderOfEffect(state.claim);
    return { kind: "inProgress", holder };
  }
  const { outcome, settledAt } = state;
  const { isTransient } = outcome;
  const settled = { ...outcome, key };
  return outcome.status === "completed"
    ? { kind: "completed", settledAt, value: readValue(context, settled) }
    : {
        kind: "failed",
        settledAt,
        error: readFailure(context, settled),
        isTransient,
      };
}

function storedOf(found: FullRow): StoredEffect {
  return {
    key: found.key,
    replayKey: found.replay_key,
    attempt: found.attempt,
    kind: found.kind,
    createdAt: found.created_at,
    state: knownState(found),
    envelope: found.envelope,
  };
}

/** @throws HoldfastError `CORRUPT_ROW` */
function knownState(found: EffectRow): StoredEffect["state"] {
  const state = stateOf(found);
  if (state.kind === "absent") throw new Error("A row is there.");
  return state;
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
    (last: ListedRow) => [last.replay_key, last.attempt],
    function* (after, count) {
      const [replayKey, attempt] = after ?? ["", 0];
      return yield* rows<ListedRow>(sql`
        SELECT key, hash, status, due_at, fence, process, token, claimed_at, renewed_at, expires_at,
          settled_at, is_transient, CASE WHEN outcome IS NULL THEN NULL ELSE '' END AS outcome, checksum,
          replay_key, attempt, kind, created_at
        FROM holdfast_effect
        WHERE session = ${session} AND scope_kind = ${scope.kind} AND scope = ${scope.id}
          AND (replay_key, attempt) > (${String(replayKey)}, ${Number(attempt)})
        ORDER BY replay_key, attempt LIMIT ${count}`);
    },
  );
}

function summaryOf(found: ListedRow): EffectSummary {
  const state = knownState(found);
  const isSettled = state.kind === "settled";
  return {
    replayKey: found.replay_key,
    attempt: found.attempt,
    kind: found.kind,
    hash: found.hash,
    status: isSettled ? state.outcome.status : "inProgress",
    isTransient: isSettled && state.outcome.isTransient,
    createdAt: found.created_at,
    dueAt: found.due_at,
    settledAt: isSettled ? state.settledAt : null,
    holder: isSettled || state.claim === null ? null : holderOfEffect(state.claim),
  };
}
