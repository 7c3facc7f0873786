import { HoldfastError } from "../../model/errors.ts";
import { catchUps } from "../../model/schedule-plan.ts";
import type { CatchUp } from "../../model/schedule-plan.ts";
import { triggerSchedules } from "../../model/trigger.ts";
import type { CadenceDraft } from "../../model/schedule-cadence.ts";
import {
  checkedCount,
  checkedText,
  givenFunction,
  givenSignal,
  optionsOf,
} from "../../model/shape.ts";
import { cadenceOf } from "./cadence.ts";
import type { PutSchedule } from "./put.ts";
import type { ScheduleName } from "./schedule-row.ts";
import type { SchedulerOptions } from "./scheduler.ts";

/** How callers describe a schedule. */
export type ScheduleDraft = CadenceDraft & CatchUpDraft;

export interface CatchUpDraft {
  /**
   * What happens to instants that passed while nobody was there to fire them:
   * `latest` unless told, so that a report that was missed three times is made
   * once. `skip` fires what is less than a minute late, `all` each instant.
   */
  readonly catchUp?: CatchUp;
  /** How many instants `all` fires at most, the newest ones: 1 to 1,000; 100 unless told. */
  readonly catchUpMax?: number;
}

const nameCharactersMax = 512;
const catchUpMaxDefault = 100;
const catchUpMaxMax = 1_000;

export function checkedKind(kind: string): string {
  return checkedText("The kind of a schedule", kind);
}

export function checkedName(kind: string, name: string): ScheduleName {
  return {
    kind: checkedKind(kind),
    name: checkedText("The name of a schedule", name, nameCharactersMax),
  };
}

/** A schedule that is to be changed. @throws HoldfastError `NAME_INVALID` */
export function checkedOwnName(kind: string, name: string): ScheduleName {
  refuseReserved(kind);
  return checkedName(kind, name);
}

export function refuseReserved(kind: string): void {
  if (kind !== triggerSchedules) return;
  const what = "The kind of a schedule";
  throw new HoldfastError(
    "NAME_INVALID",
    `${what} that is changed or fired is not "${triggerSchedules}": those belong to subscriptions, and triggers fire them. ` +
      "Change the subscription, or use another kind.",
    { what, kind },
  );
}

/** Complete terms; see `cadenceOf` for what it throws. */
export function checkedTerms(
  draft: ScheduleDraft,
  now: number,
): Omit<PutSchedule, keyof ScheduleName | "now"> {
  const cadence = cadenceOf(draft, now);
  const { catchUp = "latest", catchUpMax = catchUpMaxDefault } = draft;
  if (!catchUps.includes(catchUp))
    throw new HoldfastError(
      "OPTION_INVALID",
      `catchUp is one of ${catchUps.join(", ")}; got something else.`,
      { option: "catchUp" },
    );
  return {
    cadence,
    catchUp,
    catchUpMax: checkedCount("catchUpMax", catchUpMax, {
      min: 1,
      max: catchUpMaxMax,
    }),
    keepsAnchor: "every" in draft && draft.from === undefined,
  };
}

/** @throws HoldfastError `OPTION_INVALID` */
export function checkedSchedulerOptions(
  given: SchedulerOptions | undefined,
): SchedulerOptions {
  const options = optionsOf(given, [
    "signal",
    "onFired",
    "onSkipped",
    "onError",
  ]);
  givenSignal(options.signal);
  for (const listener of ["onFired", "onSkipped", "onError"] as const)
    givenFunction(listener, options[listener]);
  return options;
}
