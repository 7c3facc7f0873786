import type { ExecutionRole, Holder, ResultKind } from "./event.ts";
import type { JoinSetId } from "../ids/join-set-id.ts";
import type { RetryPolicy } from "../time/retry-policy.ts";

/** Whether an execution may go on, apart from what it waits for. */
export type Lifecycle = "active" | "paused" | "cancelling" | "parked";

/** What a blocked execution waits for. */
export type BlockedOn =
  | {
      readonly kind: "joinSet";
      readonly joinSet: JoinSetId;
      /** It waits for the how-manieth response of the set. */
      readonly ordinal: number;
      readonly isClosing: boolean;
    }
  /** Any response after `seen`. */
  | { readonly kind: "responses"; readonly seen: number }
  /** An answer from outside. */
  | { readonly kind: "resolution" };

/**
 * Where an execution stands. `leaseUntil` of a pending or blocked one is there
 * while a worker keeps the run in memory: nobody else may lock it before.
 */
export type PendingState =
  | {
      readonly kind: "pending";
      readonly dueAt: number;
      readonly leaseUntil: number | null;
      readonly lastLock: Holder | null;
    }
  | Sleeping
  | {
      readonly kind: "locked";
      readonly holder: Holder;
      readonly leaseUntil: number;
      readonly lockVersion: number;
    }
  | {
      readonly kind: "blocked";
      readonly on: BlockedOn;
      readonly leaseUntil: number | null;
      readonly lastLock: Holder | null;
    }
  | {
      readonly kind: "finished";
      readonly finishedAt: number;
      readonly resultKind: ResultKind;
    };

/**
 * Waits for a response after `seen`, and for no longer than until `wakeAt`: due
 * then, or when the lease of who keeps it in memory ends after that.
 */
export interface Sleeping {
  readonly kind: "pending";
  readonly dueAt: number;
  readonly leaseUntil: number | null;
  readonly lastLock: Holder | null;
  readonly seen: number;
  readonly wakeAt: number;
}

export function isSleeping(pending: PendingState): pending is Sleeping {
  return pending.kind === "pending" && "wakeAt" in pending;
}

/** The state row: what a fold over events and responses gives. */
export interface ExecutionState {
  readonly role: ExecutionRole;
  /** Of the last event. */
  readonly version: number;
  readonly pending: PendingState;
  readonly lifecycle: Lifecycle;
  /** Attempts that failed, timed out or died since the (last) start. */
  readonly failures: number;
  /** Deaths of workers in a row without progress in between. */
  readonly deaths: number;
  /** From the latest lock; null before the first. */
  readonly retry: RetryPolicy | null;
  readonly codeVersion: string | null;
  /** Code versions under which it was parked, in order: workers of these do not get it. */
  readonly incompatible: readonly string[];
  /** The version of the event that gave the input: history begins after it. */
  readonly historyFrom: number;
  /** Responses up to this number belong to runs before the last new start. */
  readonly responsesFrom: number;
  /** How often it was started anew under its id. */
  readonly continuations: number;
  /** How many responses there are: the seq of the last. */
  readonly responses: number;
}

/** The holder of a lock or the last one, if any. */
export function lastHolder(state: PendingState): Holder | null {
  switch (state.kind) {
    case "locked":
      return state.holder;
    case "finished":
      return null;
    default:
      return state.lastLock;
  }
}

export function isSameRun(
  a: Pick<Holder, "executor" | "run"> | null,
  b: Pick<Holder, "executor" | "run">,
): boolean {
  return a !== null && a.executor === b.executor && a.run === b.run;
}
