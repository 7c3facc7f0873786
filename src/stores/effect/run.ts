import type { Duration } from "../../model/time/durations.ts";
import { effectLeaseLost, effectResultRefused, effectTitle } from "../../model/effect/errors.ts";
import type { EffectOutcome } from "../../model/effect/effect.ts";
import { HoldfastError, isHoldfastError, isOfTheStore } from "../../model/errors.ts";
import { BackgroundRenewal, checkedInterval } from "../renewing.ts";
import { sleepUntil } from "../wait.ts";
import type { EffectClaim } from "./claim.ts";
import { failureOf, leaseMsOf, type EffectContext } from "./context.ts";
import { namesOf, type SettledEffect } from "./effect-row.ts";
import { outcomeOf, finishEffect, releaseEffect, renewEffect } from "./finish.ts";

/** The argument of an effect's function. */
export interface EffectCall {
  /**
   * Aborts when the caller gives up or the claim is lost. A value returned after that may not be
   * recorded.
   */
  readonly signal: AbortSignal;
  /** 1, and one more for each retry of a transient failure. */
  readonly attempt: number;
  /**
   * True if this attempt was started before and did not finish. Its outside work may already have
   * happened.
   */
  readonly isRepeat: boolean;
}

export type EffectFunction<T> = (call: EffectCall) => T | Promise<T>;

/** Settings for running one effect. */
export interface RunTerms<T> {
  readonly leaseMs: number;
  readonly everyMs: number;
  readonly signal: AbortSignal | undefined;
  readonly run: EffectFunction<T>;
  readonly isTransient: (error: unknown) => boolean;
  readonly accept: ((value: unknown) => boolean) | undefined;
}

/** @throws HoldfastError `OPTION_INVALID`, `DURATION_INVALID` */
export function givenRun<T>(
  context: EffectContext,
  run: EffectFunction<T>,
  options: {
    readonly lease?: Duration | undefined;
    readonly isTransient?: ((error: unknown) => boolean) | undefined;
    readonly accept?: ((value: unknown) => boolean) | undefined;
  },
  signal: AbortSignal | undefined,
): RunTerms<T> {
  const { lease, isTransient = saysTransient, accept } = options;
  const leaseMs = leaseMsOf(context, lease);
  return {
    leaseMs,
    everyMs: checkedInterval(leaseMs, Math.floor(leaseMs / 3)),
    signal,
    run: checkedFunction("run", run),
    isTransient: checkedFunction("isTransient", isTransient),
    accept,
  };
}

function saysTransient(error: unknown): boolean {
  return (Object(error) as { readonly transient?: unknown }).transient === true;
}

/** @throws HoldfastError `OPTION_INVALID` */
export function checkedFunction<F>(option: string, given: F): F {
  if (typeof given === "function") return given;
  throw new HoldfastError("OPTION_INVALID", `Option ${option} must be a function.`, {
    option,
  });
}

/**
 * Runs a claimed effect and records its outcome. Only what the function returned or threw is
 * recorded. The effect stays in progress for the next call if the outcome cannot be stored, the
 * claim is lost, the caller gives up or the database closes.
 *
 * The caller's promise rejects at once when the claim is lost or the signal aborts. A function that
 * runs on keeps the claim until it ends, so no other worker runs the effect at the same time. If it
 * still returns a value, that value is recorded.
 *
 * @throws HoldfastError `ABORTED`, `EFFECT_LEASE_LOST`,
 *   `EFFECT_RESULT_UNSTORABLE`, `EFFECT_RESULT_REFUSED`, and those of the store
 */
export function runClaimed<T>(
  context: EffectContext,
  claim: EffectClaim,
  terms: RunTerms<T>,
): Promise<SettledEffect> {
  return new Running(context, claim, terms).settled;
}

/**
 * The argument of a function. The signal is created on first use, since most functions end before
 * anything would abort it.
 */
class OwnCall implements EffectCall {
  readonly attempt: number;
  readonly isRepeat: boolean;
  readonly #signal: () => AbortSignal;

  constructor({ attempt, fence }: EffectClaim, signal: () => AbortSignal) {
    this.attempt = attempt;
    this.isRepeat = fence > 1;
    this.#signal = signal;
  }

  get signal(): AbortSignal {
    return this.#signal();
  }
}

/** One run of a function; settles the promise of its caller. */
class Running<T> {
  readonly settled: Promise<SettledEffect>;
  readonly #context: EffectContext;
  readonly #terms: RunTerms<T>;
  readonly #keeper: Keeper;
  #controller: AbortController | undefined;
  #stopped: HoldfastError | undefined;
  #reject: (error: unknown) => void = () => undefined;

  constructor(context: EffectContext, claim: EffectClaim, terms: RunTerms<T>) {
    this.#context = context;
    this.#terms = terms;
    this.#keeper = keepEffect(context, claim, terms, (error) => this.#stop(error));
    this.settled = new Promise((resolve, reject) => {
      this.#reject = reject;
      this.#runAndRecord().then(resolve, reject);
    });
  }

