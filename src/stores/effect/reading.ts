import type { EffectHolder } from "../../model/effect.ts";
import { holderOfEffect } from "../../model/effect.ts";
import { optionsOf } from "../../model/shape.ts";
import type { WaitOptions } from "../../sql/database.ts";
import { cursorInvalid, cursorPlace, cursorText } from "../cursor.ts";
import { waitNames } from "../given.ts";
import { checkedLimit, pageNames } from "../paging.ts";
import type { Page, PageOptions } from "../list.ts";
import { checkedRowsPerSlice, forgottenInSlices } from "../slices.ts";
import { checkedEffect } from "./checks.ts";
import { readEnvelope, readFailure, readValue } from "./context.ts";
import type { EffectSurroundings } from "./context.ts";
import { forgetEffects } from "./forget.ts";
import { listEffects, readEffect } from "./read.ts";
import type { EffectPlace, EffectSummary, StoredEffect } from "./read.ts";
import { checkedScope } from "./scope.ts";
import type { EffectScope } from "./scope.ts";

/** What is known of an effect. */
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
        /** Who is at it, or was last. */
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

export interface ForgetEffectsOptions {
  readonly signal?: AbortSignal;
  /** Rows per transaction: 500 unless told. */
  readonly rowsPerSlice?: number;
}

/** What is recorded, and how it goes. */
export interface EffectReads {
  /** One effect, or nothing. @throws HoldfastError `CORRUPT_ROW`, `SESSION_NOT_FOUND`, `SESSION_DELETED` */
  get(
    scope: EffectScope,
    key: string,
    options?: WaitOptions & { readonly attempt?: number },
  ): Promise<EffectView | undefined>;
  /** A page of a scope's effects, in the order of their keys. What cannot be read is named. @throws HoldfastError `CURSOR_INVALID`, `SESSION_NOT_FOUND`, `SESSION_DELETED` */
  list(scope: EffectScope, options?: PageOptions): Promise<Page<EffectSummary>>;
  /**
   * Removes all effects of a scope, in small transactions, and tells how many:
   * for one that will not be run again. Those of sessions go with their
   * session by themselves.
   */
  forget(scope: EffectScope, options?: ForgetEffectsOptions): Promise<number>;
}

export function effectReads(around: EffectSurroundings): EffectReads {
  const { database } = around;
  return {
    async get(scope, key, options) {
      const known = [...waitNames, "attempt"] as const;
      const { attempt, signal, timeout } = optionsOf(options, known);
      const ref = checkedEffect(scope, key, attempt);
      const wait = { signal, timeout };
      const found = await database.read(readEffect, ref, wait);
      return found === undefined ? undefined : viewOf(around, found);
    },
    async list(given, options) {
      const { after, limit, signal, timeout } = optionsOf(options, pageNames);
      const scope = checkedScope(given);
      const owner = `effects:${JSON.stringify([scope.session?.id, scope.kind, scope.id])}`;
      const input = {
        scope,
        after: after === undefined ? undefined : placeOf(owner, after),
        limit: checkedLimit(limit),
      };
      const wait = { signal, timeout };
      const { next, ...page } = await database.read(listEffects, input, wait);
      return {
        ...page,
        next: next && cursorText(owner, [next.replayKey, next.attempt]),
      };
    },
    async forget(scope, options) {
      const known = ["signal", "rowsPerSlice"] as const;
      const { signal, rowsPerSlice } = optionsOf(options, known);
      const rowsMax = checkedRowsPerSlice(rowsPerSlice);
      const slice = { scope: checkedScope(scope), rowsMax };
      return forgottenInSlices(database, rowsMax, () =>
        database.write(forgetEffects, slice, { signal }),
      );
    },
  };
}

function placeOf(owner: string, cursor: string): EffectPlace {
  const [replayKey, attempt] = cursorPlace(owner, cursor);
  if (typeof replayKey !== "string" || !Number.isSafeInteger(attempt))
    throw cursorInvalid("malformed");
  return { replayKey, attempt: attempt as number };
}

function viewOf(around: EffectSurroundings, found: StoredEffect): EffectView {
  const { key, replayKey, attempt, kind, createdAt, state } = found;
  const envelope = readEnvelope(around, found);
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
    state: stateView(around, key, state),
  };
}

function stateView(
  around: EffectSurroundings,
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
    ? { kind: "completed", settledAt, value: readValue(around, settled) }
    : {
        kind: "failed",
        settledAt,
        error: readFailure(around, settled),
        isTransient,
      };
}
