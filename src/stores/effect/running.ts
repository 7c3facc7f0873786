import {
  effectLeaseLost,
  effectResultRefused,
  effectResultUnstorable,
  effectTitle,
} from "../../model/effect-errors.ts";
import type { EffectOutcome } from "../../model/effect.ts";
import type { Encoded } from "../../model/encoded.ts";
import { isOfTheStore } from "../../model/errors.ts";
import { HoldfastError, isHoldfastError } from "../../model/errors.ts";
import { BackgroundRenewal } from "../renewing.ts";
import { sleepUntil } from "../wait.ts";
import type { EffectClaim, SettledEffect } from "./claim.ts";
import { namesOf } from "./effect-row.ts";
import { writtenFailure } from "./context.ts";
import type { EffectSurroundings } from "./context.ts";
import { finishEffect, releaseEffect, renewEffect } from "./finish.ts";

/** What a function that is run knows. */
export interface EffectContext {
  /** Aborts when the caller gives up or the claim is lost: what is returned then may not be recorded. */
  readonly signal: AbortSignal;
  /** 1, and one more for each retry of a transient failure. */
  readonly attempt: number;
  /** Somebody began this attempt before and did not finish: what it does outside may have happened. */
  readonly isRepeat: boolean;
}

export type EffectFunction<T> = (context: EffectContext) => T | Promise<T>;

/** How an effect is run. */
export interface RunTerms<T> {
  readonly ttlMs: number;
  readonly everyMs: number;
  readonly signal: AbortSignal | undefined;
  readonly run: EffectFunction<T>;
  readonly isTransient: (error: unknown) => boolean;
  readonly accept: ((value: unknown) => boolean) | undefined;
}

/**
 * Runs an effect that was claimed and records what it came to. Only what the
 * function returned or threw is recorded: when it cannot be stored, the claim
 * is lost, the caller gives up or the database closes, the effect stays in
 * progress for the next call.
 *
 * The caller is told at once when the claim is lost or the signal aborts. A
 * function that goes on regardless keeps the claim until it ends, so that
 * nobody runs the same beside it; if it returns something after all, that is
 * recorded.
 *
 * @throws HoldfastError `ABORTED`, `EFFECT_LEASE_LOST`,
 *   `EFFECT_RESULT_UNSTORABLE`, `EFFECT_RESULT_REFUSED`, and those of the store
 */
export function runClaimed<T>(
  around: EffectSurroundings,
  claim: EffectClaim,
  terms: RunTerms<T>,
): Promise<SettledEffect> {
  return new Running(around, claim, terms).settled;
}

/** What a function is given. Its signal is made when it asks for it: most end before anybody would abort it. */
class Call implements EffectContext {
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

/** One run of a function, and how its caller learns of the end. */
class Running<T> {
  readonly settled: Promise<SettledEffect>;
  readonly #around: EffectSurroundings;
  readonly #terms: RunTerms<T>;
  readonly #keeper: Keeper;
  #controller: AbortController | undefined;
  #stopped: HoldfastError | undefined;
  #reject: (error: unknown) => void = () => undefined;

  constructor(
    around: EffectSurroundings,
    claim: EffectClaim,
    terms: RunTerms<T>,
  ) {
    this.#around = around;
    this.#terms = terms;
    this.#keeper = keepEffect(around, claim, terms, (error) =>
      this.#stop(error),
    );
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

  /** The caller is told at once; the function goes on until it notices. */
  #stop(error: HoldfastError): void {
    this.#stopped ??= error;
    this.#reject(error);
    this.#controller?.abort(error);
  }

  readonly #onAbort = (): void =>
    this.#stop(aborted(this.#keeper.held, this.#terms.signal));

