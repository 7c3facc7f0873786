import type { HoldfastError } from "../../model/errors.ts";
import type { LoggedResponse } from "../../model/execution/event.ts";
import type { ExecutionId } from "../../model/ids/execution-id.ts";
import type {
  LoadedExecution,
  LockedExecution,
} from "../../stores/execution/lock/locked.ts";
import { newResponse, runInterrupted } from "../../stores/execution/topics.ts";
import { Appends } from "./appends.ts";
import type { Definition } from "../definitions.ts";
import { lockWasLost } from "../failures.ts";
import { RestingBytes } from "./resting-bytes.ts";
import {
  cancellationOf,
  loadedWhole,
  nextPass,
  responsesAfter,
} from "./history.ts";
import { repeated } from "../pauses.ts";
import { nextWakeAt } from "../run/append.ts";
import {
  lockOf,
  lockOfResting,
  renewLocks,
  type HeldLock,
} from "./renewals.ts";
import { HotRun } from "../run/hot-run.ts";
import type { RunHost } from "../run/run-host.ts";
import type { RunState } from "../run/run-state.ts";
import { runHost } from "./run-host.ts";
import type { WorkerParts } from "./worker-parts.ts";

/**
 * The workflows that a worker has in memory: those that run, and as many of
 * those that wait as it may keep. A run that waits past its lease stays here;
 * when it is locked again and nobody else has had it, it goes on from where it
 * is instead of being replayed.
 */
export class HotRuns {
  readonly #parts: WorkerParts;
  /** Those that rest in the order in which they began to. */
  readonly #runs = new Map<ExecutionId, HotRun>();
  /** Those that hold a place, with their functions. */
  readonly #placed = new Map<ExecutionId, string>();
  readonly #fetching = new Set<RunState>();
  readonly #resting = new RestingBytes();
  /** Those that are about to be forgotten. */
  readonly #evicted = new Set<ExecutionId>();
  readonly #host: RunHost;
  #unsubscribe: () => void = () => undefined;
  /** How many are on their way into memory. */
  #loading = 0;
  #isClosing = false;
  #onEmpty: (() => void) | undefined;

