import type { Duration } from "../../model/time/durations.ts";
import type { EffectEnvelope } from "../../model/effect/envelope.ts";
import type { Database, Durability, WaitOptions } from "../../sql/database.ts";
import { provenDeath } from "../lease/context.ts";
import { lists, type Page, type PageOptions } from "../list.ts";
import { reads, writes, type Method } from "../method.ts";
import type { SweepOptions } from "../removal.ts";
import {
  checkedHolder,
  claimEffect,
  givenClaim,
  shownClaim,
  type ClaimedEffect,
  type ClaimEffectOptions,
  type EffectClaim,
  type SeenEffectHolder,
} from "./claim.ts";
import { effectContext, type EffectContext, type EffectOptions } from "./context.ts";
import {
  execute,
  replay,
  sleep,
  type EffectExecuteOptions,
  type EffectReplayOptions,
} from "./execute.ts";
import {
  finishEffect,
  givenComplete,
  givenFail,
  givenRelease,
  givenRenew,
  releaseEffect,
  renewEffect,
  shownRenewal,
  type FailEffectOptions,
  type RenewEffectOptions,
} from "./finish.ts";
import { forgetInSlices } from "./forget.ts";
import {
  effectList,
  givenGet,
  readEffect,
  replayEffect,
  shownEffect,
  type EffectSummary,
  type EffectView,
  type GetEffectOptions,
} from "./read.ts";
import {
  givenRecord,
  recordEffect,
  shownRecorded,
  type RecordedEffect,
  type RecordEffectOptions,
} from "./record.ts";
import type { EffectFunction } from "./run.ts";
import type { EffectScope } from "./scope.ts";
import { transact, type EffectBody, type EffectTransactOptions } from "./transact.ts";

/**
 * The effects of a database: calls whose results are recorded. Prepared,
 * `record` may be a part of any transaction, the others of one that is
 * `readCommitted`.
 */
