import { durationMs, type Duration } from "../../model/time/durations.ts";
import { effectResultRefused, effectTitle, effectUnfinished } from "../../model/effect/errors.ts";
import type { EffectEnvelope } from "../../model/effect/envelope.ts";
import { isHoldfastError } from "../../model/errors.ts";
import { expiryAt, type ProvenDeath } from "../../model/lease.ts";
import { jittered, retryPauseMs, type RetryPolicy } from "../../model/time/retry-policy.ts";
import { checkedCount, draftOf } from "../../model/shape.ts";
import { newToken } from "../../model/ids/token.ts";
import type { WaitOptions } from "../../sql/database.ts";
import { provenDeath } from "../lease/context.ts";
import { onlyWait, optionsAndWait } from "../method.ts";
import { waitUntil } from "../wait.ts";
import { claimEffect, type ClaimEffectOutcome, type EffectClaim } from "./claim.ts";
import {
  conflictOf,
  effectRequest,
  readFailure,
  readValue,
  type EffectContext,
} from "./context.ts";
import { effectChanged, namesOf, type EffectRequest, type SettledEffect } from "./effect-row.ts";
import { askEffect, replayEffect } from "./read.ts";
import {
  checkedFunction,
  givenRun,
  release,
  runClaimed,
  type EffectFunction,
  type RunTerms,
} from "./run.ts";
import { deletionOf, type EffectScope } from "./scope.ts";

/** The retry policy for transient failures. */
interface EffectRetry {
  /** Up to 1,000. */
  readonly maxRetries: number;
  /** The first pause, which doubles; defaults to 0.1 seconds. */
  readonly backoff?: Duration;
  /** The longest pause; defaults to a minute. */
  readonly backoffMax?: Duration;
}

/**
 * Options of `replay`. The timeout limits the wait for another worker that runs the effect, or for
 * its due time.
 */
export interface EffectReplayOptions<T> extends WaitOptions {
  /** The number of the attempt; defaults to 1. */
  readonly attempt?: number;
  /**
   * Returns true for a value that you can use, whether just returned or recorded. Any other value
   * is refused with `EFFECT_RESULT_REFUSED`.
   */
  readonly accept?: (value: unknown) => value is T;
  /** The policy for retrying transient failures as further attempts; defaults to no retries. */
  readonly retry?: EffectRetry;
}

export interface EffectExecuteOptions<T> extends EffectReplayOptions<T> {
  /** The longest time that the worker may go without renewing its claim; defaults to 30 seconds. */
  readonly lease?: Duration;
  /** The earliest start, counted from the first call. */
  readonly delay?: Duration;
  /**
   * Returns true for failures that another attempt may fix; defaults to errors with `transient:
   * true`. A predicate that throws counts as false.
   */
  readonly isTransient?: (error: unknown) => boolean;
}

const replayNames = ["attempt", "accept", "retry"] as const;
const executeNames = [...replayNames, "lease", "delay", "isTransient"] as const;

/** See `Effects.execute`. */
export async function execute<T>(
  context: EffectContext,
  scope: EffectScope,
  key: string,
  envelope: EffectEnvelope,
  run: EffectFunction<T>,
  given?: EffectExecuteOptions<T>,
): Promise<T> {
  const { options, wait } = optionsAndWait(given, executeNames);
  const request = effectRequest(context, scope, key, envelope, options);
  const { signal } = wait;
  const { accept } = checkedAccept(options);
  const running = givenRun(context, run, options, signal);
  const terms = {
    running: context.isStrict ? undefined : running,
    retry: checkedRetry(options.retry),
    wait,
  };
  const settled = await settleEffect(context, request, terms);
  return resultOf(context, request, settled, accept);
}

/** See `Effects.replay`. */
export async function replay<T>(
  context: EffectContext,
  scope: EffectScope,
  key: string,
  envelope: EffectEnvelope,
  given?: EffectReplayOptions<T>,
): Promise<T> {
  const { options, wait } = optionsAndWait(given, replayNames);
  const request = effectRequest(context, scope, key, envelope, options);
  const { accept } = checkedAccept(options);
  const retry = checkedRetry(options.retry);
  const terms = { running: undefined, retry, wait };
  const settled = await settleEffect(context, request, terms);
  return resultOf(context, request, settled, accept);
}