  #signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#stopped !== undefined) this.#controller.abort(this.#stopped);
    }
    return this.#controller.signal;
  }

  /** Rejects the caller's promise at once. The function runs on until it notices the abort. */
  #stop(error: HoldfastError): void {
    this.#stopped ??= error;
    this.#reject(error);
    this.#controller?.abort(error);
  }

  readonly #onAbort = (): void => this.#stop(aborted(this.#keeper.held, this.#terms.signal));

  async #runAndRecord(): Promise<SettledEffect> {
    const keeper = this.#keeper;
    const { signal } = this.#terms;
    signal?.addEventListener("abort", this.#onAbort);
    try {
      if (signal?.aborted === true) this.#onAbort();
      const outcome = await this.#outcome();
      return await record(this.#context, keeper, outcome);
    } catch (error) {
      if (keeper.loss === undefined) await release(this.#context, keeper.held);
      throw error;
    } finally {
      keeper.stop();
      signal?.removeEventListener("abort", this.#onAbort);
    }
  }

  async #outcome(): Promise<EffectOutcome> {
    // Nothing has started, so there is nothing to record.
    if (this.#stopped !== undefined) throw this.#stopped;
    const { run, isTransient } = this.#terms;
    let value: unknown;
    try {
      const call = new OwnCall(this.#keeper.held, () => this.#signal());
      value = await run(call);
    } catch (thrown) {
      if (this.#stopped !== undefined || isOfTheStore(thrown)) throw thrown;
      return failureOf(this.#context, thrown, saidBy(isTransient, thrown));
    }
    return this.#completed(value);
  }

  #completed(value: unknown): EffectOutcome {
    const { accept } = this.#terms;
    if (accept !== undefined && !accept(value))
      throw effectResultRefused(namesOf(this.#keeper.held), "returned");
    return outcomeOf(this.#context, this.#keeper.held, value);
  }
}

/**
 * Asks the caller's `isTransient`, and returns false when that throws. A faulty predicate must not
 * keep the function's error from being recorded.
 */
function saidBy(isTransient: RunTerms<unknown>["isTransient"], thrown: unknown): boolean {
  try {
    return isTransient(thrown);
  } catch {
    return false;
  }
}

type Keeper = BackgroundRenewal<EffectClaim>;

function keepEffect(
  context: EffectContext,
  claim: EffectClaim,
  { leaseMs, everyMs }: Pick<RunTerms<unknown>, "leaseMs" | "everyMs">,
  onLoss: (error: HoldfastError) => void,
): Keeper {
  const { database, clock } = context;
  return new BackgroundRenewal<EffectClaim>(claim, {
    clock,
    everyMs,
    onLoss,
    expired: (held, cause) => effectLeaseLost(namesOf(held), "expired", { cause }),
    async renew(held, signal) {
      const input = { claim: held, leaseMs };
      try {
        const renewal = await database.write(renewEffect(context), input, {
          signal,
        });
        return renewal.kind === "renewed" ? { kind: "renewed", held: renewal.claim } : renewal;
      } catch (error) {
        if (isLoss(error)) return { kind: "lost", error };
        throw error;
      }
    },
  });
}

function isLoss(error: unknown): error is HoldfastError {
  return isHoldfastError(error) && error.code === "EFFECT_LEASE_LOST";
}

/**
 * Retries until the outcome is recorded or the claim is lost. A computed outcome is worth more than
 * a passing error.
 */
async function record(
  context: EffectContext,
  keeper: Keeper,
  outcome: EffectOutcome,
): Promise<SettledEffect> {
  const { database, clock } = context;
  for (let pauseMs = 10; ; pauseMs *= 2) {
    if (keeper.loss !== undefined) throw keeper.loss;
    const claim = keeper.held;
    try {
      return await database.write(finishEffect(context), { claim, outcome });
    } catch (error) {
      if (!isPassing(error)) throw error;
      const again = clock.now() + pauseMs;
      await sleepUntil(database, clock, again, keeper.signal);
    }
  }
}

function isPassing(error: unknown): boolean {
  return isHoldfastError(error) && error.retryable && !isLoss(error);
}

/**
 * Releases the claim, so that the next call does not have to wait until the lease expires. A
 * failure here must not hide the original error.
 */
export async function release(context: EffectContext, claim: EffectClaim): Promise<void> {
  await context.database.write(releaseEffect(context), { claim }).catch(() => undefined);
}

function aborted(claim: EffectClaim, signal: AbortSignal | undefined): HoldfastError {
  return new HoldfastError(
    "ABORTED",
    `The signal aborted the ${effectTitle(namesOf(claim))}. Unless it still returns a result, the next call runs it again.`,
    {},
    { cause: signal?.reason },
  );
}
