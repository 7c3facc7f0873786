import type { ExecutionId } from "../ids/execution-id.ts";
import { coreTypes } from "./event-type.ts";
import type { ProcessEventType } from "./event-type.ts";
import type { ProcessId } from "../ids/process-id.ts";
import type { ProcessEnd } from "./output.ts";
import type { SessionId } from "../ids/session-id.ts";

/** A session, or one frame of it. */
export interface SessionScope {
  readonly session: SessionId;
  readonly generation: number;
  readonly frame: string | null;
}

/** Where a process comes from. The generation is there if the caller that registered it said it. */
export interface ProcessOrigin {
  readonly session: SessionId;
  readonly generation: number | null;
  readonly frame: string | null;
}

/** What a process is, for people and filters. */
export interface ProcessIdentity {
  readonly kind: string;
  readonly label: string | null;
  readonly definition: string | null;
}

/**
 * What may be done when the owner of a process is gone: run it again, give it
 * up, or leave it to the system outside that does the work.
 */
export type ProcessDisposition = "rerunnable" | "ownerBound" | "external";

export type ProcessStatus = "running" | ProcessEnd;

/** What a process waits for: the n-th signal of a name. */
export interface ProcessWait {
  readonly signal: string;
  readonly ordinal: number;
  /** Names this very wait, wherever it is spoken of. */
  readonly key: string;
  readonly since: number;
}

/** What a wake became. */
export type WakeDelivery =
  | ({
      readonly kind: "queued" | "coalesced";
      /** The batch in the queue of the session. */
      readonly batch: string;
    } & SessionScope)
  /** The process wakes nobody. */
  | { readonly kind: "noTarget" }
  /** The session was deleted. */
  | { readonly kind: "targetGone" };

/** The wake that an event caused. */
export interface ProcessWake {
  readonly dedupeKey: string;
  readonly delivery: WakeDelivery;
}

/** What of a process can change: what a fold over its events says. */
export interface ProcessState {
  /** The number of the latest event. */
  readonly sequence: number;
  readonly updatedAt: number;
  readonly status: ProcessStatus;
  /** When it was first begun, and how often since. */
  readonly startedAt: number | null;
  readonly attempts: number;
  readonly cancelRequestedAt: number | null;
  readonly wait: ProcessWait | null;
  /** The event that says which outside work this is. */
  readonly externalSequence: number | null;
  readonly wakeTarget: SessionScope | null;
  readonly endedAt: number | null;
  readonly endedSequence: number | null;
  readonly prunedAt: number | null;
}

/** What was said when a process was registered. Never changes, until pruning forgets most of it. */
interface ProcessRegistration<Value> {
  readonly id: ProcessId;
  readonly hash: string;
  readonly identity: ProcessIdentity;
  readonly disposition: ProcessDisposition;
  /** How often it may be begun; null for no limit. */
  readonly attemptsMax: number | null;
  readonly originator: ProcessOrigin | null;
  readonly causedBy: string | null;
  readonly eventTypes: readonly ProcessEventType[];
  readonly input: Value | null;
  readonly execution: ExecutionId | null;
  readonly createdAt: number;
}

export interface ProcessRecord<Value> extends ProcessRegistration<Value>, ProcessState {
  readonly externalRef: Value | null;
}

/** A process as lists show it: without what may be large, its declarations and what was given to it. */
export interface ProcessSummary
  extends Omit<ProcessRegistration<never>, "eventTypes" | "input">, ProcessState {}

/** What of an event moves the state. */
export interface ProcessEventFacts {
  readonly sequence: number;
  readonly at: number;
  readonly type: string;
  /** Set when the event ends the process. */
  readonly end: ProcessEnd | null;
  /** Of a `process.waiting`. */
  readonly wait: ProcessWait | null;
}

/** The state after one more event. Whether the event may happen is decided before. */
export function afterProcessEvent(
  state: ProcessState,
  { sequence, at, type, end, wait }: ProcessEventFacts,
): ProcessState {
  const next = {
    ...state,
    sequence,
    // A clock that was set back does not make a process younger.
    updatedAt: Math.max(state.updatedAt, at),
  };
  if (end !== null)
    return {
      ...next,
      status: end,
      wait: null,
      endedAt: at,
      endedSequence: sequence,
    };
  switch (type) {
    case coreTypes.started:
      return {
        ...next,
        startedAt: state.startedAt ?? at,
        attempts: state.attempts + 1,
      };
    case coreTypes.cancelRequested:
      return { ...next, cancelRequestedAt: state.cancelRequestedAt ?? at };
    case coreTypes.waiting:
      return { ...next, wait };
    case coreTypes.resumed:
      return { ...next, wait: null };
    case coreTypes.externalRef:
      return { ...next, externalSequence: sequence };
    case coreTypes.wakeTargetCleared:
      return { ...next, wakeTarget: null };
    case coreTypes.pruned:
      return {
        ...next,
        externalSequence: null,
        wakeTarget: null,
        prunedAt: at,
      };
    default:
      return next;
  }
}

/** The key of the n-th wait for a signal. */
export function waitKey(id: ProcessId, signal: string, ordinal: number): string {
  return `${id}:${signalType(signal)}:${ordinal}`;
}

const signalPrefix = "signal.";

/** The event type of a signal. */
export function signalType(name: string): string {
  return `${signalPrefix}${name}`;
}

export function isSignalType(type: string): boolean {
  return type.startsWith(signalPrefix);
}

/** What is to be done about a process that nobody works on. */
export type ProcessRecovery =
  /** Claim it and run it: for the first time, or again. */
  | "run"
  /** Its owner is gone and nobody else may run it, or it was begun as often as it may be: give it up. */
  | "abandon"
  /** Ask the system outside how far it is. */
  | "external";

export function decideRecovery(
  process: Pick<ProcessSummary, "disposition" | "startedAt" | "attempts" | "attemptsMax">,
): ProcessRecovery {
  const { disposition, startedAt } = process;
  if (disposition === "external") return "external";
  if (hasUsedAttempts(process)) return "abandon";
  return disposition === "ownerBound" && startedAt !== null ? "abandon" : "run";
}

/** Whether a process was begun as often as it may be. */
export function hasUsedAttempts({
  attempts,
  attemptsMax,
}: Pick<ProcessSummary, "attempts" | "attemptsMax">): boolean {
  return attemptsMax !== null && attempts >= attemptsMax;
}
