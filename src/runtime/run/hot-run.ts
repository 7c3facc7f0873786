import { monotonicMs } from "../../host/timers.ts";
import type { LoggedResponse } from "../../model/execution/event.ts";
import type { LoadedExecution } from "../../stores/execution/lock/locked.ts";
import type { Definition } from "../definition/definitions.ts";
import type { Drained } from "../drain.ts";
import { nextWakeAt } from "./append.ts";
import { broke } from "./broken.ts";
import { convictedCleanup } from "./cancellation.ts";
import { LateAbort } from "./late-abort.ts";
import { roughBytes } from "./held-bytes.ts";
import type { Holders } from "../loop-watch.ts";
import { Journal } from "./journal.ts";
import { Mailbox } from "./mailbox.ts";
import { nondeterminism } from "./replay/nondeterminism.ts";
import { otherKind } from "./other-kind.ts";
import { OpenCalls } from "./ctx/open-calls.ts";
import { pump } from "./pump.ts";
import { Replay, type Difference } from "./replay/replay.ts";
import { RefusingContext } from "./ctx/refusing-context.ts";
import type { RunContext } from "./ctx/run-context.ts";
import type { RunHost } from "./run-host.ts";
import type { RunState, Settled } from "./run-state.ts";
import { scriptOf } from "./replay/script.ts";
import { keyOf, outside, where } from "./step-context.ts";
import { continuationLost, isContinuationLost } from "./continuation.ts";
import { Steps } from "./steps.ts";
import type { RunOutput } from "../stream/run-output.ts";

/**
 * A run whose code is in memory. Its code continues only after a delivery: an outcome that the
 * run recorded itself, or a response from elsewhere. Between two deliveries it runs until no
 * microtask is left, so its actions follow only from the order of deliveries. That order is in
 * the log, since `seen` of each event tells which responses came before it.
 *
 *   code rests ─ pump: one delivery ─ code runs ─ rests ─ pump: append ─ durable ─ delivery …
 *
 * One append is under way at a time, and nothing is delivered during it, so that `seen` is
 * exact.
 */
export class HotRun implements Drained {
  isAsked = false;
  readonly state: RunState;
  #wakeAt: number | null = null;
  #cancelTimer: () => void = () => undefined;

  constructor(host: RunHost, definition: Definition, locked: LoadedExecution) {
    this.state = newState(host, definition, locked, () => host.drain.ask(this));
  }

  /** Starts the code from its first line, whatever its log holds. */
  start(): void {
    const { state } = this;
    const { definition, locked } = state;
    if (definition.kind !== "workflow") {
      state.poison = otherKind(locked, definition);
      return state.again();
    }
    state.poison ??= convictedCleanup(locked);
    if (state.poison !== undefined) return state.again();
    const ctx = new RefusingContext(state);
    const settle = (settled: Settled): void => {
      if (isContinuationLost(state, settled)) state.poison ??= continuationLost(state);
      state.settled ??= settled;
      state.again();
    };
    state.isAwake = true;
    const { loop } = state.host.drain;
    const { toldMs } = loop;
    const began = monotonicMs();
    outside(() =>
      where.run({ id: state.id }, () => {
        void runBody(definition, ctx, locked.input).then(
          (value) => settle({ kind: "returned", value }),
          (error: unknown) => settle({ kind: "threw", error }),
        );
      }),
    );
    loop.took(monotonicMs() - began, toldMs, () => ({
      functions: [definition.name],
      id: state.id,
    }));
    state.again();
  }

  get name(): string {
    return this.state.definition.name;
  }

  pump(): void {
    try {
      if (pump(this.state)) this.state.again();
      else this.#arm();
    } catch (error) {
      broke(this.state, error);
    }
  }

  /** Adds responses that were read, in order, and skips known ones. */
  arrive(responses: readonly LoggedResponse<unknown>[]): void {
    const { state } = this;
    for (const logged of responses)
      if (logged.seq > state.known) {
        state.known = logged.seq;
        state.heldBytes += roughBytes(logged.response);
        state.arrived.push(logged);
      }
    if (state.arrived.length > 0 || state.isClosing) state.again();
  }

  /** Notes that the run is to be cancelled. */
  cancel(cancellation: LoadedExecution["cancellation"]): void {
    const { state } = this;
    state.cancellation ??= cancellation;
    // The run is due in the log, so the next rest is recorded again.
    state.isWaiting = false;
    state.again();
  }

  /** Starts nothing new, and releases the run once running steps have been recorded. */
  leave(reason: string): void {
    this.state.leaving ??= reason;
    this.state.again();
  }

  /** True while the run waits and nothing has reached it: it may be forgotten. */
  get isAtRest(): boolean {
    const { isWaiting, isAppending, isOver, arrived } = this.state;
    return isWaiting && !isAppending && !isOver && arrived.length === 0;
  }

  /** True if an instant that the run waits for has come. */
  get isDue(): boolean {
    const wakeAt = nextWakeAt(this.state);
    return wakeAt !== null && wakeAt <= this.state.host.clock.now();
  }