/** See `Effects.sleep`. */
export async function sleep(
  context: EffectContext,
  scope: EffectScope,
  key: string,
  duration: Duration,
  wait?: WaitOptions,
): Promise<void> {
  const delay = durationMs(duration, "duration");
  const envelope = { kind: "sleep", input: { ms: delay } };
  await execute(context, scope, key, envelope, () => undefined, {
    ...onlyWait(wait),
    delay,
  });
}

interface Accepting<T> {
  readonly accept?: ((value: unknown) => value is T) | undefined;
}

function checkedAccept<T>({ accept }: Accepting<T>): Accepting<T> {
  return accept === undefined ? {} : { accept: checkedFunction("accept", accept) };
}

const noRetry: RetryPolicy = { maxRetries: 0, backoffMs: 0, backoffMaxMs: 0 };

function checkedRetry(retry: EffectRetry | undefined): RetryPolicy {
  if (retry === undefined) return noRetry;
  const {
    maxRetries,
    backoff = 100,
    backoffMax = "1 min",
  } = draftOf("retry", retry, ["maxRetries", "backoff", "backoffMax"]);
  return {
    maxRetries: checkedCount("retry.maxRetries", maxRetries, { max: 1_000 }),
    backoffMs: durationMs(backoff, "retry.backoff"),
    backoffMaxMs: durationMs(backoffMax, "retry.backoffMax"),
  };
}

/** @throws HoldfastError `EFFECT_RESULT_REFUSED`, `CORRUPT_ROW`, or what the effect threw */
function resultOf<T>(
  context: EffectContext,
  request: EffectRequest,
  settled: SettledEffect,
  accept: Accepting<T>["accept"],
): T {
  if (settled.status === "failed") throw readFailure(context, settled);
  const value = readValue(context, settled);
  if (accept === undefined || accept(value)) return value as T;
  throw effectResultRefused(namesOf(request), "recorded");
}

/** Settings for one effect; without `running` nothing is run. */
interface ExecuteTerms<T> {
  readonly running: RunTerms<T> | undefined;
  readonly retry: RetryPolicy;
  readonly wait: WaitOptions;
}

/**
 * Returns the recorded outcome of an effect, or runs the effect and records its outcome. A
 * transient failure is retried as the next attempt, as often as the policy allows. Each attempt is
 * recorded, so that a replay makes the same attempts.
 *
 * @throws HoldfastError see `Effects.execute`
 */
async function settleEffect<T>(
  context: EffectContext,
  first: EffectRequest,
  { running, retry, wait }: ExecuteTerms<T>,
): Promise<SettledEffect> {
  for (let request = first; ;) {
    const attempt = attemptAt(context, request, running, wait.signal);
    const ready = await readyEffect(context, request, attempt, wait);
    const settled = await settledBy(context, ready, running);
    const { status, isTransient, settledAt } = settled;
    if (status === "completed" || !isTransient) return settled;
    const pauseMs = retryPauseMs(retry, request.attempt - first.attempt + 1);
    if (pauseMs === undefined) return settled;
    request = {
      ...request,
      attempt: request.attempt + 1,
      dueAt: expiryAt(settledAt, jittered(pauseMs, context.random())),
    };
  }
}

function attemptAt<T>(
  context: EffectContext,
  request: EffectRequest,
  running: RunTerms<T> | undefined,
  signal: AbortSignal | undefined,
): Attempt {
  return running === undefined
    ? undefined
    : (death) => tryToClaim(context, request, running.leaseMs, death, signal);
}

function settledBy<T>(
  context: EffectContext,
  ready: Ready,
  running: RunTerms<T> | undefined,
): SettledEffect | Promise<SettledEffect> {
  if (ready.kind === "settled") return ready;
  if (running === undefined) throw effectUnfinished(namesOf(ready.claim));
  return runClaimed(context, ready.claim, running);
}

async function tryToClaim(
  context: EffectContext,
  effect: EffectRequest,
  leaseMs: number,
  death: ProvenDeath | undefined,
  signal: AbortSignal | undefined,
): Promise<Step> {
  const { database, entropy } = context;
  const token = newToken(entropy);
  const input = { effect, process: database.owner, token, leaseMs, death };
  const claim = context.seal.knowing(claimEffect(context), "write", true);
  try {
    return stepOf(context, effect, await database.write(claim, input, { signal }));
  } catch (error) {
    if (!isHoldfastError(error) || error.code !== "OUTCOME_UNKNOWN") throw error;
    // The same token gets the same claim again. Otherwise no worker would know of a claim that was
    // committed.
    return stepOf(context, effect, await database.write(claim, input));
  }
}

