import type { Duration } from "../../model/time/durations.ts";
import type { EffectEnvelope } from "../../model/effect/envelope.ts";
import type { Database, Durability, WaitOptions } from "../../sql/database.ts";
import { provenDeath } from "../lease/context.ts";
import { lists, type Page, type PageOptions } from "../list.ts";
import { nothingToLock, readsLocking, writes, type Method } from "../method.ts";
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
  refuseFailed,
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
  lockReadEffect,
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
 * The effects of a database: calls whose results are recorded. Prepared, `record` may be part of
 * any transaction. The other methods may only be part of a `readCommitted` one.
 */
export interface Effects {
  /** The promise of an acknowledgement: that of the database. */
  readonly durability: Durability;
  /**
   * Returns the recorded result of an effect, or runs the function and records what it returned or
   * threw. Every later call gets the recorded result. While another worker runs the effect, the
   * call waits, and takes over when that worker's process dies or its lease expires. After any
   * other failure the next call runs the function again. A function that calls its own key waits
   * for itself until its signal or timeout ends the wait, since the store cannot tell it from any
   * other caller.
   *
   * A thrown error is rethrown with name, message, code, cause and stack, by this call and by later
   * ones. A refusal by Holdfast is rethrown as a HoldfastError with its details. A value above the
   * size limit is recorded as the failure `VALUE_TOO_LARGE`, so the function does not run again
   * because of it.
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
   * Strict replay: returns the recorded result, and never runs anything.
   * @throws HoldfastError `EFFECT_NOT_RECORDED`, `EFFECT_UNFINISHED`, `EFFECT_CONFLICT`
   */
  replay<T>(
    scope: EffectScope,
    key: string,
    envelope: EffectEnvelope,
    options?: EffectReplayOptions<T>,
  ): Promise<T>;
  /**
   * Runs a body in this database, in one transaction with its record, so the work happens exactly
   * once. A body that throws leaves only the record of its error. The transaction is serializable
   * by default, like every user body. Use `isolation: "readCommitted"` for bodies that lock with
   * `lockRow` the rows they decide by.
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
  /**
   * Resolves the given time after the first call, no matter which worker calls it again. No claim,
   * lock or connection is held while waiting.
   */
  sleep(scope: EffectScope, key: string, duration: Duration, wait?: WaitOptions): Promise<void>;
  /**
   * Claims an effect to run it, or returns the recorded result or the worker that runs it. This is
   * one part of `execute`, for callers that run effects in their own way. In strict replay it only
   * returns what is recorded.
   *
   * @throws HoldfastError `EFFECT_CONFLICT`, `SESSION_NOT_FOUND`, `SESSION_DELETED`,
   *   `EFFECT_NOT_RECORDED`, `EFFECT_UNFINISHED`
   * @example
   * const outcome = await effects.claim(turn, "model-1", { kind: "llm", input: prompt });
   * if (outcome.kind === "claimed") await effects.complete(outcome.claim, await model.call(prompt));
   */
  readonly claim: Method<
    [scope: EffectScope, key: string, envelope: EffectEnvelope, options?: ClaimEffectOptions],
    ClaimedEffect
  >;
  /**
   * Does the same as `claim`, and takes the effect from the observed holder if its process is
   * proven dead. One of several callers that observed the same holder wins.
   *
   * @throws HoldfastError those of `claim`
   */
  reclaim(
    scope: EffectScope,
    key: string,
    envelope: EffectEnvelope,
    observed: SeenEffectHolder,
    options?: ClaimEffectOptions,
  ): Promise<ClaimedEffect>;
  /**
   * Extends a claim; never shortens it.
   * @throws HoldfastError `EFFECT_LEASE_LOST`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  readonly renew: Method<[claim: EffectClaim, options?: RenewEffectOptions], EffectClaim>;
  /**
   * Records the value of an effect. It may be repeated with the same claim; the first value stays.
   * A value above the size limit is recorded as a failure. This call throws the failure that is
   * recorded, also when the same claim has recorded it before. Prepared, the call throws and
   * records nothing.
   *
   * @throws HoldfastError `EFFECT_LEASE_LOST`, `EFFECT_RESULT_UNSTORABLE`, `VALUE_TOO_LARGE`,
   *   `SESSION_NOT_FOUND`, `SESSION_DELETED`
   * @example
   * const complete = effects.complete.prepare(claim, { invoice: 42 });
   * await database.write("bill", function* () {
   *   yield* run(sql`INSERT INTO invoice (id) VALUES (42)`);
   *   yield* complete();
   * }, { isolation: "readCommitted" });
   */
  readonly complete: Method<[claim: EffectClaim, value: unknown, wait?: WaitOptions], void>;
  /**
   * Records an error instead of a value.
   * @throws HoldfastError `EFFECT_LEASE_LOST`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  readonly fail: Method<[claim: EffectClaim, error: unknown, options?: FailEffectOptions], void>;
  /**
   * Releases a claim, so that the next caller runs the effect. Returns false when the claim was no
   * longer held, for example because it had expired.
   */
  readonly release: Method<[claim: EffectClaim, wait?: WaitOptions], boolean>;
  /**
   * Records the value of an effect that was done without a claim. If the effect is already
   * recorded, or a worker runs it, nothing is recorded and the answer is that of `claim`. It is
   * meant to be prepared, so that the work and its record are one transaction. `transact` does the
   * same for a body that only has to run once. In strict replay it only returns what is recorded. A
   * value above the size limit is treated as by `complete`.
   *
   * @throws HoldfastError `EFFECT_CONFLICT`, `EFFECT_RESULT_UNSTORABLE`, `VALUE_TOO_LARGE`,
   *   `SESSION_NOT_FOUND`, `SESSION_DELETED`, `EFFECT_NOT_RECORDED`, `EFFECT_UNFINISHED`
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
  /**
   * Returns one effect, or undefined.
   * @throws HoldfastError `CORRUPT_ROW`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  readonly get: Method<
    [scope: EffectScope, key: string, options?: GetEffectOptions],
    EffectView | undefined
  >;
  /**
   * Lists the effects of a scope without their values, in the order of their keys.
   * @throws HoldfastError `CURSOR_INVALID`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  readonly list: Method<[scope: EffectScope, options?: PageOptions], Page<EffectSummary>>;
  /**
   * Removes all effects of a scope that will not run again, in small transactions. The effects of a
   * session are removed with their session.
   *
   * @throws HoldfastError `ABORTED`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  forget(
    scope: EffectScope,
    options?: SweepOptions<{ readonly effects: number }>,
  ): Promise<{ readonly effects: number }>;
}

/** A recorded effect does not change, so there is nothing to lock. */
const replays = readsLocking(nothingToLock);

/**
 * Calls to the outside world with recorded results. A second run of the same scope gets the
 * recorded results and does nothing twice. The object holds only subscriptions and guesses, so a
 * database may have any number of them.
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
      ? replays(context, replayEffect, givenClaim, shownClaim)
      : writes(context, claimEffect, givenClaim, shownClaim),
    reclaim: async (scope, key, envelope, observed, given) =>
      reclaim(context, scope, key, envelope, observed, given),
    renew: writes(context, renewEffect, givenRenew, shownRenewal),
    complete: writes(context, finishEffect, givenComplete, refuseFailed),
    fail: writes(context, finishEffect, givenFail, () => undefined),
    release: writes(context, releaseEffect, givenRelease),
    record: context.isStrict
      ? replays(context, replayEffect, givenRecord, shownRecorded)
      : writes(context, recordEffect, givenRecord, shownRecorded),
    get: readsLocking(lockReadEffect)(context, readEffect, givenGet, shownEffect),
    list: lists(context, effectList),
    forget: async (scope, given) => forgetInSlices(context, scope, given),
  };
}

/**
 * Uses more than one operation: the check whether a process is alive happens outside a transaction.
 */
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
  const operation = context.seal.knowing(claimEffect(context), "write", true);
  const outcome = await database.write(operation, claim, wait);
  return shownClaim(context, outcome, claim);
}