  /** Starts due work, now that the run has a place. */
  wake(): void {
    this.state.isWaiting = false;
    this.state.again();
  }

  /** True if only this lock has changed the run since it began to rest. */
  isAsBefore({ nextVersion }: Pick<LoadedExecution, "nextVersion">): boolean {
    return this.isAtRest && this.state.version === nextVersion - 1;
  }

  /** Drops the run: nothing more of it runs or is recorded. */
  drop(reason: Error): void {
    const { state } = this;
    state.isOver = true;
    state.steps.drop(() => reason);
    this.#cancelTimer();
  }

  /** Sets a timer for the instants that the run waits for. */
  #arm(): void {
    const { isOver, isAppending } = this.state;
    // During an append nothing starts, even if it is due. The check is repeated after the append.
    const wakeAt = isOver || isAppending ? null : nextWakeAt(this.state);
    if (wakeAt === this.#wakeAt) return;
    this.#wakeAt = wakeAt;
    this.#cancelTimer();
    this.#cancelTimer = () => undefined;
    if (wakeAt === null) return;
    this.#cancelTimer = this.state.host.clock.wakeAt(wakeAt, () => {
      this.#wakeAt = null;
      this.state.host.wakes(this.state);
    });
  }
}

async function runBody({ body }: Definition, ctx: RunContext, input: unknown): Promise<unknown> {
  return body(ctx as never, input);
}

function newState(
  host: RunHost,
  definition: Definition,
  locked: LoadedExecution,
  again: () => void,
): RunState {
  const { id, history, unreadSignals, responses, responsesFrom } = locked;
  const journal = new Journal();
  const holders = (step?: string): Holders => ({
    functions: [definition.name],
    id,
    ...(step !== undefined && { step }),
  });
  const differ = (difference: Difference): void => {
    const compared = {
      run: id,
      function: definition.name,
      codeVersion: host.codeVersion,
      recordedCodeVersion: locked.previousCodeVersion,
    };
    const isOnlyReplayed = host.onlyReplays !== undefined;
    state.poison ??= nondeterminism(compared, difference, isOnlyReplayed);
    again();
  };
  const outputOf = outputLater(host, locked);
  const state: RunState = {
    host,
    definition,
    locked,
    id,
    replay: new Replay(scriptOf(history, [...unreadSignals, ...responses], locked), differ),
    steps: new Steps({
      id,
      // Passes of one run number their calls alike.
      pass: `${keyOf(locked)}~${locked.continuations}`,
      clock: host.clock,
      random: host.random,
      encode: (value) => host.values.value(value),
      took(step, ms) {
        const { loop } = host.drain;
        loop.took(ms, loop.toldMs, holders, step);
      },
      began: (key) => host.bodies.begin(key),
      output: (call, step, attempt) => outputOf().step(call, step, attempt),
      broke: (error) => broke(state, error),
      record(record, times) {
        journal.record(record, times);
        again();
      },
      transact(attempt) {
        state.transactions.push(attempt);
        again();
      },
    }),
    open: new OpenCalls(),
    journal,
    mailbox: new Mailbox(),
    abort: new LateAbort(),
    ...atTheStart(locked),
    known: responses.at(-1)?.seq ?? responsesFrom,
    told: new Set(),
    again,
  };
  // Without a log everything happens for the first time, from the first line on.
  if (history.length === 0) {
    state.replay.abandon();
    state.arrived.push(...state.replay.later);
  }
  return state;
}

/** The live output of a run, which few runs have. */
function outputLater(host: RunHost, locked: LoadedExecution): () => RunOutput {
  let output: RunOutput | undefined;
  return () => (output ??= host.outputOf(locked));
}

/** The state of a run when its code starts. */
function atTheStart(
  locked: LoadedExecution,
): Omit<
  RunState,
  | "host"
  | "definition"
  | "locked"
  | "id"
  | "replay"
  | "steps"
  | "open"
  | "journal"
  | "mailbox"
  | "abort"
  | "known"
  | "told"
  | "again"
> {
  return {
    unstarted: new Map(),
    transactions: [],
    sources: new Map(),
    children: new Map(),
    acknowledged: [],
    arrived: [],
    patches: new Map(),
    calls: 0,
    draws: 0,
    seen: 0,
    // The clock of a run that starts later must not lag behind its start.
    now: Math.max(locked.startedAt, locked.created.scheduledAt),
    isAwake: false,
    isAppending: false,
    isGoingToRest: false,
    isWaiting: false,
    isOver: false,
    leaving: undefined,
    isClosing: false,
    isAbandoned: false,
    settled: undefined,
    isContinuing: false,
    isLockingAgain: false,
    poison: undefined,
    cancellation: locked.cancellation,
    cancelledAt: undefined,
    cleanupBy: undefined,
    childrenToCancel: [],
    childrenAsked: new Set(),
    lateProgress: undefined,
    version: locked.nextVersion,
    heldBytes: 0,
    leaseUntil: locked.leaseUntil ?? 0,
  };
}
