import type { DelayId } from "../ids/delay-id.ts";
import type { Encoded } from "../values/encoded.ts";
import type { ExecutionId } from "../ids/execution-id.ts";
import type { FunctionName } from "../ids/function-name.ts";
import type { JoinSetId } from "../ids/join-set-id.ts";
import type { Ran } from "./ran.ts";
import type { StartAt } from "../time/instants.ts";

/**
 * An event of a workflow's code, for replaying it. `call` is the number of its ctx call. `seen` is
 * the highest response that the code had received before; replay delivers those first, in order.
 */
export type HistoryEvent<V = Encoded> = {
  readonly call: number;
  readonly seen: number;
} & HistoryFact<V>;

/** The fact itself. `call` and `seen` are 0 unless the runtime sets them. */
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
      /**
       * The time as the code gave it. Replay compares it, since the instant depends on when the
       * code ran.
       */
      readonly startAt: StartAt;
    }
  /** Waits for the next response of one set. The n-th such event gets the n-th response. */
  | {
      readonly kind: "joinNext";
      readonly joinSet: JoinSetId;
      readonly runExpiresAt: number;
      readonly function: FunctionName | null;
      readonly isClosing: boolean;
    }
  /** The code asked a set for more responses than it has members. */
  | {
      readonly kind: "joinNextTooMany";
      readonly joinSet: JoinSetId;
      readonly function: FunctionName | null;
    }
  /**
   * Asks a set without waiting. A found response answers this question, as it would a `joinNext`.
   * The other outcomes take no place.
   */
  | {
      readonly kind: "joinNextTried";
      readonly joinSet: JoinSetId;
      readonly outcome: "found" | "pending" | "allProcessed";
    }
  /**
   * Waits for any response after `seen`, of any set or signal. With a `wakeAt` it waits until then
   * at most: the execution is due at that instant, and no row has to be answered.
   */
  | {
      readonly kind: "waiting";
      readonly runExpiresAt: number;
      readonly wakeAt: number | null;
    }
  /** Starts a separate top-level execution, or finds that its id is taken. */
  | {
      readonly kind: "scheduled";
      readonly execution: ExecutionId;
      readonly function: FunctionName;
      readonly inputHash: string;
      readonly startAt: StartAt;
      /** Decided by the store when this event is appended. */
      readonly outcome: ScheduledOutcome;
    }
  /**
   * Resolves an external execution. Only the hash of the value is here; the value is in that
   * execution's log.
   */
  | {
      readonly kind: "externalResolved";
      readonly execution: ExecutionId;
      readonly resultHash: string;
      readonly outcome: "resolved" | "conflict";
    }
  /** Takes the next signal of a name. */
  | {
      readonly kind: "signalReceived";
      readonly signal: string;
      readonly seq: number;
    }
  /** Asks for the next signal of a name, which had not come. The event itself does not wait. */
  | {
      readonly kind: "receiveRequested";
      readonly signal: string;
      /** The instant at which the wait times out; null when it waits forever. */
      readonly expiresAt: number | null;
    }
  /** Tells the code that the time for the requested signal has passed. */
  | { readonly kind: "receiveTimedOut"; readonly signal: string }
  /**
   * The holder tells the code that the run is being cancelled. Everything it records after this is
   * its cleanup.
   */
  | { readonly kind: "cancellationDelivered" }
  /** An announced step begins this attempt. It is written once for each attempt, and shows no progress. */
  | { readonly kind: "stepBegan"; readonly name: string; readonly attempt: number }
  | {
      readonly kind: "stepFinished";
      readonly name: string;
      readonly inputHash: string | null;
      readonly outcome: "completed" | "failed";
      readonly value: V;
      /** When the body ran; omitted when it took no time and was recorded at once. */
      readonly ran?: Ran | undefined;
    }
  | {
      readonly kind: "stepAttemptFailed";
      readonly name: string;
      /** Omitted for a step. */
      readonly isTransaction?: true;
      readonly attempt: number;
      readonly retryAt: number;
      readonly error: V;
      readonly ran?: Ran | undefined;
    }
  /**
   * A step that wrote to this database, in the transaction that appended this event. A failed one
   * wrote nothing else.
   */
  | {
      readonly kind: "transactionFinished";
      readonly name: string;
      readonly inputHash: string | null;
      readonly outcome: "completed" | "failed";
      readonly value: V;
      /** When the body ran; omitted when it took no time and was recorded at once. */
      readonly ran?: Ran | undefined;
    }
  | { readonly kind: "patched"; readonly patch: string };

/**
 * The outcome of starting a run. It was `created`; it `existed` with the same function and an equal
 * input; or there was a `conflict` and nothing was created. The id then belongs to another run, or
 * to one that is being removed.
 */
export type ScheduledOutcome = "created" | "existed" | "conflict";

export type HistoryKind = HistoryFact["kind"];

/** The kinds of history events as data. A replay reads only these from the store. */
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
  stepBegan: true,
  stepFinished: true,
  stepAttemptFailed: true,
  transactionFinished: true,
  patched: true,
};

export function isHistoryKind(kind: string): kind is HistoryKind {
  return Object.hasOwn(historyKinds, kind);
}

/**
 * False for a history event that only says that a body begins. A process may die of that body again
 * and again, so the event clears no deaths.
 */
export function showsProgress({ kind }: { readonly kind: string }): boolean {
  return kind !== "stepBegan";
}

export function isHistoryEvent<V>(
  event: { readonly kind: string } | HistoryEvent<V>,
): event is HistoryEvent<V> {
  return isHistoryKind(event.kind);
}

type Found = Extract<HistoryFact, { readonly kind: "joinNextTried" }> & {
  readonly outcome: "found";
};

/** True for a question to a set that was asked without waiting and was answered. */
export function isFound<E extends { readonly kind: string }>(event: E): event is E & Found {
  return event.kind === "joinNextTried" && (event as Partial<Found>).outcome === "found";
}

/** Returns the join set of an event, if it has one. */
export function joinSetIn(event: { readonly kind: string }): JoinSetId | undefined {
  return (event as { readonly joinSet?: JoinSetId }).joinSet;
}
