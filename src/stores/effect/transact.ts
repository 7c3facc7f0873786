import type { EffectEnvelope } from "../../model/effect/envelope.ts";
import { isOfTheStore } from "../../model/errors.ts";
import type { ProvenDeath } from "../../model/lease.ts";
import { newToken } from "../../model/ids/token.ts";
import type { WaitOptions, WriteOptions } from "../../sql/database.ts";
import type { Isolation } from "../../sql/isolation.ts";
import { rollbackWith, type Tx } from "../../sql/operation.ts";
import { startedBody } from "../../sql/body.ts";
import { givenIsolation } from "../given.ts";
import { optionsAndWait } from "../method.ts";
import { effectRequest, failureOf, readFailure, readValue, type EffectContext } from "./context.ts";
import type { EffectRequest, SettledEffect } from "./effect-row.ts";
import { readyEffect, stepOf, type Step } from "./execute.ts";
import { completedWith } from "./finish.ts";
import { recordEffect, type RecordEffectOutcome } from "./record.ts";
import { checkedFunction } from "./run.ts";
import type { EffectScope } from "./scope.ts";

/**
 * Work done in the transaction that records it. The body may run again, so it must be pure apart
 * from its statements.
 */
export type EffectBody<T> = () => Tx<T>;

export interface EffectTransactOptions extends WriteOptions {
  /** The number of the attempt; defaults to 1. */
  readonly attempt?: number;
}

/** See `Effects.transact`. */
export async function transact<T>(
  context: EffectContext,
  scope: EffectScope,
  key: string,
  envelope: EffectEnvelope,
  body: EffectBody<T>,
  given?: EffectTransactOptions,
): Promise<T> {
  const { options, wait } = optionsAndWait(given, ["attempt", "isolation"]);
  const request = effectRequest(context, scope, key, envelope, options);
  const settled = await transactEffect(context, request, {
    body: checkedFunction("body", body),
    isolation: givenIsolation(options.isolation),
    wait,
  });
  if (settled.status === "failed") throw readFailure(context, settled);
  return readValue(context, settled) as T;
}

interface TransactTerms<T> {
  readonly body: EffectBody<T>;
  /** Serializable by default: the body is the caller's. */
  readonly isolation: Isolation | undefined;
  readonly wait: WaitOptions;
}

/**
 * Returns the recorded outcome of an effect, or runs its body and records it in one transaction. An
 * error of the body is recorded in a second transaction, since the first one rolls back.
 *
 * @throws HoldfastError see `Effects.transact`
 */
async function transactEffect<T>(
  context: EffectContext,
  request: EffectRequest,
  terms: TransactTerms<T>,
): Promise<SettledEffect> {
  const attempt = context.isStrict
    ? undefined
    : (death: ProvenDeath | undefined): Promise<Step> =>
        tryToTransact(context, request, terms, death);
  const ready = await readyEffect(context, request, attempt, terms.wait);
  if (ready.kind === "settled") return ready;
  throw new Error("Nothing is claimed here.");
}

async function tryToTransact<T>(
  context: EffectContext,
  effect: EffectRequest,
  { body, isolation, wait: { signal } }: TransactTerms<T>,
  death: ProvenDeath | undefined,
): Promise<Step> {
  const { database, entropy } = context;
  const input = { effect, token: newToken(entropy), death };
  const record = recordEffect(context);
  try {
    const answer = await database.write(
      "transactEffect",
      function* (): Tx<RecordEffectOutcome> {
        const value = yield* startedBody("transactEffect", body);
        const outcome = completedWith(context, effect, value);
        const recorded = yield* record({ ...input, outcome });
        return recorded.kind === "recorded" ? recorded : yield* rollbackWith(recorded);
      },
      { signal, isolation },
    );
    return stepAfter(context, effect, answer);
  } catch (error) {
    if (isOfTheStore(error)) throw error;
    const outcome = failureOf(context, error, false);
    const failed = { ...input, outcome };
    const answer = await database.write(record, failed, { signal });
    return stepAfter(context, effect, answer);
  }
}

function stepAfter(
  context: EffectContext,
  request: EffectRequest,
  answer: RecordEffectOutcome,
): Step {
  if (answer.kind !== "recorded") return stepOf(context, request, answer);
  context.frontier.advance(request);
  return { ...answer.effect, kind: "settled" };
}
