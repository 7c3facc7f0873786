import { effectUnfinished } from "../../model/effect-errors.ts";
import { isHoldfastError } from "../../model/errors.ts";
import { expiryAt } from "../../model/lease.ts";
import type { ProvenDeath } from "../../model/lease.ts";
import { jittered, retryPauseMs } from "../../model/retry-policy.ts";
import type { RetryPolicy } from "../../model/retry-policy.ts";
import { newToken } from "../../model/token.ts";
import type { WaitOptions } from "../../sql/database.ts";
import { claimEffect } from "./claim.ts";
import type { SettledEffect } from "./claim.ts";
import { namesOf } from "./effect-row.ts";
import type { WantedEffect } from "./effect-row.ts";
import type { EffectSurroundings } from "./context.ts";
import { runClaimed } from "./running.ts";
import type { RunTerms } from "./running.ts";
import { readyEffect, stepOf } from "./steps.ts";
import type { Attempt, Ready, Step } from "./steps.ts";

/** What is done about an effect; without a way of running it nothing is run. */
export interface ExecuteTerms<T> {
  readonly running: RunTerms<T> | undefined;
  readonly retry: RetryPolicy;
  readonly wait: WaitOptions;
}

/**
 * What an effect came to: as it is recorded, or by running it and recording
 * that. A transient failure is tried again as the next attempt, as often as
 * the policy says; each attempt is recorded, so that a replay makes the same.
 *
 * @throws HoldfastError see `Effects.execute`
 */
export async function executeEffect<T>(
  around: EffectSurroundings,
  first: WantedEffect,
  terms: ExecuteTerms<T>,
): Promise<SettledEffect> {
  const { running, retry, wait } = terms;
  for (let wanted = first; ;) {
    const attempt = attemptOf(around, wanted, terms);
    const ready = await readyEffect(around, wanted, attempt, wait);
    const settled = await settledBy(around, ready, running);
    const { status, isTransient, settledAt } = settled;
    if (status === "completed" || !isTransient) return settled;
    const pauseMs = retryPauseMs(retry, wanted.attempt - first.attempt + 1);
    if (pauseMs === undefined) return settled;
    wanted = {
      ...wanted,
      attempt: wanted.attempt + 1,
      dueAt: expiryAt(settledAt, jittered(pauseMs, around.random())),
    };
  }
}

function attemptOf<T>(
  around: EffectSurroundings,
  wanted: WantedEffect,
  { running, wait }: ExecuteTerms<T>,
): Attempt {
  return running === undefined
    ? undefined
    : (death) => tryToClaim(around, wanted, running.ttlMs, death, wait.signal);
}

function settledBy<T>(
  around: EffectSurroundings,
  ready: Ready,
  running: RunTerms<T> | undefined,
): SettledEffect | Promise<SettledEffect> {
  if (ready.kind === "settled") return ready.effect;
  if (running === undefined) throw effectUnfinished(namesOf(ready.claim));
  return runClaimed(around, ready.claim, running);
}

async function tryToClaim(
  around: EffectSurroundings,
  wanted: WantedEffect,
  ttlMs: number,
  death: ProvenDeath | undefined,
  signal: AbortSignal | undefined,
): Promise<Step> {
  const { database, clock, entropy } = around;
  const input = {
    effect: wanted,
    process: database.owner,
    token: newToken(entropy),
    now: () => clock.now(),
    ttlMs,
    death,
  };
  try {
    const outcome = await database.write(claimEffect, input, { signal });
    return stepOf(around, wanted, outcome);
  } catch (error) {
    if (!isHoldfastError(error) || error.code !== "OUTCOME_UNKNOWN")
      throw error;
    // With the same token a claim that was made is had again; nobody would know of it otherwise.
    return stepOf(around, wanted, await database.write(claimEffect, input));
  }
}