/** The answer to a caller: the outcome, or the right to run the effect. */
type Ready =
  | (SettledEffect & { readonly kind: "settled" })
  | { readonly kind: "claimed"; readonly claim: EffectClaim };

export type Step =
  | Ready
  /** Another worker holds it, or it is not due. */
  | { readonly kind: "later"; readonly key: number; readonly again: number };

/** Handles an effect that is free or whose holder is dead; undefined in strict replay. */
type Attempt = ((death: ProvenDeath | undefined) => Promise<Step>) | undefined;

/**
 * Asks for an effect until it is settled or claimed. It retries when the holder settles or releases
 * the effect, when the holder's lease expires or its process dies, and when the effect is due.
 *
 * @throws HoldfastError `EFFECT_CONFLICT`, `SESSION_NOT_FOUND`,
 *   `SESSION_DELETED`, `CORRUPT_ROW`, those of `waitUntil`, and in strict
 *   replay `EFFECT_NOT_RECORDED` and `EFFECT_UNFINISHED`
 */
export async function readyEffect(
  context: EffectContext,
  request: EffectRequest,
  attempt: Attempt,
  wait: WaitOptions,
): Promise<Ready> {
  const step = await nextStep(context, request, attempt, wait.signal);
  return step.kind === "later" ? waitForStep(context, request, step.key, attempt, wait) : step;
}

/**
 * Reads first, unless the effect is most likely new, since a settled effect needs no write
 * transaction.
 */
function nextStep(
  context: EffectContext,
  request: EffectRequest,
  attempt: Attempt,
  signal: AbortSignal | undefined,
): Promise<Step> {
  return attempt !== undefined && context.frontier.isPast(request)
    ? attempt(undefined)
    : askedStep(context, request, attempt, signal);
}

async function askedStep(
  context: EffectContext,
  effect: EffectRequest,
  attempt: Attempt,
  signal: AbortSignal | undefined,
): Promise<Step> {
  const { database } = context;
  const input = { effect };
  if (attempt === undefined) {
    const recorded = await database.read(replayEffect(context), input, { signal });
    return stepOf(context, effect, recorded);
  }
  const answer = await database.read(askEffect(context), input, { signal });
  if (answer.kind === "run") return attempt(undefined);
  const death = answer.kind === "busy" ? await provenDeath(database, answer.holder) : undefined;
  return death === undefined ? stepOf(context, effect, answer) : attempt(death);
}

/** @throws HoldfastError `EFFECT_CONFLICT` */
export function stepOf(
  context: EffectContext,
  request: EffectRequest,
  answer: ClaimEffectOutcome,
): Step {
  if (answer.kind === "claimed" && answer.claim.fence === 1) context.frontier.advance(request);
  else context.frontier.retreat(request);
  switch (answer.kind) {
    case "claimed":
    case "settled":
      return answer;
    case "busy":
      return { kind: "later", key: answer.key, again: answer.holder.expiresAt };
    case "notDue":
      return { kind: "later", key: answer.key, again: answer.dueAt };
    default:
      throw conflictOf(context, request, answer);
  }
}

function waitForStep(
  context: EffectContext,
  request: EffectRequest,
  key: number,
  attempt: Attempt,
  wait: WaitOptions,
): Promise<Ready> {
  const { database, clock } = context;
  const { signal } = wait;
  const { session } = request.scope;
  return waitUntil<Ready>(
    database,
    {
      what: `the ${effectTitle(namesOf(request))}`,
      clock,
      interests: [{ operation: effectChanged, key: String(key) }, ...deletionOf(session)],
      async look() {
        const step = await nextStep(context, request, attempt, signal);
        if (step.kind === "later") return { isThere: false, again: step.again };
        if (step.kind === "claimed" && signal?.aborted === true) {
          // No caller waits for this claim any longer, and it would block other workers until it
          // expires.
          await release(context, step.claim);
          return { isThere: false };
        }
        return { isThere: true, value: step };
      },
    },
    wait,
  );
}
