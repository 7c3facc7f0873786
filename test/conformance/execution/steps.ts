import fc from "fast-check";
import type { ExecutionEvent } from "../../../src/model/execution/event.ts";
import { isDeep } from "../../depth.ts";

/** What a sequence may do, with how often it should try to. */
const weights = {
  clock: 6,
  create: 5,
  createLocked: 2,
  append: 24,
  finish: 2,
  lockPending: 5,
  lock: 5,
  extend: 2,
  renew: 3,
  unlock: 2,
  cancelDelay: 2,
  expireDelay: 2,
  expireDelays: 2,
  pauseDelay: 1,
  unpauseDelay: 1,
  signal: 3,
  receive: 2,
  pause: 2,
  unpause: 2,
  unpark: 1,
  cancel: 1,
  cancelByForce: 1,
  cancelActivity: 1,
  resolve: 1,
  setProgress: 1,
  expireLock: 3,
  expireDeadline: 1,
  releaseDead: 2,
  fork: 2,
  retry: 2,
  pruneHistory: 2,
} as const;

export type StepName = keyof typeof weights;
export const stepNames = Object.keys(weights) as readonly StepName[];

/** The same for the events of an append; `created` and `forked` must be refused there. */
const eventWeights: Readonly<Record<ExecutionEvent["kind"], number>> = {
  created: 1,
  forked: 1,
  finished: 2,
  locked: 2,
  unlocked: 1,
  attemptFailed: 2,
  attemptTimedOut: 2,
  ownerDied: 1,
  paused: 1,
  unpaused: 1,
  cancellationRequested: 1,
  parked: 2,
  unparked: 1,
  continued: 2,
  joinSetCreated: 2,
  childRequested: 8,
  delayRequested: 6,
  joinNext: 6,
  joinNextTooMany: 1,
  joinNextTried: 1,
  waiting: 4,
  scheduled: 2,
  externalResolved: 1,
  signalReceived: 1,
  receiveRequested: 1,
  receiveTimedOut: 1,
  cancellationDelivered: 1,
  stepBegan: 3,
  stepFinished: 3,
  stepAttemptFailed: 2,
  transactionFinished: 1,
  patched: 1,
};

type EventKind = keyof typeof eventWeights;
export const eventKinds = Object.keys(eventWeights) as readonly EventKind[];

/** An event still to be filled in, once it is known where it goes. */
export interface EventDraft {
  readonly kind: EventKind;
  /** Which join set, signal or value. */
  readonly set: number;
  /** Which child or delay of the set, from 1 on. */
  readonly index: number;
  /** From now: when it is due, expires or ends. */
  readonly inMs: number;
  readonly flag: boolean;
  readonly seen: number;
}

/**
 * One call, in numbers that mean something whatever happened before: `of` is
 * the how-manieth execution by id, `versionBy` how far the version is from the
 * right one.
 */
export interface Step extends Omit<EventDraft, "kind"> {
  readonly call: StepName;
  readonly of: number;
  /** Its id, for sequences written by hand. */
  readonly on?: string;
  readonly versionBy: number;
  readonly fence: "none" | "right" | "wrong";
  /** Which of two workers. */
  readonly worker: number;
  readonly role: "workflow" | "activity" | "external";
  readonly events: readonly EventDraft[];
}

const common = {
  set: fc.integer({ min: 0, max: 1 }),
  index: fc.integer({ min: 1, max: 3 }),
  inMs: fc.constantFrom(0, 10, 100, 1_000, 60_000, -100),
  flag: fc.boolean(),
  seen: fc.integer({ min: 0, max: 3 }),
};

const draft: fc.Arbitrary<EventDraft> = fc.record({
  kind: weighted(eventWeights),
  ...common,
});

const step: fc.Arbitrary<Step> = fc.record({
  call: weighted(weights),
  of: fc.nat({ max: 11 }),
  versionBy: weighted({ "0": 14, "1": 1, "-1": 1 }).map(Number),
  fence: weighted({ none: 6, right: 4, wrong: 1 }),
  worker: fc.nat({ max: 1 }),
  role: weighted({ workflow: 6, activity: 3, external: 1 }),
  events: fc.oneof(
    { weight: 6, arbitrary: fc.array(draft, { minLength: 1, maxLength: 1 }) },
    { weight: 4, arbitrary: fc.array(draft, { minLength: 2, maxLength: 4 }) },
    { weight: 1, arbitrary: fc.constant([]) },
  ),
  ...common,
});

/** Something to work on first, then anything. */
export const steps: fc.Arbitrary<readonly Step[]> = fc
  .tuple(
    step.map((first): Step => ({ ...first, call: "create", fence: "none" })),
    fc.array(step, { minLength: 12, maxLength: isDeep ? 50 : 30, size: "max" }),
  )
  .map(([first, then]) => [first, ...then]);

function weighted<T extends string>(table: Readonly<Record<T, number>>): fc.Arbitrary<T> {
  return fc.oneof(
    ...Object.entries<number>(table).map(([name, weight]) => ({
      weight,
      arbitrary: fc.constant(name as T),
    })),
  );
}
