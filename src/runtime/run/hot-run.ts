import { monotonicMs } from "../../host/timers.ts";
import type { LoggedResponse } from "../../model/execution/event.ts";
import type { LoadedExecution } from "../../stores/execution/lock/locked.ts";
import type { Definition } from "../definition/definitions.ts";
import type { Drained } from "../drain.ts";
import { nextWakeAt } from "./append.ts";
import { broke } from "./broken.ts";
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
import { outside, where } from "./step-context.ts";
import { continuationLost, isContinuationLost } from "./continuation.ts";
import { Steps } from "./steps.ts";

/**
 * A run whose code is in memory. Its code goes on only when something is
 * delivered to it: an outcome that it recorded itself, or a response from
 * elsewhere. Between two deliveries it runs until no microtask is left, so
 * what it does follows from the order of deliveries alone; and that order is
 * in the log, since `seen` of each event says which responses came before it.
 *
 *   code rests ─ pump: one delivery ─ code runs ─ rests ─ pump: append ─ durable ─ delivery …
 *
 * One append is under way at a time, and nothing is delivered meanwhile, so
 * that `seen` is exact.
 */
export class HotRun implements Drained {
  isAsked = false;
  readonly state: RunState;
  #wakeAt: number | null = null;
  #cancelTimer: () => void = () => undefined;

  constructor(host: RunHost, definition: Definition, locked: LoadedExecution) {
    this.state = newState(host, definition, locked, () => host.drain.ask(this));
  }

  /** Begins to run the code, from its start, whatever its log holds. */
  start(): void {
    const { state } = this;
    const { definition, locked } = state;
    if (definition.kind !== "workflow") {
      state.poison = otherKind(locked, definition);
      return state.again();
    }
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

  /** Responses that were read, in order; those that it knows are passed over. */
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

  /** It is to be cancelled. */
  cancel(cancellation: LoadedExecution["cancellation"]): void {
    const { state } = this;
    state.cancellation ??= cancellation;
    // It is due in the log, so the next rest is recorded anew.
    state.isWaiting = false;
    state.again();
  }

  /** Nothing new is begun; it is released once what runs has been recorded. */
  leave(reason: string): void {
    this.state.leaving ??= reason;
    this.state.again();
  }

  /** True when it waits and has been told of nothing since: it may be forgotten. */
  get isAtRest(): boolean {
    const { isWaiting, isAppending, isOver, arrived } = this.state;
    return isWaiting && !isAppending && !isOver && arrived.length === 0;
  }

  /** Whether an instant that it waits for has come. */
  get isDue(): boolean {
    const wakeAt = nextWakeAt(this.state);
    return wakeAt !== null && wakeAt <= this.state.host.clock.now();
  }

  /** It has a place: what is due is begun. */
  wake(): void {
    this.state.isWaiting = false;
    this.state.again();
  }

  /** Nothing but this lock has happened to it since it began to rest. */
  isAsBefore({ nextVersion }: Pick<LoadedExecution, "nextVersion">): boolean {
    return this.isAtRest && this.state.version === nextVersion - 1;
  }

  /** Nothing more of it is run or recorded. */
  drop(reason: Error): void {
    const { state } = this;
    state.isOver = true;
    state.steps.drop(() => reason);
    this.#cancelTimer();
  }

  /** A timer for what it waits for besides responses. */
  #arm(): void {
    const { isOver, isAppending } = this.state;
    // During an append nothing is begun, however due it is; behind it this is asked again.
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
  const differ = ({ thrown, ...difference }: Difference): void => {
    const mismatch = {
      run: id,
      function: definition.name,
      codeVersion: host.codeVersion,
      recordedCodeVersion: locked.previousCodeVersion,
      ...difference,
    };
    const isOnlyReplayed = host.onlyReplays !== undefined;
    state.poison ??= nondeterminism(mismatch, isOnlyReplayed, thrown);
    again();
  };
  const state: RunState = {
    host,
    definition,
    locked,
    id,
    replay: new Replay(scriptOf(history, [...unreadSignals, ...responses]), differ),
    steps: new Steps({
      id,
      // Passes of one run number their calls alike.
      pass: `${id}~${locked.continuations}`,
      clock: host.clock,
      random: host.random,
      encode: (value) => host.values.value(value),
      took(step, ms) {
        const { loop } = host.drain;
        loop.took(ms, loop.toldMs, holders, step);
      },
      began: (key) => host.bodies.begin(key),
      broke: (error) => broke(state, error),
      record(record) {
        journal.record(record);
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

/** What every run has when its code begins. */
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
    // One that was to start later is not in the past when it does.
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
