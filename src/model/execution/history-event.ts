import type { DelayId } from "../ids/delay-id.ts";
import type { Encoded } from "../values/encoded.ts";
import type { ExecutionId } from "../ids/execution-id.ts";
import type { FunctionName } from "../ids/function-name.ts";
import type { JoinSetId } from "../ids/join-set-id.ts";
import type { StartAt } from "../time/instants.ts";

/**
 * What a workflow did, for replaying it. `call` is the number of the ctx call
 * that it belongs to, `seen` the highest response the code had been given
 * before: replay gives it those first, in order.
 */
export type HistoryEvent<V = Encoded> = {
  readonly call: number;
  readonly seen: number;
} & HistoryFact<V>;

/** The fact alone; `call` and `seen` are 0 unless the runtime says otherwise. */
export type HistoryFact<V = Encoded> =
  | { readonly kind: "joinSetCreated"; readonly joinSet: JoinSetId }
  | {
      readonly kind: "childRequested";
      readonly joinSet: JoinSetId;
      readonly child: ExecutionId;
      readonly function: FunctionName;
      readonly inputHash: string;
    }
  | {
      readonly kind: "delayRequested";
      readonly joinSet: JoinSetId;
      readonly delay: DelayId;
      readonly expiresAt: number;
      /** As the code put it: what replay compares, since the instant depends on when it ran. */
      readonly startAt: StartAt;
    }
  /** Waits for the next response of one set, the n-th of these for its n-th. */
  | {
      readonly kind: "joinNext";
      readonly joinSet: JoinSetId;
      readonly runExpiresAt: number;
      readonly function: FunctionName | null;
      readonly isClosing: boolean;
    }
  /** A set was asked for more than was submitted to it. */
  | {
      readonly kind: "joinNextTooMany";
      readonly joinSet: JoinSetId;
      readonly function: FunctionName | null;
    }
  /** Asked a set without waiting. What was found is the answer to this question, as to a `joinNext`; the others take no place. */
  | {
      readonly kind: "joinNextTried";
      readonly joinSet: JoinSetId;
      readonly outcome: "found" | "pending" | "allProcessed";
    }
  /**
   * Waits for any response after `seen`, of whatever set or signal, and, if
   * there is a `wakeAt`, no longer than until then: it is due at that instant
   * without a row that would have to be answered.
   */
  | {
      readonly kind: "waiting";
      readonly runExpiresAt: number;
      readonly wakeAt: number | null;
    }
  /** Started a top-level execution of its own, or found that its id is taken. */
  | {
      readonly kind: "scheduled";
      readonly execution: ExecutionId;
      readonly function: FunctionName;
      readonly inputHash: string;
      readonly startAt: StartAt;
      /** Decided by the store when this is appended. */
      readonly outcome: ScheduledOutcome;
    }
  /** Resolved an external execution; only the hash of the value, which is in that one's log. */
  | {
      readonly kind: "externalResolved";
      readonly execution: ExecutionId;
      readonly resultHash: string;
      readonly outcome: "resolved" | "conflict";
    }
  /** Took the next signal of a name. */
  | {
      readonly kind: "signalReceived";
      readonly signal: string;
      readonly seq: number;
    }
  /** Asked for the next signal of a name, which had not come. By itself it waits for nothing. */
  | {
      readonly kind: "receiveRequested";
      readonly signal: string;
      /** When the code is told that none came; null when it waits for ever. */
      readonly expiresAt: number | null;
    }
  /** Told the code that the time for the signal it asked for is over. */
  | { readonly kind: "receiveTimedOut"; readonly signal: string }
  /** Told the code, by its holder, that the run is being cancelled: what it records from here on is its cleanup. */
  | { readonly kind: "cancellationDelivered" }
  | {
      readonly kind: "stepFinished";
      readonly name: string;
      readonly inputHash: string | null;
      readonly outcome: "completed" | "failed";
      readonly value: V;
    }
  | {
      readonly kind: "stepAttemptFailed";
      readonly name: string;
      readonly attempt: number;
      readonly retryAt: number;
      readonly error: V;
    }
  /** A step that wrote to this database, in the transaction that appended this; one that failed wrote nothing else. */
  | {
      readonly kind: "transactionFinished";
      readonly name: string;
      readonly inputHash: string | null;
      readonly outcome: "completed" | "failed";
      readonly value: V;
    }
  | { readonly kind: "patched"; readonly patch: string };

/**
 * What became of a run that was to be started: it was `created`; it `existed`
 * with the same function and an equal input; or its id was in `conflict`, that
 * of another or of one that is being removed, and nothing was created.
 */
export type ScheduledOutcome = "created" | "existed" | "conflict";

export type HistoryKind = HistoryFact["kind"];

/** Kinds of history events, as data: the store reads only these for a replay. */
const historyKinds: Readonly<Record<HistoryKind, true>> = {
  joinSetCreated: true,
  childRequested: true,
  delayRequested: true,
  joinNext: true,
  joinNextTooMany: true,
  joinNextTried: true,
  waiting: true,
  scheduled: true,
  externalResolved: true,
  signalReceived: true,
  receiveRequested: true,
  receiveTimedOut: true,
  cancellationDelivered: true,
  stepFinished: true,
  stepAttemptFailed: true,
  transactionFinished: true,
  patched: true,
};

export function isHistoryKind(kind: string): kind is HistoryKind {
  return Object.hasOwn(historyKinds, kind);
}

export function isHistoryEvent<V>(
  event: { readonly kind: string } | HistoryEvent<V>,
): event is HistoryEvent<V> {
  return isHistoryKind(event.kind);
}

type Found = Extract<HistoryFact, { readonly kind: "joinNextTried" }> & {
  readonly outcome: "found";
};

/** True for a question to a set that was asked without waiting, and answered. */
export function isFound<E extends { readonly kind: string }>(event: E): event is E & Found {
  return event.kind === "joinNextTried" && (event as Partial<Found>).outcome === "found";
}

/** The join set that an event speaks of, if it does. */
export function joinSetIn(event: { readonly kind: string }): JoinSetId | undefined {
  return (event as { readonly joinSet?: JoinSetId }).joinSet;
}
