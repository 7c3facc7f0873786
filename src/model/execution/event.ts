import type { DelayId } from "../ids/delay-id.ts";
import type { Encoded } from "../values/encoded.ts";
import type { ExecutionId } from "../ids/execution-id.ts";
import type { FunctionName } from "../ids/function-name.ts";
import type { HistoryEvent } from "./history-event.ts";
import type { JoinSetId } from "../ids/join-set-id.ts";
import type { ExecutorId, OwnerId, RunId } from "../ids/prefixed-id.ts";
import type { ExecutionResult } from "./result.ts";
import type { RetryPolicy } from "../time/retry-policy.ts";
import type { SeqRange } from "./unread.ts";

/** What an execution is: it decides how it is retried, cancelled and resumed. */
export type ExecutionRole =
  /** Deterministic code that is replayed from its log. */
  | "workflow"
  /** Code that runs at least once and is retried. */
  | "activity"
  /** Nothing runs: somebody outside resolves it. */
  | "external";

export type ResultKind = ExecutionResult["kind"];

/** Who holds, or last held, an execution: a round of locking by an executor in a process. */
export interface Holder {
  readonly executor: ExecutorId;
  readonly run: RunId;
  readonly owner: OwnerId | null;
}

/**
 * Why an execution is to end: somebody asked for it; its deadline has passed,
 * or its last attempt ran out of time; or it is ended without running its code.
 */
export type CancellationCause = "request" | "deadline" | "force";

/** The execution that an execution was copied from, and its last event in the copy. */
export interface ForkOrigin {
  readonly execution: ExecutionId;
  readonly version: number;
  /** True when the copy was made to try a failed run again. */
  readonly isRetry: boolean;
  /** The first in the line of copies, from which its code computes: the seed follows from the id. */
  readonly original: {
    readonly execution: ExecutionId;
    readonly createdAt: number;
  };
}

/**
 * Everything that can happen to an execution. `V` is what a payload is: the
 * stored text in the stores, the value itself for their users. Instants are
 * milliseconds since 1970; the event's own time is kept beside it.
 */
export type ExecutionEvent<V = Encoded> = ControlEvent<V> | HistoryEvent<V>;

/** Events that start, hand over and end an execution. */
export type ControlEvent<V = Encoded> =
  | Created<V>
  | {
      readonly kind: "locked";
      readonly holder: Holder;
      readonly leaseUntil: number;
      readonly retry: RetryPolicy;
      readonly codeVersion: string | null;
    }
  /** Given back without having failed. */
  | {
      readonly kind: "unlocked";
      readonly dueAt: number;
      readonly reason: string;
    }
  | {
      readonly kind: "attemptFailed";
      readonly dueAt: number;
      readonly error: V;
    }
  | { readonly kind: "attemptTimedOut"; readonly dueAt: number }
  | {
      readonly kind: "ownerDied";
      readonly owner: OwnerId;
      readonly dueAt: number;
      /** An activity's attempt, a workflow's death without progress, or nothing. */
      readonly counts: "attempt" | "death" | "nothing";
    }
  | { readonly kind: "paused" }
  | { readonly kind: "unpaused" }
  | {
      readonly kind: "cancellationRequested";
      readonly reason: string | null;
      /** The worker that ends it gives the result that goes with the cause: cancelled, or timed out. */
      readonly cause: CancellationCause;
    }
  | {
      readonly kind: "parked";
      readonly code: string;
      readonly reason: string;
      readonly codeVersion: string | null;
    }
  | { readonly kind: "unparked" }
  /**
   * Starts again under the same id with another input; history begins after
   * it. Signals that were not read belong to the new run.
   */
  | {
      readonly kind: "continued";
      readonly input: V;
      readonly inputHash: string;
      /** The last response that the code had been given: those behind it were not read. */
      readonly seen: number;
      /** The signals before it that were not read; null when the caller left it to the store to work that out. */
      readonly unread: readonly SeqRange[] | null;
      /** All signals that the new run may read; decided by the store. */
      readonly left: readonly SeqRange[];
      /** How often it has been started anew with this; decided by the store. */
      readonly continuation: number;
    }
  /** Ends the part that was copied from another execution. */
  | { readonly kind: "forked"; readonly from: ForkOrigin }
  | {
      readonly kind: "finished";
      readonly resultKind: ResultKind;
      readonly resultHash: string;
      readonly result: V;
    };

const isControl: Readonly<Record<ControlEvent["kind"], true>> = {
  created: true,
  locked: true,
  unlocked: true,
  attemptFailed: true,
  attemptTimedOut: true,
  ownerDied: true,
  paused: true,
  unpaused: true,
  cancellationRequested: true,
  parked: true,
  unparked: true,
  continued: true,
  forked: true,
  finished: true,
};

export function isControlKind(kind: string): kind is ControlEvent["kind"] {
  return Object.hasOwn(isControl, kind);
}

export const controlKinds: readonly string[] = Object.keys(isControl);

export interface Created<V = Encoded> {
  readonly kind: "created";
  readonly role: ExecutionRole;
  readonly function: FunctionName;
  readonly input: V;
  readonly inputHash: string;
  readonly scheduledAt: number;
  readonly deadlineAt: number | null;
  readonly concurrencyKey: string | null;
  readonly codeVersion: string | null;
  readonly isPaused: boolean;
  /** The execution that started this one without being its parent. */
  readonly scheduledBy: ExecutionId | null;
  readonly forkedFrom: ForkOrigin | null;
  /** Trace context and the like, carried along unread. */
  readonly metadata: Readonly<Record<string, string>>;
  /** Each once, in order: what it can be found by. */
  readonly tags: readonly string[];
}

/** What reaches an execution from elsewhere. All of one execution are numbered in one order. */
export type ExecutionResponse<V = Encoded> =
  | {
      readonly kind: "child";
      readonly joinSet: JoinSetId;
      readonly child: ExecutionId;
      readonly finishedVersion: number;
      readonly resultKind: ResultKind;
      readonly result: V;
    }
  | {
      readonly kind: "delay";
      readonly joinSet: JoinSetId;
      readonly delay: DelayId;
      readonly outcome: DelayOutcome;
    }
  | {
      readonly kind: "signal";
      readonly signal: string;
      /** Given by the sender, so that sending twice is sending once. */
      readonly signalKey: string;
      readonly value: V;
    };

export type DelayOutcome = "expired" | "cancelled";

/** An event with its place in the log. */
export interface LoggedEvent<V = Encoded> {
  readonly version: number;
  readonly at: number;
  readonly event: ExecutionEvent<V>;
}

/** A response with its place among those of its execution, from 1 on. */
export interface LoggedResponse<V = Encoded> {
  readonly seq: number;
  readonly at: number;
  readonly response: ExecutionResponse<V>;
}