export interface Effects {
  /** What an acknowledgement promises: that of the database. */
  readonly durability: Durability;
  /**
   * The result of an effect: as it is recorded, or by running it and recording
   * what it returned or threw, which every later call gets. Another worker
   * that runs the same is waited for, and relieved when its process dies or
   * its lease runs out. Whatever else goes wrong leaves it to the next call to
   * run it. A function that asks for its own key waits for itself, until its
   * signal or timeout ends that: nothing tells it from any other caller.
   *
   * What was thrown comes back as an error with name, message, code, cause and
   * stack, in this call as in later ones; what Holdfast refused as a
   * HoldfastError with its details.
   *
   * @throws HoldfastError `EFFECT_CONFLICT` when the key is recorded with
   *   another envelope, `EFFECT_LEASE_LOST`, `EFFECT_RESULT_UNSTORABLE`,
   *   `EFFECT_RESULT_REFUSED`, `ABORTED`, `DEADLINE_EXCEEDED`,
   *   `SESSION_NOT_FOUND`, `SESSION_DELETED`; in strict replay those of `replay`
   * @example
   * const turn = { kind: "turn", session: "chat-7", id: "t1" };
   * const reply = await effects.execute(turn, "model-1", { kind: "llm", input: prompt },
   *   ({ signal }) => model.call(prompt, { signal }));
   */
  execute<T>(
    scope: EffectScope,
    key: string,
    envelope: EffectEnvelope,
    run: EffectFunction<T>,
    options?: EffectExecuteOptions<T>,
  ): Promise<T>;
  /**
   * Strict replay: what is recorded, and nothing is ever run.
   * @throws HoldfastError `EFFECT_NOT_RECORDED`, `EFFECT_UNFINISHED`, `EFFECT_CONFLICT`
   */
  replay<T>(
    scope: EffectScope,
    key: string,
    envelope: EffectEnvelope,
    options?: EffectReplayOptions<T>,
  ): Promise<T>;
  /**
   * The same for what is done in this very database: the body and the record
   * of it are one transaction, so it happens exactly once. A body that throws
   * leaves nothing but the record of what it threw. Like every body of yours
   * it is serializable; `isolation: "readCommitted"` is for those that lock
   * what they decide by with `lockRow`.
   *
   * @throws HoldfastError as `execute`, and `ISOLATION_MISMATCH`
   * @example
   * await effects.transact(turn, "reserve", { kind: "reserve", input: { seat: 4 } }, function* () {
   *   return yield* run(sql`UPDATE seat SET taken = 1 WHERE id = 4 AND taken = 0`);
   * });
   */
  transact<T>(
    scope: EffectScope,
    key: string,
    envelope: EffectEnvelope,
    body: EffectBody<T>,
    options?: EffectTransactOptions,
  ): Promise<T>;
  /** Resolves so long after it was first called, whichever worker calls it again. Nothing is held meanwhile. */
  sleep(scope: EffectScope, key: string, duration: Duration, wait?: WaitOptions): Promise<void>;
  /**
   * Takes an effect to run it, or tells what is recorded or which worker runs
   * it: a part of `execute`, for those who run effects in a way of their own.
   * In strict replay it only tells what is recorded.
   * @throws HoldfastError `EFFECT_CONFLICT`, `SESSION_NOT_FOUND`, `SESSION_DELETED`, `EFFECT_NOT_RECORDED`, `EFFECT_UNFINISHED`
   * @example
   * const outcome = await effects.claim(turn, "model-1", { kind: "llm", input: prompt });
   * if (outcome.kind === "claimed") await effects.complete(outcome.claim, await model.call(prompt));
   */
  readonly claim: Method<
    [scope: EffectScope, key: string, envelope: EffectEnvelope, options?: ClaimEffectOptions],
    ClaimedEffect
  >;
  /**
   * The same, and takes it from the holder that was seen if the process of
   * that has provably died. Of several callers that saw it one wins.
   * @throws HoldfastError those of `claim`
   */
  reclaim(
    scope: EffectScope,
    key: string,
    envelope: EffectEnvelope,
    observed: SeenEffectHolder,
    options?: ClaimEffectOptions,
  ): Promise<ClaimedEffect>;
  /** Extends a claim; it never gets shorter. @throws HoldfastError `EFFECT_LEASE_LOST`, `SESSION_NOT_FOUND`, `SESSION_DELETED` */
  readonly renew: Method<[claim: EffectClaim, options?: RenewEffectOptions], EffectClaim>;
  /**
   * Records the value of an effect. By the same claim it may be repeated.
   * @throws HoldfastError `EFFECT_LEASE_LOST`, `EFFECT_RESULT_UNSTORABLE`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   * @example
   * const complete = effects.complete.prepare(claim, { invoice: 42 });
   * await database.write("bill", function* () {
   *   yield* run(sql`INSERT INTO invoice (id) VALUES (42)`);
   *   yield* complete();
   * }, { isolation: "readCommitted" });
   */
  readonly complete: Method<[claim: EffectClaim, value: unknown, wait?: WaitOptions], void>;
  /** Records an error in its place. @throws HoldfastError `EFFECT_LEASE_LOST`, `SESSION_NOT_FOUND`, `SESSION_DELETED` */
  readonly fail: Method<[claim: EffectClaim, error: unknown, options?: FailEffectOptions], void>;
  /** Releases a claim, so that the next caller runs the effect; false when it was no longer held. */
  readonly release: Method<[claim: EffectClaim, wait?: WaitOptions], boolean>;
  /**
   * Records the value of an effect that was done without a claim, unless it is
   * recorded already or a worker runs it: then it answers what `claim` would.
   * Meant to be prepared, so that what is done and the record of it are one
   * transaction; `transact` does that for a body that only has to run once. In
   * strict replay it only tells what is recorded.
   * @throws HoldfastError `EFFECT_CONFLICT`, `EFFECT_RESULT_UNSTORABLE`, `SESSION_NOT_FOUND`, `SESSION_DELETED`, `EFFECT_NOT_RECORDED`, `EFFECT_UNFINISHED`
   * @example
   * const record = effects.record.prepare(turn, "reserve", { kind: "reserve", input: 4 }, { seat: 4 });
   * await database.write("reserve", function* () {
   *   yield* run(sql`UPDATE seat SET taken = 1 WHERE id = 4`);
   *   const outcome = yield* record();
   *   return outcome.kind === "recorded" ? outcome : yield* rollbackWith(outcome);
   * });
   */
  readonly record: Method<
    [
      scope: EffectScope,
      key: string,
      envelope: EffectEnvelope,
      value: unknown,
      options?: RecordEffectOptions,
    ],
    RecordedEffect
  >;
  /** One effect, or nothing. @throws HoldfastError `CORRUPT_ROW`, `SESSION_NOT_FOUND`, `SESSION_DELETED` */
  readonly get: Method<
    [scope: EffectScope, key: string, options?: GetEffectOptions],
    EffectView | undefined
  >;
  /** A scope's effects without their values, in the order of their keys. @throws HoldfastError `CURSOR_INVALID`, `SESSION_NOT_FOUND`, `SESSION_DELETED` */
  readonly list: Method<[scope: EffectScope, options?: PageOptions], Page<EffectSummary>>;
  /**
   * Removes all effects of a scope, in small transactions: for one that will
   * not be run again. Those of sessions go with their session by themselves.
   * @throws HoldfastError `ABORTED`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  forget(
    scope: EffectScope,
    options?: SweepOptions<{ readonly effects: number }>,
  ): Promise<{ readonly effects: number }>;
}

/**
 * Calls to the world outside whose results are recorded, so that a run of the
 * same again gets what was recorded and does nothing twice. Holds nothing but
 * subscriptions and guesses, so there may be any number of these over one
 * database.
 */
export function effects(database: Database, options?: EffectOptions): Effects {
  const context = effectContext(database, options);
  return {
    durability: database.durability,
    execute: (scope, key, envelope, run, given) =>
      execute(context, scope, key, envelope, run, given),
    replay: (scope, key, envelope, given) => replay(context, scope, key, envelope, given),
    transact: (scope, key, envelope, body, given) =>
      transact(context, scope, key, envelope, body, given),
    sleep: async (scope, key, duration, wait) => sleep(context, scope, key, duration, wait),
    claim: context.isStrict
      ? reads(context, replayEffect, givenClaim, shownClaim)
      : writes(context, claimEffect, givenClaim, shownClaim),
    reclaim: async (scope, key, envelope, observed, given) =>
      reclaim(context, scope, key, envelope, observed, given),
    renew: writes(context, renewEffect, givenRenew, shownRenewal),
    complete: writes(context, finishEffect, givenComplete, () => undefined),
    fail: writes(context, finishEffect, givenFail, () => undefined),
    release: writes(context, releaseEffect, givenRelease),
    record: context.isStrict
      ? reads(context, replayEffect, givenRecord, shownRecorded)
      : writes(context, recordEffect, givenRecord, shownRecorded),
    get: reads(context, readEffect, givenGet, shownEffect),
    list: lists(context, effectList),
    forget: async (scope, given) => forgetInSlices(context, scope, given),
  };
}

/** Not one operation: whether a process lives is asked outside of a transaction. */
async function reclaim(
  context: EffectContext,
  scope: EffectScope,
  key: string,
  envelope: EffectEnvelope,
  observed: SeenEffectHolder,
  given: ClaimEffectOptions | undefined,
): Promise<ClaimedEffect> {
  const { database } = context;
  const { input, wait } = givenClaim(context, scope, key, envelope, given);
  const seen = checkedHolder(observed);
  if (context.isStrict) {
    const answer = await database.read(replayEffect(context), input, wait);
    return shownClaim(context, answer, input);
  }
  const death = await provenDeath(database, seen);
  const claim = { ...input, death };
  const outcome = await database.write(claimEffect(context), claim, wait);
  return shownClaim(context, outcome, claim);
}
