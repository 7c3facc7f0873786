import type { HoldfastError } from "../../model/errors.ts";
import type { LoggedResponse } from "../../model/execution/event.ts";
import type { ExecutionId } from "../../model/ids/execution-id.ts";
import type { LoadedExecution } from "../../stores/execution/lock/locked.ts";
import type { Definition } from "../definition/definitions.ts";
import type { Journal } from "./journal.ts";
import type { LateAbort } from "./late-abort.ts";
import type { Mailbox } from "./mailbox.ts";
import type { OpenCalls } from "./ctx/open-calls.ts";
import type { Replay } from "./replay/replay.ts";
import type { RunHost } from "./run-host.ts";
import type { LoggedHistory } from "./replay/script.ts";
import type { Steps } from "./steps.ts";
import type { TransactionAttempt } from "./tasks.ts";

/** The end of the code of a run. */
export type Settled =
  | { readonly kind: "returned"; readonly value: unknown }
  | { readonly kind: "threw"; readonly error: unknown };

/** The receiver of a child's or a delay's end: the call that waits for it, or a set. */
export interface Source {
  readonly call: number;
  /** Called instead of settling the call, for a member of a set. */
  readonly deliver?: (logged: LoggedResponse<unknown>) => void;
}

/**
 * A run whose code is in memory. The files beside this one act on it: `pump.ts` advances it,
 * `calls.ts` serves its code, `ending.ts` ends it, and `hot-run.ts` is the worker's view of it.
 */
export interface RunState {
  readonly host: RunHost;
  readonly definition: Definition;
  readonly locked: LoadedExecution;
  readonly id: ExecutionId;
  readonly replay: Replay;
  readonly steps: Steps;
  readonly open: OpenCalls;
  readonly journal: Journal;
  readonly mailbox: Mailbox;
  /** Aborted when the cancellation is delivered. */
  readonly abort: LateAbort;
  /**
   * Steps and transactions that have not started. The log is being replayed without an outcome
   * of them so far, or a token that they may reveal is not recorded.
   */
  readonly unstarted: Map<number, () => void>;
  /** Transactions whose next attempt may be made, in order. */
  readonly transactions: TransactionAttempt[];
  readonly sources: Map<string, Source>;
  /** Children that have not ended, in the order in which they were requested. */
  readonly children: Map<ExecutionId, number>;
  /** Durable outcomes that wait to be delivered. */
  readonly acknowledged: LoggedHistory[];
  /** Responses that wait to be delivered. */
  readonly arrived: LoggedResponse<unknown>[];
  readonly patches: Map<string, boolean>;

  /** The number of the last call. */
  calls: number;
  /** Random values since that call. */
  draws: number;
  /** The number of the last delivered response. */
  seen: number;
  /** The number of the last response that was read. */
  known: number;
  /** The latest instant that was delivered. */
  now: number;
  /** True between a delivery and the rest that follows it: only then does the code run. */
  isAwake: boolean;
  isAppending: boolean;
  /** The append starts the next pass, and locks the run again for it. */
  isLockingAgain: boolean;
  /**
   * The append says that the run waits, and until when it belongs to its worker. No other
   * append may say that in between.
   */
  isGoingToRest: boolean;
  /** The log says that the run waits. */
  isWaiting: boolean;
  /** Nothing of the run is executed or recorded any more. */
  isOver: boolean;
  settled: Settled | undefined;
  /** The code has called `ctx.continueWith`, and must return its result. */
  isContinuing: boolean;
  /** Set when the run cannot continue as it is: it is parked at the next rest. */
  poison: HoldfastError | undefined;
  cancellation: LoadedExecution["cancellation"];
  /** The number of calls that had been made when the cancellation was delivered. */
  cancelledAt: number | undefined;
  /** The instant after which the run ends without waiting for its cleanup. */
  cleanupBy: number | undefined;
  /** The reason to release the run once running steps are recorded: it was paused, or its worker closes. */
  leaving: string | undefined;
  /** The end of the run no longer waits for anything. */
  isAbandoned: boolean;
  /** The version of the next event. */
  version: number;
  /** About the number of bytes of values that the code was given, and may hold. */
  heldBytes: number;
  /** No other worker locks the run before this instant. */
  leaseUntil: number;
  /** Children that are to be asked to end, newest first. */
  childrenToCancel: readonly ExecutionId[];
  /** Running children that the code, or its cancellation, has asked to end. */
  readonly childrenAsked: Set<ExecutionId>;
  /** Progress that the code reported during replay, if it may not have been written. */
  lateProgress: { readonly value: unknown } | undefined;
  /** The code has ended, and the calls that it left open are being ended. */
  isClosing: boolean;
  /** Marks for messages and actions that happen once. */
  readonly told: Set<string>;
  /** Asks for the run to be advanced at the next rest. */
  readonly again: () => void;
}