  async #runAndRecord(): Promise<SettledEffect> {
    const keeper = this.#keeper;
    const { signal } = this.#terms;
    signal?.addEventListener("abort", this.#onAbort);
    try {
      if (signal?.aborted === true) this.#onAbort();
      const outcome = await this.#outcome();
      return await record(this.#around, keeper, outcome);
    } catch (error) {
      if (keeper.loss === undefined) await giveBack(this.#around, keeper.held);
      throw error;
    } finally {
      keeper.stop();
      signal?.removeEventListener("abort", this.#onAbort);
    }
  }

  async #outcome(): Promise<EffectOutcome> {
    // Nothing was begun, so nothing is to be recorded.
    if (this.#stopped !== undefined) throw this.#stopped;
    const { run, isTransient } = this.#terms;
    let value: unknown;
    try {
      const call = new Call(this.#keeper.held, () => this.#signal());
      value = await run(call);
    } catch (thrown) {
      if (this.#stopped !== undefined || isOfTheStore(thrown)) throw thrown;
      return failureOf(this.#around, thrown, saidBy(isTransient, thrown));
    }
    return this.#completed(value);
  }

  #completed(value: unknown): EffectOutcome {
    const { accept } = this.#terms;
    const names = namesOf(this.#keeper.held);
    if (accept !== undefined && !accept(value))
      throw effectResultRefused(names, "returned");
    try {
      const encoded = this.#around.codec.encode(value) as Encoded;
      return { status: "completed", isTransient: false, value: encoded };
    } catch (cause) {
      throw effectResultUnstorable(names, cause);
    }
  }
}

/** What cannot be told is not transient: what the function threw is recorded, whatever is wrong with the question. */
function saidBy(
  isTransient: RunTerms<unknown>["isTransient"],
  thrown: unknown,
): boolean {
  try {
    return isTransient(thrown);
  } catch {
    return false;
  }
}

/** What a function threw, as it is recorded. */
export function failureOf(
  around: EffectSurroundings,
  thrown: unknown,
  isTransient: boolean,
): EffectOutcome {
  const value = writtenFailure(around, thrown);
  return { status: "failed", isTransient, value };
}

type Keeper = BackgroundRenewal<EffectClaim>;

function keepEffect(
  { database, clock }: EffectSurroundings,
  claim: EffectClaim,
  { ttlMs, everyMs }: { readonly ttlMs: number; readonly everyMs: number },
  onLoss: (error: HoldfastError) => void,
): Keeper {
  return new BackgroundRenewal<EffectClaim>(claim, {
    clock,
    everyMs,
    onLoss,
    expired: (held, cause) =>
      effectLeaseLost(namesOf(held), "expired", { cause }),
    async renew(held, signal) {
      const answer = await database.write(
        renewEffect,
        { claim: held, now: () => clock.now(), ttlMs },
        { signal },
      );
      if (answer.kind === "renewed")
        return { kind: "renewed", held: answer.claim };
      return answer.kind === "over"
        ? answer
        : {
            kind: "lost",
            error: effectLeaseLost(namesOf(held), answer.reason),
          };
    },
  });
}

/** Tries until it is done or the claim is lost: what was computed is worth more than an error that passes. */
async function record(
  { database, clock }: EffectSurroundings,
  keeper: Keeper,
  outcome: EffectOutcome,
): Promise<SettledEffect> {
  for (let pauseMs = 10; ; pauseMs *= 2) {
    if (keeper.loss !== undefined) throw keeper.loss;
    const claim = keeper.held;
    try {
      const answer = await database.write(finishEffect, {
        claim,
        now: () => clock.now(),
        outcome,
      });
      if (answer.kind === "lost")
        throw effectLeaseLost(namesOf(claim), answer.reason);
      const recorded = answer.kind === "already" ? answer.outcome : outcome;
      return { ...recorded, key: claim.key, settledAt: answer.settledAt };
    } catch (error) {
      if (!isPassing(error)) throw error;
      const again = clock.now() + pauseMs;
      await sleepUntil(database, clock, again, keeper.signal);
    }
  }
}

function isPassing(error: unknown): boolean {
  return (
    isHoldfastError(error) &&
    error.retryable &&
    error.code !== "EFFECT_LEASE_LOST"
  );
}

/** So that the next call need not wait for the lease to run out. Its failure must not hide why. */
export async function giveBack(
  { database, clock }: EffectSurroundings,
  claim: EffectClaim,
): Promise<void> {
  await database
    .write(releaseEffect, { claim, now: () => clock.now() })
    .catch(() => undefined);
}

function aborted(
  claim: EffectClaim,
  signal: AbortSignal | undefined,
): HoldfastError {
  return new HoldfastError(
    "ABORTED",
    `The signal aborted the ${effectTitle(namesOf(claim))}. Unless it ends with a result all the same, the next call runs it again.`,
    {},
    { cause: signal?.reason },
  );
}
