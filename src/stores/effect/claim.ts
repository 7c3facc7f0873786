import type { Duration } from "../../model/time/durations.ts";
import type { EffectEnvelope } from "../../model/effect/envelope.ts";
import {
  newClaim,
  type EffectFence,
  type EffectHolder,
  type HeldEffect,
} from "../../model/effect/effect.ts";
import { HoldfastError } from "../../model/errors.ts";
import { parseOwnerId, type OwnerId } from "../../model/ids/prefixed-id.ts";
import { checkedText } from "../../model/shape.ts";
import { isRecord } from "../../model/values/spoken-kind.ts";
import { newToken } from "../../model/ids/token.ts";
import type { WaitOptions } from "../../sql/database.ts";
import { storeOperation, type Tx } from "../../sql/operation.ts";
import { optionsAndWait, type Call } from "../method.ts";
import {
  conflictOf,
  effectRequest,
  leaseMsOf,
  readFailure,
  readValue,
  type EffectContext,
} from "./context.ts";
import type { EffectRef, EffectRequest } from "./effect-row.ts";
import { aggregateOf, type EffectScope } from "./scope.ts";
import { takeEffect, type EffectAnswer, type TakeEffect } from "./take.ts";

/**
 * An effect has one row for each attempt. The first caller claims it with a token, a fence and the
 * instant at which the claim ends. `decideEffect` picks the answer to a caller: the claim, the
 * recorded outcome, the current holder, or the due time. The clock is read after the row is locked,
 * so a call that waited longer than its claim lasts is refused. The first caller also sets the due
 * time. Until then the row is not held, so a sleep costs nothing.
 */

export interface ClaimEffectOptions extends WaitOptions {
  /** The number of the attempt; defaults to 1. */
  readonly attempt?: number;
  /** The length of the claim; defaults to 30 seconds. */
  readonly lease?: Duration;
  /** The earliest start, counted from the first call. */
  readonly delay?: Duration;
  /**
   * Must be unguessable; defaults to a new token. Pass it again when you retry after a lost
   * response, to get the same claim.
   */
  readonly token?: string;
}

export interface ClaimEffect extends TakeEffect {
  /** The process whose death ends the claim; with `null` only time ends it. */
  readonly process: OwnerId | null;
  readonly leaseMs: number;
}

/** The right to run an effect, as its holder presents it. */
export interface EffectClaim extends EffectRef, EffectFence {
  readonly key: number;
  readonly claimedAt: number;
  readonly expiresAt: number;
  readonly dueAt: number | null;
}

/** The answer of `claim`. */
export type ClaimedEffect =
  | { readonly kind: "claimed"; readonly claim: EffectClaim }
  | { readonly kind: "busy"; readonly holder: EffectHolder }
  | { readonly kind: "notDue"; readonly dueAt: number }
  | { readonly kind: "completed"; readonly value: unknown }
  | {
      readonly kind: "failed";
      readonly error: Error;
      readonly isTransient: boolean;
    };

/** The fields of a holder that are needed to prove its death. */
export type SeenEffectHolder = Pick<EffectHolder, "process" | "fence">;

/** @throws HoldfastError those of `effectRequest`, `OPTION_INVALID`, `NAME_INVALID`, `DURATION_INVALID` */
export function givenClaim(
  context: EffectContext,
  scope: EffectScope,
  key: string,
  envelope: EffectEnvelope,
  given?: ClaimEffectOptions,
): Call<ClaimEffect> {
  const { options, wait } = optionsAndWait(given, ["attempt", "lease", "delay", "token"]);
  const { lease, token } = options;
  const input = {
    effect: effectRequest(context, scope, key, envelope, options),
    process: context.database.owner,
    token:
      token === undefined ? newToken(context.entropy) : checkedText("The token of a claim", token),
    leaseMs: leaseMsOf(context, lease),
  };
  return { input, wait };
}

/**
 * Validates a holder returned by `claim` or `get`.
 * @throws HoldfastError `OPTION_INVALID`, `ID_MALFORMED`
 */
export function checkedHolder(holder: SeenEffectHolder): SeenEffectHolder {
  const given: unknown = holder;
  if (isRecord(given) && Number.isSafeInteger(given["fence"])) {
    if (given["process"] === null) return holder;
    if (typeof given["process"] === "string") {
      parseOwnerId(given["process"]);
      return holder;
    }
  }
  throw new HoldfastError(
    "OPTION_INVALID",
    "Expected observed to be a holder as claim returns it. Pass that object as it is.",
    { option: "observed" },
  );
}

export type ClaimEffectOutcome =
  { readonly kind: "claimed"; readonly claim: EffectClaim } | EffectAnswer;

/**
 * Claims an effect to run it, or returns the recorded result or the worker that runs it.
 * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`, `CORRUPT_ROW`
 */
export const claimEffect = storeOperation("claimEffect", {
  key: (input) => aggregateOf(input.effect),
  *one(context: EffectContext, input: ClaimEffect): Tx<ClaimEffectOutcome> {
    const taken = yield* takeEffect(
      context,
      input,
      (decision, now) => decision.claim ?? newClaim(decision.fence, now, input),
    );
    return taken.kind === "taken"
      ? { kind: "claimed", claim: claimed(input.effect, taken, taken.change) }
      : taken;
  },
});

/**
 * Maps the outcome of a claim to the caller's answer.
 * @throws HoldfastError `EFFECT_CONFLICT`, `CORRUPT_ROW`
 */
export function shownClaim(
  context: EffectContext,
  outcome: ClaimEffectOutcome,
  { effect: request }: { readonly effect: EffectRequest },
): ClaimedEffect {
  return outcome.kind === "claimed" ? outcome : shownAnswer(context, outcome, request);
}

/** Maps every outcome but a new claim to the caller's answer. */
export function shownAnswer(
  context: EffectContext,
  answer: EffectAnswer,
  request: EffectRequest,
): Exclude<ClaimedEffect, { readonly kind: "claimed" }> {
  switch (answer.kind) {
    case "busy":
      return { kind: "busy", holder: answer.holder };
    case "notDue":
      return { kind: "notDue", dueAt: answer.dueAt };
    case "conflict":
      throw conflictOf(context, request, answer);
    default: {
      const { status, isTransient } = answer;
      return status === "completed"
        ? { kind: "completed", value: readValue(context, answer) }
        : { kind: "failed", error: readFailure(context, answer), isTransient };
    }
  }
}

export function claimed(
  { replayKey, attempt }: EffectRef,
  { scope, key, dueAt }: Pick<EffectClaim, "scope" | "key" | "dueAt">,
  { token, fence, claimedAt, expiresAt }: HeldEffect,
): EffectClaim {
  return { scope, replayKey, attempt, key, token, fence, claimedAt, expiresAt, dueAt };
}
