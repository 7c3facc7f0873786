import type { HoldfastError } from "../../model/errors.ts";
import type { ExecutionCodec } from "../../model/execution/codec.ts";
import type { ExecutionEvent } from "../../model/execution/event.ts";
import type { ExecutionId } from "../../model/ids/execution-id.ts";
import type { Clock } from "../../model/time/clock.ts";
import type { Isolation } from "../../sql/isolation.ts";
import type { Tx } from "../../sql/operation.ts";
import type { LoadedExecution } from "../../stores/execution/lock/locked.ts";
import type {
  ExecutionDraft,
  NewExecution,
  RequestedChild,
} from "../../stores/execution/log/create.ts";
import type { Drain } from "../drain.ts";
import type { RunningBodies } from "../running-bodies.ts";
import type { RunOutput } from "../stream/run-output.ts";
import type { Speaker } from "./run-log.ts";
import type { RunLog } from "../definition/workflow-context.ts";
import type { BodyTimes, Entry } from "./journal.ts";
import type { RunState } from "./run-state.ts";

/** Events and new runs that a run asks its worker to append to its log. */
export interface AppendDraft {
  /** The instant at which it is made, from which the offsets of its events count. */
  readonly at: number;
  readonly events: readonly ExecutionEvent[];
  readonly children?: readonly NewExecution[];
  readonly starts?: readonly NewExecution[];
}

/** The outcome of an append. */
export interface Appended {
  /** The version of the first event. */
  readonly version: number;
  readonly at: number;
  readonly nextVersion: number;
  /** The `waiting` event was left out, since the run turned out to be cancelled. */
  readonly isAwake?: true;
  /** The number of responses, if the run waits and has not seen them all. */
  readonly responses: number;
  /** The outcomes of detached starts among the events, by version. */
  readonly scheduled: ReadonlyMap<number, "created" | "existed" | "conflict">;
}

/** An append that was refused: a message came before the timeout of its receive. */
export interface TimeoutRefused {
  /** The number of the message. */
  readonly message: number;
}

/** An attempt of a transaction that stored nothing. */
export interface RolledBack {
  readonly thrown: unknown;
  /** The database could not do its part; it may succeed the next time. */
  readonly isOfTheDatabase: boolean;
  /** The instants at which the body began and ended; missing if it did not begin. */
  readonly ran?: BodyTimes | undefined;
}

/** A body on the user's tables, to be committed with the event that records it. */
export interface TransactionDraft {
  readonly call: number;
  readonly name: string;
  readonly seen: number;
  readonly isolation: Isolation;
  readonly body: () => Tx<unknown>;
}

/** The services that a run needs of its worker. */
export interface RunHost {
  readonly clock: Clock;
  readonly drain: Drain;
  readonly bodies: RunningBodies;
  readonly values: ExecutionCodec;
  readonly codeVersion: string | null;
  /** Returns a number below 1. */
  readonly random: () => number;
  /** Returns the token that resolves an external. */
  readonly tokenOf: (external: ExecutionId) => string;
  /** The instant until which a run that starts to wait now belongs to this worker. */
  readonly hotUntil: (run: RunState) => number;
  /** Checks and encodes a draft. @throws HoldfastError when the draft is invalid. */
  readonly newExecution: (draft: ExecutionDraft) => NewExecution;
  /** The same for a child. */
  readonly newChild: (draft: RequestedChild) => NewExecution;
  /**
   * Resolves when the append is durable. Never rejects: a run that cannot append is dropped or
   * parked. Only an append with timeouts of receives may be refused for a message.
   */
  append(run: RunState, draft: AppendDraft): Promise<Appended | TimeoutRefused | undefined>;
  /** The same for one attempt of a body and the event that records it. */
  transact(
    run: RunState,
    draft: TransactionDraft,
  ): Promise<(Appended & { readonly entry: Entry }) | RolledBack | undefined>;
  /** Asks children to end, in this order. */
  cancel(children: readonly ExecutionId[], force: boolean): void;
  log(speaker: Speaker, level: keyof RunLog, message: string, data: unknown): void;
  setProgress(run: RunState, value: unknown): void;
  /** The live output of a run. */
  readonly outputOf: (
    run: Pick<LoadedExecution, "id" | "key" | "nextVersion" | "continuations">,
  ) => RunOutput;
  /** Frees the place of a waiting run, which may be forgotten from now on. */
  rests(run: RunState): void;
  /** Resumes a run whose timer has come, if it still belongs to this worker. */
  wakes(run: RunState): void;
  /** Checks a run to whose log another writer appended: it may have been paused or cancelled. */
  interrupted(run: RunState): void;
  /** Renews the expired lock of a run. Never rejects: a run that belongs to another worker by now is dropped. */
  renew(run: RunState): Promise<void>;
  /** Drops a run that can no longer append. */
  lost(run: RunState, reason: HoldfastError): void;
  /** Fetches responses that the run may not know. */
  fetch(run: RunState): void;
  /** Releases the run, due at once or when it is unpaused. */
  release(run: RunState, reason: string): Promise<void>;
  /** Handles a run that has ended, or that starts its next pass under its id. */
  ended(run: RunState, isContinued: boolean): void;
  parked(run: RunState, why: HoldfastError): void;
  /** The event that keeps a run with this worker when its next pass starts. */
  lockedAgain(run: RunState): ExecutionEvent;
  /**
   * Set for replays that change nothing. Nothing is started or recorded, and this is called
   * once everything known was delivered.
   */
  readonly onlyReplays?: (run: RunState) => void;
  warn(message: string, details: Readonly<Record<string, unknown>>): void;
}
