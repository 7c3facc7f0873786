import type { BegunBody } from "./begun.ts";
import type { DelayId } from "../ids/delay-id.ts";
import type { Encoded } from "../values/encoded.ts";
import type { ExecutionId } from "../ids/execution-id.ts";
import type { FunctionName } from "../ids/function-name.ts";
import type { HistoryEvent } from "./history-event.ts";
import type { JoinSetId } from "../ids/join-set-id.ts";
import type { Metadata } from "./metadata.ts";
import type { Mismatch } from "./mismatch.ts";
import type { ExecutorId, OwnerId, RunId } from "../ids/prefixed-id.ts";
import type { ExecutionResult } from "./result.ts";
import type { RetryPolicy } from "../time/retry-policy.ts";
import type { SeqRange } from "./unread.ts";

/** The role of an execution. It decides how the execution is retried, cancelled and resumed. */
export type ExecutionRole =
  /** Deterministic code that is replayed from its log. */
  | "workflow"
  /** Code that runs at least once and is retried. */
  | "activity"
  /** An execution without code, which an outside caller resolves. */
  | "external";

export type ResultKind = ExecutionResult["kind"];

/** The holder of an execution, or its last one: a round of locking by an executor in a process. */
export interface Holder {
  readonly executor: ExecutorId;
  readonly run: RunId;
  readonly owner: OwnerId | null;
}

/**
 * The cause of an execution's end. `request`: a caller asked for it. `deadline`: its deadline passed
 * or its last attempt timed out. `force`: it ends without running its code. `deaths`: too many
 * processes died while they ran it alone, and its function wants it cancelled then.
 */
export type CancellationCause = "request" | "deadline" | "force" | "deaths";

/** The effect of a conviction: the run is parked, or cancelled so that its cleanup runs. */
export type WhenPoisoned = "park" | "cancel";

/** The source of a copied execution, and the last copied event. */
export interface ForkOrigin {
  readonly execution: ExecutionId;
  readonly version: number;
  /** True when the copy was made to retry a failed run. */
  readonly isRetry: boolean;
  /**
   * The first execution in the line of copies. The code computes from it, because the seed follows
   * from the id.
   */
  readonly original: {
    readonly execution: ExecutionId;
    readonly createdAt: number;
  };
}

/**
 * The effect of a lost worker on the counts. `attempt` uses up a retry. `death` is a death without
 * progress, `aloneDeath` one while the worker ran nothing else. `nothing` changes no count.
 */
export type LossCount = "attempt" | "death" | "aloneDeath" | "nothing";

/**
 * Every event of an execution. `V` is the type of a payload: the stored text in the stores, the
 * value itself for their users. Instants are milliseconds since 1970. The event's own time is
 * stored beside it.
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
      /** The worker runs nothing else at the same time. */
      readonly alone?: true | undefined;
      /** Set when the function wants a convicted run cancelled. Only a lock that is alone says it. */
      readonly whenPoisoned?: "cancel" | undefined;
    }
  /** Released without a failure. */
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
  | {
      readonly kind: "attemptTimedOut";
      readonly dueAt: number;
      readonly counts: LossCount;
    }
  | {
      readonly kind: "ownerDied";
      readonly owner: OwnerId;
      readonly dueAt: number;
      readonly counts: LossCount;
    }
  | { readonly kind: "paused" }
  | { readonly kind: "unpaused" }
  | {
      readonly kind: "cancellationRequested";
      readonly reason: string | null;
      /** The cause decides the result that the worker records: cancelled, or timed out. */
      readonly cause: CancellationCause;
    }
  | {
      readonly kind: "parked";
      readonly code: string;
      readonly reason: string;
      readonly codeVersion: string | null;
      /** The calls that differ. Set when the reason is `NONDETERMINISM`, missing in older logs. */
      readonly mismatch?: Mismatch | undefined;
    }
  | { readonly kind: "unparked" }
  /**
   * Starts again under the same id with another input. Its history begins after this event. Unread
   * signals belong to the new run.
   */
  | {
      readonly kind: "continued";
      readonly input: V;
      readonly inputHash: string;
      /** The last response that the code had received. Responses after it were not read. */
      readonly seen: number;
      /**
       * The earlier signals that were not read; null when the caller left the computation to the
       * store.
       */
      readonly unread: readonly SeqRange[] | null;
      /** All signals that the new run may read. Set by the store. */
      readonly left: readonly SeqRange[];
      /** The number of new starts, including this one. Set by the store. */
      readonly continuation: number;
    }
  /** The end of the part that was copied from another execution. */
  | { readonly kind: "forked"; readonly from: ForkOrigin }
  | {
      readonly kind: "finished";
      readonly resultKind: ResultKind;
      readonly resultHash: string;
      readonly result: V;
      /** The last response that the code had been given. Without it the store looks in the log. */
      readonly seen?: number | undefined;
      /** The messages that the code had not taken. The store adds those behind `seen`. */
      readonly unread?: number | undefined;
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
  /**
   * The execution whose idempotency keys this one keeps using. Set for a retry's copy and for the
   * children of such a copy.
   */
  readonly keysOf?: ExecutionId | undefined;
  /** The bodies that the retried run began under these keys, and that this one may repeat. */
  readonly begun?: readonly BegunBody[] | undefined;
  /** Trace context and similar data, passed along unread, to children too. */
  readonly metadata: Metadata;
  /** Tags for finding the execution, each once and in order. */
  readonly tags: readonly string[];
}

/**
 * A response that reaches an execution from elsewhere. All responses of one execution are numbered
 * in one order.
 */
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
      /** A key from the sender, so that a repeated signal counts once. */
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

/** A response with its number within its execution, counted from 1. */
export interface LoggedResponse<V = Encoded> {
  readonly seq: number;
  readonly at: number;
  readonly response: ExecutionResponse<V>;
}
