import type { ExecutionRole, Holder, ResultKind } from "./event.ts";
import type { JoinSetId } from "../ids/join-set-id.ts";
import type { RetryPolicy } from "../time/retry-policy.ts";

/** The permission of an execution to continue, apart from its waits. */
export type Lifecycle = "active" | "paused" | "cancelling" | "parked";

/** The cause of a blocked execution's wait. */
export type BlockedOn =
  | {
      readonly kind: "joinSet";
      readonly joinSet: JoinSetId;
      /** The number of the awaited response within the set. */
      readonly ordinal: number;
      readonly isClosing: boolean;
    }
  /** Any response after `seen`. */
  | { readonly kind: "responses"; readonly seen: number }
  /** An answer from outside. */
  | { readonly kind: "resolution" };

/**
 * The state of an execution. A pending or blocked one has a `leaseUntil` while a worker keeps its
 * run in memory: no other worker may lock it before then.
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
      /** Its worker runs nothing else. A renewal may end that without an event. */
      readonly isAlone: boolean;
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
 * A wait for a response after `seen`, until `wakeAt` at most. The execution is due then, or when
 * the lease of the worker that keeps it in memory ends later.
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

/** The state row, equal to the fold over events and responses. */
export interface ExecutionState {
  readonly role: ExecutionRole;
  /** The version of the last event. */
  readonly version: number;
  readonly pending: PendingState;
  readonly lifecycle: Lifecycle;
  /** Attempts that used up a retry since the last start. */
  readonly failures: number;
  /** Consecutive deaths of workers without progress in between. */
  readonly deaths: number;
  /** The deaths among them while the worker ran nothing else. */
  readonly aloneDeaths: number;
  /** The policy of the latest lock; null before the first. */
  readonly retry: RetryPolicy | null;
  readonly codeVersion: string | null;
  /** The code versions under which it was parked, in order. Their workers do not get it. */
  readonly incompatible: readonly string[];
  /** The version of the event that gave the input. The history begins after it. */
  readonly historyFrom: number;
  /** Responses up to this number belong to runs before the last new start. */
  readonly responsesFrom: number;
  /** The number of new starts under its id. */
  readonly continuations: number;
  /** The number of responses, which is the seq of the last. */
  readonly responses: number;
}

/** Returns the current or last holder of a lock, if any. */
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
