import { decideEffect, holderOfEffect } from "../../model/effect.ts";
import type { EffectHolder, EffectState } from "../../model/effect.ts";
import type { Encoded } from "../../model/encoded.ts";
import { row, rows, plainOperation } from "../../sql/operation.ts";
import type { Operation } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { sift } from "../damage.ts";
import type { Sifted } from "../damage.ts";
import { answerOf, conflictWith } from "./claim.ts";
import type { ClaimEffectOutcome } from "./claim.ts";
import {
  aggregateOf,
  effectColumns,
  stateOf,
  whichEffect,
} from "./effect-row.ts";
import type { EffectRef, EffectRow, WantedEffect } from "./effect-row.ts";
import { livingSessionOf } from "./scope.ts";
import type { EffectScopeRef } from "./scope.ts";

export interface AskEffect {
  readonly effect: WantedEffect;
  readonly now: number;
  readonly isStrict: boolean;
}

export type EffectAnswer =
  | Exclude<ClaimEffectOutcome, { readonly kind: "claimed" }>
  /** It is not recorded, or nobody is at it: whoever asks may claim it. */
  | { readonly kind: "free"; readonly key: number | undefined }
  | { readonly kind: "missing" }
  | { readonly kind: "unfinished" };

/**
 * What claiming an effect would answer, without a claim: what is settled is
 * replayed without writing anything.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`, `CORRUPT_ROW`
 */
export const askEffect: Operation<AskEffect, EffectAnswer> = plainOperation(
  "askEffect",
  {
    key: (input: AskEffect) => aggregateOf(input.effect),
    *one({ effect, now, isStrict }) {
      const session = yield* livingSessionOf(effect.scope);
      const found = yield* row<EffectRow>(sql`
        SELECT ${effectColumns} FROM holdfast_effect WHERE ${whichEffect(session, effect)}`);
      const { hash, dueAt } = effect;
      const asked = { hash, dueAt, now, isStrict };
      const decision = decideEffect(stateOf(found), asked);
      if (decision.kind === "missing" || decision.kind === "unfinished")
        return { kind: decision.kind };
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
    },
  },
);

/** An effect as it is stored, with what was asked for and what it came to. */
export interface StoredEffect {
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

/**
 * One effect, or nothing.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`, `CORRUPT_ROW`
 */
export const readEffect: Operation<EffectRef, StoredEffect | undefined> =
  plainOperation("readEffect", {
    key: (ref: EffectRef) => aggregateOf(ref),
    *one(ref) {
      const session = yield* livingSessionOf(ref.scope);
      const found = yield* row<FullRow>(sql`
        SELECT ${effectColumns}, replay_key, attempt, kind, created_at, envelope
        FROM holdfast_effect WHERE ${whichEffect(session, ref)}`);
      return found === undefined ? undefined : storedOf(found);
    },
  });

function storedOf(found: FullRow): StoredEffect {
  const state = stateOf(found);
  if (state.kind === "absent") throw new Error("A row is there.");
  return {
    key: found.key,
    replayKey: found.replay_key,
    attempt: found.attempt,
    kind: found.kind,
    createdAt: found.created_at,
    state,
    envelope: found.envelope,
  };
}

/** A place in the list of a scope's effects. */
export interface EffectPlace {
  readonly replayKey: string;
  readonly attempt: number;
}

export interface ListEffects {
  readonly scope: EffectScopeRef;
  readonly after: EffectPlace | undefined;
  readonly limit: number;
}

/** What a list shows of an effect: all but its values, which may be large. */
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
  /** Who is at it, or was last. */
  readonly holder: EffectHolder | null;
}

export interface StoredEffectPage extends Sifted<EffectSummary> {
  /** Where to go on, when there are more. */
  readonly next: EffectPlace | undefined;
}

/**
 * A page of a scope's effects, in the order of their keys.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND` or `SESSION_DELETED`.
 */
export const listEffects: Operation<ListEffects, StoredEffectPage> =
  plainOperation("listEffects", {
    key: (input: ListEffects) => aggregateOf(input),
    *one({ scope, after, limit }) {
      const session = yield* livingSessionOf(scope);
      const { replayKey, attempt } = after ?? { replayKey: "", attempt: 0 };
      const found = yield* rows<Omit<FullRow, "envelope">>(sql`
        SELECT key, hash, status, due_at, fence, process, token, claimed_at, renewed_at, expires_at,
          settled_at, is_transient, CASE WHEN outcome IS NULL THEN NULL ELSE '' END AS outcome,
          replay_key, attempt, kind, created_at
        FROM holdfast_effect
        WHERE session = ${session} AND scope_kind = ${scope.kind} AND scope = ${scope.id}
          AND (replay_key, attempt) > (${replayKey}, ${attempt})
        ORDER BY replay_key, attempt LIMIT ${limit + 1}`);
      const page = found.slice(0, limit);
      const last = page.at(-1);
      return {
        ...sift("holdfast_effect", page, ({ key }) => String(key), summaryOf),
        next:
          found.length > limit && last !== undefined
            ? { replayKey: last.replay_key, attempt: last.attempt }
            : undefined,
      };
    },
  });

function summaryOf(found: Omit<FullRow, "envelope">): EffectSummary {
  const state = stateOf(found);
  if (state.kind === "absent") throw new Error("A row is there.");
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
    holder:
      isSettled || state.claim === null ? null : holderOfEffect(state.claim),
  };
}
