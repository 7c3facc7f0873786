import { isRecord } from "../values/spoken-kind.ts";

/** A body that began and may have done its work: a step by its call, or an activity, with call 0. */
export interface BegunBody {
  readonly call: number;
  readonly name: string;
}

/** False for a stored list that is damaged. */
export function areBegunBodies(value: unknown): value is readonly BegunBody[] {
  return Array.isArray(value) && value.every(isBegunBody);
}

function isBegunBody(value: unknown): boolean {
  if (!isRecord(value)) return false;
  return Number.isSafeInteger(value["call"]) && typeof value["name"] === "string";
}

/** The part of an event that decides whether a body began or ended. */
export interface BodyEvent {
  readonly version: number;
  readonly kind: string;
  readonly call: number;
  /** The name of an announced step. */
  readonly name?: string | undefined;
  /** The outcome of a step, or the kind of result of an activity. */
  readonly outcome?: string | undefined;
}

/** Kinds of events that announce steps or end a pass, and kinds that end steps. */
export const announcingKinds = ["stepBegan", "continued"] as const;
export const stepEndingKinds = ["stepAttemptFailed", "stepFinished"] as const;

/** Kinds of events that begin or end attempts of an activity. */
export const attemptKinds = [
  "locked",
  "unlocked",
  "attemptFailed",
  "attemptTimedOut",
  "ownerDied",
  "finished",
] as const;

/**
 * Returns the announced steps that a retry may repeat, from the events of one pass of its source.
 * They neither failed nor have an outcome that the retry keeps. A source that is itself a retry has
 * steps of its own source.
 */
export function begunSteps(
  former: readonly BegunBody[],
  events: readonly BodyEvent[],
  keptUpTo: number,
): readonly BegunBody[] {
  const begun = new Map(former.map(({ call, name }) => [call, name]));
  for (const { version, kind, call, name = "", outcome } of events) {
    // The next pass numbers its calls from 1 again.
    if (kind === "continued") break;
    if (kind === "stepBegan") begun.set(call, name);
    const isKept = kind === "stepFinished" && version <= keptUpTo;
    if (isKept || outcome === "failed" || kind === "stepAttemptFailed") begun.delete(call);
  }
  return [...begun].map(([call, name]) => ({ call, name }));
}

/**
 * True if the last attempt of an activity began and is not known to have failed. A failure that was
 * recorded after the worker lost its lock is the loss itself.
 */
export function isActivityBegun(wasBegun: boolean, events: readonly BodyEvent[]): boolean {
  let isBegun = wasBegun;
  let isHeld = false;
  for (const { kind, outcome } of events) {
    if (kind === "locked") isBegun = true;
    if (kind === "attemptFailed" || (kind === "finished" && outcome === "failed" && isHeld))
      isBegun = false;
    isHeld = kind === "locked";
  }
  return isBegun;
}
