import { durationMs, type Duration } from "../../model/time/durations.ts";
import {
  effectNotRecorded,
  effectResultRefused,
  effectTitle,
  effectUnfinished,
} from "../../model/effect/errors.ts";
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
import { askEffect } from "./read.ts";
import {
  checkedFunction,
  givenRun,
  release,
  runClaimed,
  type EffectFunction,
  type RunTerms,
} from "./run.ts";
import { deletionOf, type EffectScope } from "./scope.ts";

/** How often a transient failure is tried again. */
interface EffectRetry {
  /** Up to 1,000. */
  readonly maxRetries: number;
  /** The first pause, which doubles; defaults to 0.1 seconds. */
  readonly backoff?: Duration;
  /** The longest pause; defaults to a minute. */
  readonly backoffMax?: Duration;
}

/** The timeout is for waiting: for another worker that runs the effect, or for its due time. */
export interface EffectReplayOptions<T> extends WaitOptions {
  /** Which attempt; defaults to 1. */
  readonly attempt?: number;
  /** Whether a value is one that you can use, returned or recorded; others are `EFFECT_RESULT_REFUSED`. */
  readonly accept?: (value: unknown) => value is T;
  /** How often a transient failure is tried again, as further attempts; defaults to never. */
  readonly retry?: EffectRetry;
}

export interface EffectExecuteOptions<T> extends EffectReplayOptions<T> {
  /** How long the worker that runs it may be silent; defaults to 30 seconds. */
  readonly lease?: Duration;
  /** Not before so long after it was first asked for. */
  readonly delay?: Duration;
  /** Which failures another attempt may mend; defaults to errors with `transient: true`. None, where this throws. */
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

/** What is done about an effect; without terms of running it nothing is run. */
interface ExecuteTerms<T> {
  readonly running: RunTerms<T> | undefined;
  readonly retry: RetryPolicy;
  readonly wait: WaitOptions;
}

/**
 * The outcome of an effect: as it is recorded, or by running it and recording
 * that. A transient failure is tried again as the next attempt, as often as
 * the policy says; each attempt is recorded, so that a replay makes the same.
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
  if (ready.kind === "settled") return ready.effect;
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
  const claim = claimEffect(context);
  try {
    return stepOf(context, effect, await database.write(claim, input, { signal }));
  } catch (error) {
    if (!isHoldfastError(error) || error.code !== "OUTCOME_UNKNOWN") throw error;
    // With the same token a claim that was made is had again; nobody would know of it otherwise.
    return stepOf(context, effect, await database.write(claim, input));
  }
}

/** What a caller has that asked for an effect: its outcome, or the right to run it. */
type Ready =
  | { readonly kind: "settled"; readonly effect: SettledEffect }
  | { readonly kind: "claimed"; readonly claim: EffectClaim };

export type Step =
  | Ready
  /** It is held, or not due. */
  | { readonly kind: "later"; readonly key: number; readonly again: number };

/** What is done about an effect that is not held, or whose holder has died; undefined in strict replay. */
type Attempt = ((death: ProvenDeath | undefined) => Promise<Step>) | undefined;

/**
 * Asks for an effect until it is settled or claimed: at once if it can be,
 * else when its holder has settled it, releases it, runs out of time or dies,
 * or when it is due.
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
 * Reads first, unless what is asked for is new by all appearances: what is
 * settled needs no transaction that writes.
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
  const input = { effect, isStrict: attempt === undefined };
  const answer = await database.read(askEffect(context), input, { signal });
  switch (answer.kind) {
    case "missing":
      throw effectNotRecorded(namesOf(effect));
    case "unfinished":
      throw effectUnfinished(namesOf(effect));
    case "free":
      if (attempt === undefined) throw effectUnfinished(namesOf(effect));
      return attempt(undefined);
    case "busy": {
      const death = await provenDeath(database, answer.holder);
      if (death !== undefined && attempt !== undefined) return attempt(death);
      const { key, holder } = answer;
      return { kind: "later", key, again: holder.expiresAt };
    }
    default:
      return stepOf(context, effect, answer);
  }
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
          // No caller waits for it any more: it would keep others away until it runs out.
          await release(context, step.claim);
          return { isThere: false };
        }
        return { isThere: true, value: step };
      },
    },
    wait,
  );
}
