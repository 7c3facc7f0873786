import type { HoldfastError } from "../../model/errors.ts";
import type { ExecutionCodec } from "../../model/execution/codec.ts";
import type { ExecutionEvent } from "../../model/execution/event.ts";
import type { ExecutionId } from "../../model/ids/execution-id.ts";
import type { Clock } from "../../model/time/clock.ts";
import type { Tx } from "../../sql/operation.ts";
import type { ExecutionDraft, NewExecution } from "../../stores/execution/log/create.ts";
import type { Drain } from "../drain.ts";
import type { RunningBodies } from "../running-bodies.ts";
import type { Speaker } from "../worker/run-log.ts";
import type { RunLog } from "../definition/workflow-context.ts";
import type { Entry } from "./journal.ts";
import type { RunState } from "./run-state.ts";

/** What a run asks to be appended to its log. */
export interface AppendDraft {
  readonly events: readonly ExecutionEvent[];
  readonly children?: readonly NewExecution[];
  readonly starts?: readonly NewExecution[];
}

/** What came of it. */
export interface Appended {
  /** Of the first event. */
  readonly version: number;
  readonly at: number;
  readonly nextVersion: number;
  /** That it waits was left out, since it turned out that it is to be cancelled. */
  readonly isAwake?: true;
  /** How many responses there are, if the run waits and has not seen them all. */
  readonly responses: number;
  /** How detached starts among the events went, by version. */
  readonly scheduled: ReadonlyMap<number, "created" | "existed" | "conflict">;
}

/** A body on the user's tables, to be committed with the event that records it. */
export interface TransactionDraft {
  readonly call: number;
  readonly name: string;
  readonly seen: number;
  readonly body: () => Tx<unknown>;
}

/** What a run needs of the worker that has it. */
export interface RunHost {
  readonly clock: Clock;
  readonly drain: Drain;
  readonly bodies: RunningBodies;
  readonly values: ExecutionCodec;
  readonly codeVersion: string | null;
  /** A number below 1. */
  readonly random: () => number;
  /** A token with which an external can be resolved. */
  readonly tokenOf: (external: ExecutionId) => string;
  /** Until when a run that begins to wait now stays this worker's. */
  readonly hotUntil: (run: RunState) => number;
  /** Checked and encoded. @throws HoldfastError when it is not as it should be. */
  readonly newExecution: (draft: ExecutionDraft) => NewExecution;
  /** Resolves when it is durable. Never rejects: a run that cannot append is dropped or parked. */
  append(run: RunState, draft: AppendDraft): Promise<Appended | undefined>;
  /** The same for a body and the event that records it. */
  transact(
    run: RunState,
    draft: TransactionDraft,
  ): Promise<(Appended & { readonly entry: Entry }) | undefined>;
  /** Asks children to end, in this order. */
  cancel(children: readonly ExecutionId[], force: boolean): void;
  log(speaker: Speaker, level: keyof RunLog, message: string, data: unknown): void;
  setProgress(run: RunState, value: unknown): void;
  /** The run waits: it holds no place, and may be forgotten. */
  rests(run: RunState): void;
  /** A timer of the run has come: it goes on if it is still this worker's. */
  wakes(run: RunState): void;
  /** Somebody wrote to its log: it may have been paused or cancelled. */
  interrupted(run: RunState): void;
  /** Renews its lock, whose lease is over. Never rejects: a run that is another's by now is dropped. */
  renew(run: RunState): Promise<void>;
  /** It cannot append any more. */
  lost(run: RunState, reason: HoldfastError): void;
  /** There may be responses that it does not know. */
  fetch(run: RunState): void;
  /** Gives it back, due at once or when it is unpaused. */
  release(run: RunState, reason: string): Promise<void>;
  /** It has ended, or begins anew under its id. */
  ended(run: RunState, isContinued: boolean): void;
  parked(run: RunState, why: HoldfastError): void;
  /** The event that keeps a run with this worker when it begins anew. */
  lockedAgain(run: RunState): ExecutionEvent;
  /** For replays that change nothing: nothing is begun or recorded, and this is called when all that is known was delivered. */
  readonly onlyReplays?: (run: RunState) => void;
  warn(message: string, details: Readonly<Record<string, unknown>>): void;
}
