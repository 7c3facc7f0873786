import { durationMs } from "../../model/durations.ts";
import type { Duration } from "../../model/durations.ts";
import { effectResultRefused } from "../../model/effect-errors.ts";
import type { EffectEnvelope } from "../../model/effect-envelope.ts";
import { optionsOf } from "../../model/shape.ts";
import type { WaitOptions, WriteOptions } from "../../sql/database.ts";
import { checkedInterval } from "../renewing.ts";
import { givenIsolation, givenWait, waitNames } from "../given.ts";
import { checkedFunction, checkedRetryOf } from "./checks.ts";
import type { EffectRetry } from "./checks.ts";
import type { SettledEffect } from "./claim.ts";
import { namesOf } from "./effect-row.ts";
import type { WantedEffect } from "./effect-row.ts";
import { readFailure, readValue, wantedEffect } from "./context.ts";
import type { EffectSurroundings } from "./context.ts";
import { executeEffect } from "./execute.ts";
import type { ExecuteTerms } from "./execute.ts";
import type { EffectFunction } from "./running.ts";
import type { EffectScope } from "./scope.ts";
import { transactEffect } from "./transact.ts";
import type { EffectBody } from "./transact.ts";

/** The timeout is for waiting: for somebody else who runs the effect, or for its due time. */
export interface EffectReplayOptions<T> extends WaitOptions {
  /** Which attempt, 1 unless told. */
  readonly attempt?: number;
  /** Whether a value is one that you can use, returned or recorded; others are `EFFECT_RESULT_REFUSED`. */
  readonly accept?: (value: unknown) => value is T;
  /** How often a transient failure is tried again, as further attempts: never unless told. */
  readonly retry?: EffectRetry;
}

export interface EffectExecuteOptions<T> extends EffectReplayOptions<T> {
  /** How long the one who runs it may be silent: 30 seconds unless told. */
  readonly ttl?: Duration;
  /** Not before so long after it was first asked for. */
  readonly delay?: Duration;
  /** Which failures another attempt may mend: errors with `transient: true` unless told. None, where this throws. */
  readonly isTransient?: (error: unknown) => boolean;
}

export interface EffectTransactOptions extends WriteOptions {
  /** Which attempt, 1 unless told. */
  readonly attempt?: number;
}

/** Calls whose results are recorded. */
export interface EffectExecution {
  /**
   * The result of an effect: as it is recorded, or by running it and recording
   * what it returned or threw, which every later call gets. Somebody who runs
   * the same is waited for, and relieved when its process dies or its lease
   * runs out. Whatever else goes wrong leaves it to the next call to run it.
   * A function that asks for its own key waits for itself, until its signal or
   * timeout ends that: nothing tells it from any other who asks meanwhile.
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
  /** Resolves so long after it was first called, whoever calls it again. Nobody holds anything meanwhile. */
  sleep(
    scope: EffectScope,
    key: string,
    duration: Duration,
    wait?: WaitOptions,
  ): Promise<void>;
}

const replayOptionNames = [...waitNames, "attempt", "accept", "retry"] as const;
const executeOptionNames = [
  ...replayOptionNames,
  "ttl",
  "delay",
  "isTransient",
] as const;

const transactOptionNames = [...waitNames, "attempt", "isolation"] as const;

export function effectExecution(around: EffectSurroundings): EffectExecution {
  const execute: EffectExecution["execute"] = async (
    scope,
    key,
    envelope,
    run,
    given,
  ) => {
    const options = optionsOf(given, executeOptionNames);
    const wanted = wantedEffect(around, scope, key, envelope, options);
    const accept = acceptOf(options);
    const terms = termsOf(options, runOf(around, run, accept, options));
    const settled = await executeEffect(around, wanted, terms);
    return resultOf(around, wanted, settled, accept);
  };
  return {
    execute,
    async replay(scope, key, envelope, given) {
      const options = optionsOf(given, replayOptionNames);
      const wanted = wantedEffect(around, scope, key, envelope, options);
      const accept = acceptOf(options);
      const terms = termsOf(options, undefined);
      const settled = await executeEffect(around, wanted, terms);
      return resultOf(around, wanted, settled, accept);
    },
    async transact<T>(
      scope: EffectScope,
      key: string,
      envelope: EffectEnvelope,
      body: EffectBody<T>,
      given?: EffectTransactOptions,
    ) {
      const options = optionsOf(given, transactOptionNames);
      const wanted = wantedEffect(around, scope, key, envelope, options);
      const own = checkedFunction("body", body);
      const wait = givenWait(options);
      const isolation = givenIsolation(options.isolation);
      const terms = { body: own, isolation, wait };
      const settled = await transactEffect(around, wanted, terms);
      if (settled.status === "failed") throw readFailure(around, settled);
      return readValue(around, settled) as T;
    },
    async sleep(scope, key, duration, wait) {
      const delayMs = durationMs(duration, "duration");
      const envelope = { kind: "sleep", input: { ms: delayMs } };
      await execute(scope, key, envelope, () => undefined, {
        ...givenWait(optionsOf(wait, waitNames)),
        delay: delayMs,
      });
    },
  };
}

type Running<T> = ExecuteTerms<T>["running"];

function runOf<T>(
  { ttlMs: ttlDefault, isStrict }: EffectSurroundings,
  run: EffectFunction<T>,
  accept: Accept<T>,
  options: EffectExecuteOptions<T>,
): Running<T> {
  const { ttl, isTransient = saysTransient, signal } = options;
  const ttlMs = ttl === undefined ? ttlDefault : durationMs(ttl, "ttl");
  const running = {
    ttlMs,
    everyMs: checkedInterval(ttlMs, Math.floor(ttlMs / 3)),
    signal,
    run: checkedFunction("run", run),
    isTransient: checkedFunction("isTransient", isTransient),
    accept,
  };
  return isStrict ? undefined : running;
}

type Accept<T> = ((value: unknown) => value is T) | undefined;

function acceptOf<T>({ accept }: EffectReplayOptions<T>): Accept<T> {
  return accept === undefined ? undefined : checkedFunction("accept", accept);
}

function saysTransient(error: unknown): boolean {
  return (Object(error) as { readonly transient?: unknown }).transient === true;
}

function termsOf<T>(
  options: EffectReplayOptions<T>,
  running: Running<T>,
): ExecuteTerms<T> {
  const retry = checkedRetryOf(options.retry);
  return { running, retry, wait: givenWait(options) };
}

/** @throws HoldfastError `EFFECT_RESULT_REFUSED`, `CORRUPT_ROW`, or what the effect threw */
function resultOf<T>(
  around: EffectSurroundings,
  wanted: WantedEffect,
  settled: SettledEffect,
  accept: Accept<T>,
): T {
  if (settled.status === "failed") throw readFailure(around, settled);
  const value = readValue(around, settled);
  if (accept === undefined || accept(value)) return value as T;
  throw effectResultRefused(namesOf(wanted), "recorded");
}