  constructor(parts: WorkerParts) {
    this.#parts = parts;
    const { context, holder, signal } = parts;
    const appends = new Appends(context, holder, signal);
    this.#host = runHost(parts, appends, {
      hotUntil: (run) => this.#hotUntil(run),
      rests: (run) => this.#rests(run),
      wakes: (run) => this.#wakes(run),
      fetch: (run) => void this.#fetch(run.id),
      interrupted: (run) => void this.#interrupted(run.id),
      ended: (run, isContinued) =>
        isContinued
          ? void parts.early.during(() => this.#continue(run))
          : this.#forget(run),
      lost: (run, reason) => this.#lost(run, reason),
      released: (run) => this.#forget(run),
    });
  }

  /** Hears of responses and interruptions of all its runs by one subscription. */
  listen(): void {
    const { database } = this.#parts.context;
    this.#unsubscribe = database.subscribe(
      (hint) => {
        if (hint.kind === "closing" || hint.kind === "death") return;
        if (hint.kind === "unknown") {
          this.#parts.early.interruptions.add(undefined);
          this.#parts.early.responses.add(undefined);
        }
        const ids =
          hint.kind === "change"
            ? [hint.key as ExecutionId]
            : [...this.#runs.keys()];
        const isResponse =
          hint.kind === "unknown" || hint.operation === newResponse;
        for (const id of ids)
          void (isResponse ? this.#fetch(id) : this.#interrupted(id));
        if (hint.kind === "unknown")
          for (const id of ids) void this.#interrupted(id);
      },
      [{ operation: newResponse }, { operation: runInterrupted }],
    );
  }

  /** Takes a run that was just locked, and holds a place. */
  adopt(definition: Definition, locked: LockedExecution): void {
    const { id } = locked;
    const warm = this.#runs.get(id);
    const isWarm = warm !== undefined && isAsItWas(warm, locked);
    // It may have been given back just now, and be locked before that is known here.
    if (warm !== undefined && !isWarm) this.#forget(warm.state);
    // The lock came with a place of its own.
    this.#givePlace(id);
    this.#placed.set(id, definition.name);
    if (isWarm) {
      warm.state.version = locked.nextVersion;
      warm.state.leaseUntil = locked.leaseUntil;
      warm.state.isWaiting = false;
      warm.state.cancellation ??= locked.cancellation;
      warm.arrive(locked.responses);
      warm.state.again();
      if (locked.hasMoreResponses) void this.#fetch(id);
      this.#lookAgain(id);
      return;
    }
    this.#loading += 1;
    void this.#parts.early
      .during(() => this.#begin(definition, locked))
      .then(() => {
        this.#loading -= 1;
        this.#tellEmpty();
      });
  }

  /** Somebody may have interrupted or answered it since it was locked. */
  #lookAgain(id: ExecutionId): void {
    const { interruptions, responses } = this.#parts.early;
    if (interruptions.has(id)) void this.#interrupted(id);
    if (responses.has(id)) void this.#fetch(id);
  }

  async #begin(definition: Definition, locked: LoadedExecution): Promise<void> {
    const { context } = this.#parts;
    try {
      const whole = await loadedWhole(context, locked);
      const run = new HotRun(this.#host, definition, whole);
      const other = this.#runs.get(locked.id)?.state;
      // Of two locks that were read at once the later counts.
      if (other?.isOver === false) {
        if (other.version >= locked.nextVersion) return;
        this.#runs.get(locked.id)?.drop(lockWasLost(locked.id));
      }
      this.#runs.set(locked.id, run);
      run.start();
      this.#lookAgain(locked.id);
      if (this.#isClosing) run.leave("the worker closes");
    } catch (error) {
      // Its lease ends, and it is tried again; a damaged row is told of each time.
      const before = this.#runs.get(locked.id)?.state;
      if (before?.isOver === true) this.#forget(before);
      this.#givePlace(locked.id);
      context.tell({
        level: "error",
        message: `Run ${locked.id} could not be loaded: ${(error as Error).message}`,
        details: { id: locked.id },
      });
    }
  }

  /** What holds a lock that must be renewed. */
  running(): readonly HeldLock[] {
    const held = [];
    for (const { state } of this.#runs.values())
      if (!state.isWaiting && !state.isOver)
        held.push(
          lockOf(state, () => this.#lost(state, lockWasLost(state.id))),
        );
    return held;
  }

  /** The functions of those that hold a place. */
  placed(): Iterable<string> {
    return this.#placed.values();
  }

  /** Resolves when none is left, or the instant has come. */
  async close(by: number): Promise<void> {
    this.#isClosing = true;
    const { clock } = this.#parts.context;
    for (const run of Array.from(this.#runs.values()))
      if (run.isAtRest && run.state.leaseUntil <= clock.now())
        this.#forget(run.state);
      else run.leave("the worker closes");
    await this.#emptied(by);
    for (const run of Array.from(this.#runs.values())) {
      run.drop(new Error("The worker closed before this was done."));
      await this.#host.release(run.state, "the worker closed");
    }
    this.#unsubscribe();
  }

  #tellEmpty(): void {
    if (this.#runs.size === 0 && this.#loading === 0) this.#onEmpty?.();
  }

  #emptied(by: number): Promise<void> {
    if (this.#runs.size === 0 && this.#loading === 0) return Promise.resolve();
    const { clock } = this.#parts.context;
    return new Promise((resolve) => {
      const cancel = clock.wakeAt(by, resolve);
      this.#onEmpty = () => {
        cancel();
        resolve();
      };
    });
  }

  /** Functions with limits wait without a lease: going on takes a lock, which counts. */
  #hotUntil({ definition }: RunState): number {
    const { context, settings } = this.#parts;
    const now = context.clock.now();
    const { concurrency, concurrencyPerKey } = definition;
    const isLimited =
      concurrency !== undefined || concurrencyPerKey !== undefined;
    return isLimited || this.#isClosing ? now : now + settings.leaseMs;
  }

  #rests({ id }: RunState): void {
    this.#givePlace(id);
    const run = this.#runs.get(id);
    if (run === undefined) return;
    this.#runs.delete(id);
    this.#runs.set(id, run);
    if (this.#isClosing) return run.leave("the worker closes");
    this.#resting.add(id, run.state.heldBytes);
    this.#evict();
  }

  /** Forgets those that have rested longest, until the others fit. Going on then costs one replay each. */
  #evict(): void {
    const { hotRunsMax, hotBytesMax } = this.#parts.settings;
    const fits = (): boolean =>
      this.#runs.size - this.#evicted.size <= hotRunsMax &&
      this.#resting.bytes <= hotBytesMax;
    if (fits()) return;
    for (const [id, run] of this.#runs) {
      if (!run.isAtRest || this.#evicted.has(id)) continue;
      this.#evicted.add(id);
      this.#resting.delete(id);
      run.leave("evicted");
      if (fits()) return;
    }
  }

  /** A timer of the run has come. */
  #wakes(state: RunState): void {
    const run = this.#runs.get(state.id);
    const wakeAt = nextWakeAt(state);
    const now = this.#parts.context.clock.now();
    if (run === undefined || wakeAt === null || wakeAt > now) return;
    this.#goOn(run, () => state.again());
  }

  #isOurs(run: HotRun): boolean {
    const { id, isOver, leaseUntil } = run.state;
    const { clock } = this.#parts.context;
    return this.#runs.get(id) === run && !isOver && leaseUntil > clock.now();
  }

  /**
   * Lets a run that rests go on once it has a place, if it is still this
   * worker's. Its lease has not been renewed while it rested, and might end
   * before the others' are: nothing is begun under what is left of it.
   */
  #goOn(run: HotRun, go: () => void): void {
    const { slots, context, settings } = this.#parts;
    const { state } = run;
    if (this.#placed.has(state.id)) return go();
    const isOurs = (): boolean => this.#isOurs(run);
    // Past its lease it is due in the log, and is locked by whoever comes first.
    if (!isOurs()) return;
    slots.again(() => {
      if (!isOurs() || this.#placed.has(state.id)) slots.give();
      else this.#placed.set(state.id, state.definition.name);
      if (!isOurs()) return;
      if (state.leaseUntil - context.clock.now() > settings.leaseMs / 2) go();
      else
        void renewLocks(this.#parts, [lockOfResting(state)]).then(() => {
          if (isOurs()) go();
          else if (this.#runs.get(state.id) === run) this.#givePlace(state.id);
        });
    });
  }

  /** Reads responses that a run does not know, one reading at a time. */
  async #fetch(id: ExecutionId): Promise<void> {
    const { context, early, signal } = this.#parts;
    const run = this.#runs.get(id);
    // If it is being locked just now, the lock may have been before the response.
    if (run === undefined || !this.#isOurs(run)) early.responses.add(id);
    if (run === undefined) return;
    const { state } = run;
    state.told.add("response");
    if (this.#fetching.has(state)) return;
    this.#fetching.add(state);
    try {
      while (state.told.delete("response") && !state.isOver) {
        const found = await repeated(context.clock, signal, () =>
          responsesAfter(context, id, state.known),
        );
        if (found.length > 0) this.#goOn(run, () => this.#arrive(run, found));
      }
    } catch (error) {
      if (signal.aborted) return;
      context.tell({
        level: "error",
        message: `Responses of ${id} could not be read: ${(error as Error).message}`,
        details: { id },
      });
    } finally {
      this.#fetching.delete(state);
    }
  }

  #arrive(run: HotRun, found: readonly LoggedResponse<unknown>[]): void {
    run.arrive(found);
    // It knew them all: it rests on, and needs no place.
    if (run.isAtRest) this.#givePlace(run.state.id);
  }

  /** A run was paused, cancelled or parked by somebody. */
  async #interrupted(id: ExecutionId): Promise<void> {
    this.#parts.early.interruptions.add(id);
    const run = this.#runs.get(id);
    if (run === undefined) return;
    const { executions } = this.#parts.context.pages;
    try {
      const { lifecycle } = (await executions.get(id)).state;
      if (lifecycle === "parked") return this.#lost(run.state, lockWasLost(id));
      // Given back also when it rests: resumed, it need not wait for the end of its lease.
      if (lifecycle === "paused") return run.leave("paused");
      if (lifecycle !== "cancelling" || run.state.cancellation !== null) return;
      const cancellation = await cancellationOf(this.#parts.context, id);
      if (cancellation === null) return;
      this.#goOn(run, () => run.cancel(cancellation));
    } catch {
      // Its next append, or its next lock, finds out.
    }
  }

  /** Begins the next pass of a run under its id. It keeps its place and its lock. */
  async #continue(state: RunState): Promise<void> {
    try {
      const next = await nextPass(this.#parts, state);
      // It was locked again meanwhile.
      if (this.#runs.get(state.id)?.state !== state) return;
      if (next === undefined) this.#forget(state);
      else await this.#begin(state.definition, next);
    } catch (error) {
      const { message } = error as Error;
      await this.#host.release(state, `it could not be read: ${message}`);
    }
  }

  #lost(state: RunState, reason: HoldfastError): void {
    const { id } = state;
    const run = this.#runs.get(id);
    if (run?.state === state) run.drop(reason);
    this.#parts.context.tell({
      level: "debug",
      message: `Run ${id} is not this worker's any more: ${reason.message}`,
      details: { id, code: reason.code },
    });
    this.#forget(state);
  }

  /** Unless another has its id by now: it was locked again as soon as it was given back. */
  #forget(state: RunState): void {
    const { id } = state;
    const run = this.#runs.get(id);
    if (run?.state !== state) return;
    if (!state.isOver) run.drop(new Error("It was given back."));
    this.#runs.delete(id);
    this.#evicted.delete(id);
    this.#resting.delete(id);
    this.#givePlace(id);
    this.#tellEmpty();
  }

  #givePlace(id: ExecutionId): void {
    if (this.#placed.delete(id)) this.#parts.slots.give();
  }
}

/** Nothing but this lock has happened to it since it began to rest. */
function isAsItWas(
  { state, isAtRest }: HotRun,
  locked: LockedExecution,
): boolean {
  return isAtRest && state.version === locked.nextVersion - 1;
}
