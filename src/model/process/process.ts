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

/** The origin of a process. `generation` is set if the registering caller gave it. */
export interface ProcessOrigin {
  readonly session: SessionId;
  readonly generation: number | null;
  readonly frame: string | null;
}

/** The description of a process, for people and filters. */
export interface ProcessIdentity {
  readonly kind: string;
  readonly label: string | null;
  readonly definition: string | null;
}

/**
 * The recovery after the owner of a process is gone: run it again, abandon it, or leave it to the
 * outside system that does the work.
 */
export type ProcessDisposition = "rerunnable" | "ownerBound" | "external";

export type ProcessStatus = "running" | ProcessEnd;

/** The wait of a process: the n-th signal of a name. */
export interface ProcessWait {
  readonly signal: string;
  readonly ordinal: number;
  /** The name of this wait, used everywhere. */
  readonly key: string;
  readonly since: number;
}

/** The result of a wake. */
export type WakeDelivery =
  | ({
      readonly kind: "queued" | "coalesced";
      /** The batch in the queue of the session. */
      readonly batch: string;
    } & SessionScope)
  /** The process has no session to wake. */
  | { readonly kind: "noTarget" }
  /** The session was deleted. */
  | { readonly kind: "targetGone" };

/** The wake that an event caused. */
export interface ProcessWake {
  readonly dedupeKey: string;
  readonly delivery: WakeDelivery;
}

/** The changeable part of a process, equal to the fold over its events. */
export interface ProcessState {
  /** The number of the latest event. */
  readonly sequence: number;
  readonly updatedAt: number;
  readonly status: ProcessStatus;
  /** The instant of its first start, and the number of starts. */
  readonly startedAt: number | null;
  readonly attempts: number;
  readonly cancelRequestedAt: number | null;
  readonly wait: ProcessWait | null;
  /** The event that names the outside work. */
  readonly externalSequence: number | null;
  readonly wakeTarget: SessionScope | null;
  readonly endedAt: number | null;
  readonly endedSequence: number | null;
  readonly prunedAt: number | null;
}

/** The registration of a process. It never changes until pruning removes most of it. */
interface ProcessRegistration<Value> {
  readonly id: ProcessId;
  readonly hash: string;
  readonly identity: ProcessIdentity;
  /** The hash of a blob of kind `process-environment`. */
  readonly environment: string | null;
  readonly disposition: ProcessDisposition;
  /** The maximum number of starts; null for no limit. */
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

/** A process as lists show it, without its declarations and input, which may be large. */
export interface ProcessSummary
  extends Omit<ProcessRegistration<never>, "eventTypes" | "input">, ProcessState {}

/** The part of an event that changes the state. */
export interface ProcessEventFacts {
  readonly sequence: number;
  readonly at: number;
  readonly type: string;
  /** Set when the event ends the process. */
  readonly end: ProcessEnd | null;
  /** Set for a `process.waiting` event. */
  readonly wait: ProcessWait | null;
}

/** Returns the state after one more event. The caller has checked that it may happen. */
export function afterProcessEvent(
  state: ProcessState,
  { sequence, at, type, end, wait }: ProcessEventFacts,
): ProcessState {
  const next = {
    ...state,
    sequence,
    // A clock that was set back does not move this backwards.
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

/** Returns the key of the n-th wait for a signal. */
export function waitKey(id: ProcessId, signal: string, ordinal: number): string {
  return `${id}:${signalType(signal)}:${ordinal}`;
}

const signalPrefix = "signal.";

/** Returns the event type of a signal. */
export function signalType(name: string): string {
  return `${signalPrefix}${name}`;
}

export function isSignalType(type: string): boolean {
  return type.startsWith(signalPrefix);
}

/** The recovery step for a process without a worker. */
export type ProcessRecovery =
  /** Claim it and run it, for the first time or again. */
  | "run"
  /** Abandon it: its owner is gone and no other worker may run it, or its starts are used up. */
  | "abandon"
  /** Ask the outside system for its progress. */
  | "external";

export function decideRecovery(
  process: Pick<ProcessSummary, "disposition" | "startedAt" | "attempts" | "attemptsMax">,
): ProcessRecovery {
  const { disposition, startedAt } = process;
  if (disposition === "external") return "external";
  if (hasUsedAttempts(process)) return "abandon";
  return disposition === "ownerBound" && startedAt !== null ? "abandon" : "run";
}

/** True when a process has used all its starts. */
export function hasUsedAttempts({
  attempts,
  attemptsMax,
}: Pick<ProcessSummary, "attempts" | "attemptsMax">): boolean {
  return attemptsMax !== null && attempts >= attemptsMax;
}
