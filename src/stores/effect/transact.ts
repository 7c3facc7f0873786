import { effectResultUnstorable } from "../../model/effect-errors.ts";
import type { EffectOutcome } from "../../model/effect.ts";
import type { Encoded } from "../../model/encoded.ts";
import { isOfTheStore } from "../../model/errors.ts";
import type { ProvenDeath } from "../../model/lease.ts";
import { newToken } from "../../model/token.ts";
import type { Isolation } from "../../sql/isolation.ts";
import { rollbackWith, startedBody } from "../../sql/operation.ts";
import type { Tx } from "../../sql/operation.ts";
import type { WaitOptions } from "../../sql/database.ts";
import type { SettledEffect } from "./claim.ts";
import { namesOf } from "./effect-row.ts";
import type { WantedEffect } from "./effect-row.ts";
import type { EffectSurroundings } from "./context.ts";
import { recordEffect } from "./record.ts";
import type { RecordEffectOutcome } from "./record.ts";
import { failureOf } from "./running.ts";
import { readyEffect, stepOf } from "./steps.ts";
import type { Step } from "./steps.ts";

/** What is done in the transaction that records it. It may be run again, so it is pure apart from its statements. */
export type EffectBody<T> = () => Tx<T>;

export interface TransactTerms<T> {
  readonly body: EffectBody<T>;
  /** Serializable by default: the body is the caller's. */
  readonly isolation: Isolation | undefined;
  readonly wait: WaitOptions;
}

/**
 * What an effect came to that is done in this very database: as it is
 * recorded, or by doing and recording it in one transaction. What the body
 * throws is recorded in a transaction of its own, since the first rolls back.
 *
 * @throws HoldfastError see `Effects.transact`
 */
export async function transactEffect<T>(
  around: EffectSurroundings,
  wanted: WantedEffect,
  terms: TransactTerms<T>,
): Promise<SettledEffect> {
  const attempt = around.isStrict
    ? undefined
    : (death: ProvenDeath | undefined): Promise<Step> =>
        tryToTransact(around, wanted, terms, death);
  const ready = await readyEffect(around, wanted, attempt, terms.wait);
  if (ready.kind === "settled") return ready.effect;
  throw new Error("Nothing is claimed here.");
}

async function tryToTransact<T>(
  around: EffectSurroundings,
  wanted: WantedEffect,
  { body, isolation, wait: { signal } }: TransactTerms<T>,
  death: ProvenDeath | undefined,
): Promise<Step> {
  const { database, clock, entropy } = around;
  const recording = {
    effect: wanted,
    token: newToken(entropy),
    now: () => clock.now(),
    death,
  };
  try {
    const answer = await database.write(
      "transactEffect",
      function* (): Tx<RecordEffectOutcome> {
        const outcome = completed(
          around,
          wanted,
          yield* startedBody("transactEffect", body),
        );
        const recorded = yield* recordEffect({ ...recording, outcome });
        return recorded.kind === "recorded"
          ? recorded
          : yield* rollbackWith(recorded);
      },
      { signal, isolation },
    );
    return stepAfter(around, wanted, answer);
  } catch (error) {
    if (isOfTheStore(error)) throw error;
    const outcome = failureOf(around, error, false);
    const input = { ...recording, outcome };
    const answer = await database.write(recordEffect, input, { signal });
    return stepAfter(around, wanted, answer);
  }
}

function completed(
  { codec }: EffectSurroundings,
  wanted: WantedEffect,
  value: unknown,
): EffectOutcome {
  try {
    const encoded = codec.encode(value) as Encoded;
    return { status: "completed", isTransient: false, value: encoded };
  } catch (cause) {
    throw effectResultUnstorable(namesOf(wanted), cause);
  }
}

function stepAfter(
  around: EffectSurroundings,
  wanted: WantedEffect,
  answer: RecordEffectOutcome,
): Step {
  if (answer.kind !== "recorded") return stepOf(around, wanted, answer);
  around.frontier.advance(wanted);
  return { kind: "settled", effect: answer.effect };
}
