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
import type { RunHost, TransactionDraft } from "./run-host.ts";
import type { LoggedHistory } from "./replay/script.ts";
import type { Steps } from "./steps.ts";

/** How the code of a run ended. */
export type Settled =
  | { readonly kind: "returned"; readonly value: unknown }
  | { readonly kind: "threw"; readonly error: unknown };

/** Where a child's end, or a delay's, goes: to the call that waits for it, or to a set. */
export interface Source {
  readonly call: number;
  /** Told instead of the call, when it is a member of a set. */
  readonly deliver?: (logged: LoggedResponse<unknown>) => void;
}

/**
 * A run whose code is in memory. The files beside this one say what happens
 * to it: `pump.ts` moves it on, `calls.ts` serves its code, `ending.ts` ends
 * it, `hot-run.ts` is what its worker sees.
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
  /** Steps and transactions that have not begun: the log is being replayed and has no outcome of them so far, or a token that they may tell is not recorded. */
  readonly unstarted: Map<number, () => void>;
  readonly transactions: Omit<TransactionDraft, "seen">[];
  readonly sources: Map<string, Source>;
  /** Children that have not ended, in the order in which they were asked for. */
  readonly children: Map<ExecutionId, number>;
  /** Outcomes that are durable and wait to be delivered. */
  readonly acknowledged: LoggedHistory[];
  /** Responses that wait to be delivered. */
  readonly arrived: LoggedResponse<unknown>[];
  readonly patches: Map<string, boolean>;

  /** Of the last call that was made. */
  calls: number;
  /** Random values since that call. */
  draws: number;
  /** Of the last response that was delivered. */
  seen: number;
  /** Of the last response that was read. */
  known: number;
  /** The latest instant that was delivered. */
  now: number;
  /** Between a delivery and the rest that follows it: only then does the code run. */
  isAwake: boolean;
  isAppending: boolean;
  /** The append begins its next pass, and locks it again for that. */
  isLockingAgain: boolean;
  /** The append says that it waits, and until when it is its worker's: nothing else may say that meanwhile. */
  isGoingToRest: boolean;
  /** The log says that it waits. */
  isWaiting: boolean;
  /** Nothing of it is run or recorded any more. */
  isOver: boolean;
  settled: Settled | undefined;
  /** It has called `ctx.continueWith`, and must return what that gave. */
  isContinuing: boolean;
  /** Set when it cannot go on as it is: it is parked at the next rest. */
  poison: HoldfastError | undefined;
  cancellation: LoadedExecution["cancellation"];
  /** How many calls had been made when the cancellation was delivered. */
  cancelledAt: number | undefined;
  /** After this instant it is ended without waiting for its cleanup. */
  cleanupBy: number | undefined;
  /** Why it is given back once what runs is recorded: it was paused, or its worker closes. */
  leaving: string | undefined;
  /** Its end does not wait for anything any more. */
  isAbandoned: boolean;
  /** The version that its next event gets. */
  version: number;
  /** About how many bytes of values its code was given: so much it may hold. */
  heldBytes: number;
  /** Until then nobody else locks it. */
  leaseUntil: number;
  /** Children that are to be asked to end, newest first. */
  childrenToCancel: readonly ExecutionId[];
  /** Children that its code, or its cancellation, has asked to end and that have not. */
  readonly childrenAsked: Set<ExecutionId>;
  /** What the code said of its progress while it was replayed, if nobody may have written that. */
  lateProgress: { readonly value: unknown } | undefined;
  /** The code has ended, and what it left open is being ended. */
  isClosing: boolean;
  /** What was said, or done, once. */
  readonly told: Set<string>;
  /** Has it moved on at the next rest. */
  readonly again: () => void;
}
