import {
  effectNotRecorded,
  effectTitle,
  effectUnfinished,
} from "../../model/effect-errors.ts";
import type { ProvenDeath } from "../../model/lease.ts";
import type { WaitOptions } from "../../sql/database.ts";
import { provenDeath } from "../lease/wait.ts";
import { waitUntil } from "../wait.ts";
import type {
  ClaimEffectOutcome,
  EffectClaim,
  SettledEffect,
} from "./claim.ts";
import { namesOf } from "./effect-row.ts";
import type { WantedEffect } from "./effect-row.ts";
import { conflictOf } from "./context.ts";
import type { EffectSurroundings } from "./context.ts";
import { askEffect } from "./read.ts";
import { giveBack } from "./running.ts";
import { effectChanged } from "./topics.ts";

/** What somebody has who asked for an effect: what it came to, or the right to run it. */
export type Ready =
  | { readonly kind: "settled"; readonly effect: SettledEffect }
  | { readonly kind: "claimed"; readonly claim: EffectClaim };

export type Step =
  | Ready
  /** Somebody is at it, or it is not due. */
  | { readonly kind: "later"; readonly key: number; readonly again: number };

/** How somebody goes about an effect that nobody is at, or whose holder has died; undefined in strict replay. */
export type Attempt =
  ((death: ProvenDeath | undefined) => Promise<Step>) | undefined;

/**
 * Asks for an effect until it is settled or claimed: at once if it can be,
 * else when the one who is at it has settled it, gives it back, runs out of
 * time or dies, or when it is due.
 *
 * @throws HoldfastError `EFFECT_CONFLICT`, `SESSION_NOT_FOUND`,
 *   `SESSION_DELETED`, `CORRUPT_ROW`, those of `waitUntil`, and in strict
 *   replay `EFFECT_NOT_RECORDED` and `EFFECT_UNFINISHED`
 */
export async function readyEffect(
  around: EffectSurroundings,
  wanted: WantedEffect,
  attempt: Attempt,
  wait: WaitOptions,
): Promise<Ready> {
  const step = await nextStep(around, wanted, attempt, wait.signal);
  return step.kind === "later"
    ? waitForStep(around, wanted, step.key, attempt, wait)
    : step;
}

/**
 * Reads first, unless what is asked for is new by all appearances: what is
 * settled needs no transaction that writes.
 */
function nextStep(
  around: EffectSurroundings,
  wanted: WantedEffect,
  attempt: Attempt,
  signal: AbortSignal | undefined,
): Promise<Step> {
  return attempt !== undefined && around.frontier.isPast(wanted)
    ? attempt(undefined)
    : askedStep(around, wanted, attempt, signal);
}

async function askedStep(
  around: EffectSurroundings,
  wanted: WantedEffect,
  attempt: Attempt,
  signal: AbortSignal | undefined,
): Promise<Step> {
  const { database, clock } = around;
  const answer = await database.read(
    askEffect,
    { effect: wanted, now: clock.now(), isStrict: attempt === undefined },
    { signal },
  );
  switch (answer.kind) {
    case "missing":
      throw effectNotRecorded(namesOf(wanted));
    case "unfinished":
      throw effectUnfinished(namesOf(wanted));
    case "free":
      if (attempt === undefined) throw effectUnfinished(namesOf(wanted));
      return attempt(undefined);
    case "busy": {
      const death = await provenDeath(database, answer.holder);
      if (death !== undefined && attempt !== undefined) return attempt(death);
      const { key, holder } = answer;
      return { kind: "later", key, again: holder.expiresAt };
    }
    default:
      return stepOf(around, wanted, answer);
  }
}

/** @throws HoldfastError `EFFECT_CONFLICT` */
export function stepOf(
  around: EffectSurroundings,
  wanted: WantedEffect,
  answer: ClaimEffectOutcome,
): Step {
  if (answer.kind === "claimed" && answer.claim.fence === 1)
    around.frontier.advance(wanted);
  else around.frontier.retreat(wanted);
  switch (answer.kind) {
    case "claimed":
    case "settled":
      return answer;
    case "busy":
      return {
        kind: "later",
        key: answer.key,
        again: answer.holder.expiresAt,
      };
    case "notDue":
      return { kind: "later", key: answer.key, again: answer.dueAt };
    default:
      throw conflictOf(around, wanted, answer);
  }
}

function waitForStep(
  around: EffectSurroundings,
  wanted: WantedEffect,
  key: number,
  attempt: Attempt,
  wait: WaitOptions,
): Promise<Ready> {
  const { database, clock } = around;
  const { signal } = wait;
  const { session } = wanted.scope;
  return waitUntil<Ready>(
    database,
    {
      what: `the ${effectTitle(namesOf(wanted))}`,
      clock,
      isRelevant: (change) =>
        (change.operation === effectChanged && change.key === String(key)) ||
        (change.operation === "deleteSession" && change.key === session?.id),
      async look() {
        const step = await nextStep(around, wanted, attempt, signal);
        if (step.kind === "later") return { isThere: false, again: step.again };
        if (step.kind === "claimed" && signal?.aborted === true) {
          // Nobody waits for it any more: it would keep others away until it runs out.
          await giveBack(around, step.claim);
          return { isThere: false };
        }
        return { isThere: true, value: step };
      },
    },
    wait,
  );
}
