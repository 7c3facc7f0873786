import type { HoldfastError } from "../../../model/errors.ts";
import type { ExecutionId } from "../../../model/ids/execution-id.ts";
import type { LoadedExecution, LockedExecution } from "../../../stores/execution/lock/locked.ts";
import type { HeldLockOf } from "../../../stores/execution/lock/held.ts";
import type { ExecutionStanding } from "../../../stores/execution/read/standings.ts";
import { newResponse, runInterrupted } from "../../../stores/execution/topics.ts";
import { Appends } from "./appends.ts";
import type { Definition } from "../../definition/definitions.ts";
import { lockWasLost } from "../../failures.ts";
import { Resting } from "./resting.ts";
import { Emptied } from "./emptied.ts";
import { givingWay, isLong, loadedWhole, nextPass, tellFault } from "./history.ts";
import { interruptionOf } from "./interruption.ts";
import { releaseLeft } from "../held-locks.ts";
import { repeated } from "../../pauses.ts";
import { Places } from "./places.ts";
import { Responses } from "./responses.ts";
import { Loading, type Load } from "./loading.ts";
import { lockOf, renewedLock, type HeldLock } from "../renewals.ts";
import { loadedBytes } from "../../run/held-bytes.ts";
import { HotRun } from "../../run/hot-run.ts";
import type { RunHost } from "../../run/run-host.ts";
import type { RunState } from "../../run/run-state.ts";
import { runHost } from "./run-host.ts";
import { UnnamedChanges } from "./unnamed-changes.ts";
import type { WorkerParts } from "../worker-parts.ts";

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
  readonly #places: Places;
  /** Those of which is being read what somebody has done to them. */
  readonly #looking = new WeakMap<HotRun, Promise<void>>();
  readonly #responses: Responses;
  readonly #resting = new Resting();
  readonly #loading = new Loading();
  readonly #host: RunHost;
  readonly #unnamed: UnnamedChanges;
  #unsubscribe: () => void = () => undefined;
  readonly #emptied: Emptied;
  #isClosing = false;

  constructor(parts: WorkerParts) {
    this.#parts = parts;
    this.#places = new Places(parts, (run) => this.#runs.get(run.state.id) === run);
    this.#responses = new Responses(parts, this.#places, {
      current: (id) => this.#runs.get(id),
      looked: (run) => this.#looking.get(run),
    });
    this.#unnamed = new UnnamedChanges(
      parts,
      () => Array.from(this.#runs.values(), ({ state }) => state.locked),
      (standing) => this.#stands(standing),
    );
    const { context, holder, signal } = parts;
    this.#emptied = new Emptied(context.clock, () => this.#runs.size === 0);
    const appends = new Appends(context, holder, signal);
    this.#host = runHost(parts, appends, {
      hotUntil: (run) => this.#places.hotUntil(run, this.#isClosing),
      rests: (run) => this.#rests(run),
      wakes: (run) => this.#wakes(run),
      fetch: (run) => void this.#responses.fetch(run.id),
      interrupted: (run) => void this.#interrupted(run.id),
      ended: (run, isContinued) =>
        isContinued ? void parts.early.during(() => this.#continue(run)) : this.#forget(run),
      renew: (run) => this.#renew(run),
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
          return void this.#unnamed.look();
        }
        const id = hint.key as ExecutionId;
        void (hint.operation === newResponse ? this.#responses.fetch(id) : this.#interrupted(id));
      },
      [{ operation: newResponse }, { operation: runInterrupted }],
    );
  }

  /** One of its runs may have changed. */
  #stands({ id, responses, lifecycle, state }: ExecutionStanding): void {
    const known = this.#runs.get(id)?.state.known ?? responses;
    if (responses > known) void this.#responses.fetch(id);
    if (lifecycle !== "active" || state === "finished") void this.#interrupted(id);
  }

  /** Takes a run that was just locked, and holds a place. */
  adopt(definition: Definition, locked: LockedExecution): void {
    const { id } = locked;
    const warm = this.#runs.get(id);
    const isWarm = warm?.isAsBefore(locked) === true;
    // It may have been given back just now, and be locked before that is known here.
    if (warm !== undefined && !isWarm) this.#forget(warm.state);
    this.#places.take(id, definition.name);
    if (isWarm) {
      warm.state.version = locked.nextVersion;
      warm.state.leaseUntil = locked.leaseUntil;
      warm.state.isWaiting = false;
      warm.state.cancellation ??= locked.cancellation;
      warm.arrive(locked.responses);
      warm.state.again();
      if (locked.hasMoreResponses) void this.#responses.fetch(id);
      this.#lookAgain(id);
      return;
    }
    void this.#emptied.during(this.#parts.early.during(() => this.#begin(definition, locked)));
  }

  /** Somebody may have interrupted or answered it since it was locked. */
  #lookAgain(id: ExecutionId): void {
    const { interruptions, responses } = this.#parts.early;
    if (interruptions.has(id)) void this.#interrupted(id);
    if (responses.has(id)) void this.#responses.fetch(id);
  }

  async #begin(definition: Definition, locked: LoadedExecution): Promise<void> {
    const { context } = this.#parts;
    try {
      await this.#loading.during(locked, locked.leaseUntil ?? 0, (load) =>
        this.#load(definition, locked, load),
      );
    } catch (error) {
      // Its lease ends, and it is tried again; a damaged row is told of each time.
      this.#notLoaded(locked.id);
      tellFault(context, locked.id, "could not be loaded", error);
    }
  }

  async #load(definition: Definition, locked: LoadedExecution, load: Load): Promise<void> {
    const { context, signal } = this.#parts;
    const { id } = locked;
    const whole = await repeated(context.clock, signal, () => loadedWhole(context, locked));
    // Others have their turn between the pages, what is made of them, and the replay.
    if (isLong(whole)) await givingWay();
    const run = new HotRun(this.#host, definition, whole);
    if (isLong(whole)) await givingWay();
    run.state.heldBytes += loadedBytes(whole);
    while (load.leaseUntil <= context.clock.now()) {
      const until = await renewedLock(this.#parts, load);
      if (until === undefined) return this.#notLoaded(id);
      load.leaseUntil = Math.max(load.leaseUntil, until);
    }
    run.state.leaseUntil = load.leaseUntil;
    const other = this.#runs.get(id)?.state;
    // Of two locks that were read at once the later counts.
    if (other?.isOver === false) {
      if (other.version >= locked.nextVersion) return;
      this.#runs.get(id)?.drop(lockWasLost(id));
    }
    this.#runs.set(id, run);
    if (this.#isClosing) return run.leave("the worker closes");
    run.start();
    this.#lookAgain(id);
  }

  /** Nothing of it is here, but what a pass before has left. */
  #notLoaded(id: ExecutionId): void {
    const before = this.#runs.get(id)?.state;
    if (before?.isOver === true) this.#forget(before);
    this.#places.give(id);
  }

  /** What holds a lock that must be renewed. */
  running(): readonly HeldLock[] {
    const held = [...this.#loading.held()];
    for (const { state } of this.#runs.values())
      if (!state.isWaiting && !state.isGoingToRest && !state.isOver)
        held.push(lockOf(state, () => this.#lost(state, lockWasLost(state.id))));
    return held;
  }

  /** Whether a run is here that goes on under a lock, or is about to. One that has not heard that it was given back has an older one. */
  holds({ id, lockVersion }: HeldLockOf): boolean {
    if (this.#loading.has(id)) return true;
    const state = this.#runs.get(id)?.state;
    if (state === undefined || state.isOver || state.isWaiting) return false;
    // One that begins anew may have locked itself again without having heard of it.
    return state.isLockingAgain || state.version > (lockVersion ?? 0);
  }

  /** The functions of those that hold a place. */
  placed(): Iterable<string> {
    return this.#places.functions();
  }

  /** Resolves when none is left, or the instant has come. What is left is given back by what the log says of it: an append may be on its way. */
  async close(by: number): Promise<void> {
    this.#isClosing = true;
    const { clock } = this.#parts.context;
    for (const run of Array.from(this.#runs.values()))
      if (run.isAtRest && run.state.leaseUntil <= clock.now()) this.#forget(run.state);
      else run.leave("the worker closes");
    await this.#emptied.by(by);
    const left = new Set([...this.#loading.ids(), ...this.#runs.keys()]);
    for (const { state } of Array.from(this.#runs.values()))
      this.#forget(state, "The worker closed before this was done.");
    await releaseLeft(this.#parts, left);
    this.#unsubscribe();
  }

  #rests(state: RunState): void {
    const { id } = state;
    const run = this.#runs.get(id);
    // It was locked again before this was known: the place is that one's.
    if (run?.state !== state) return;
    this.#places.give(id);
    this.#runs.delete(id);
    this.#runs.set(id, run);
    if (this.#isClosing) return run.leave("the worker closes");
    this.#resting.add(id, run.state.heldBytes);
    this.#resting.evict(this.#runs, this.#parts.settings);
  }

  /** A timer of the run has come. */
  #wakes({ id }: RunState): void {
    const run = this.#runs.get(id);
    if (run?.isDue !== true) return;
    this.#places.goOn(run, () => {
      if (run.isDue) run.wake();
      // Something else let it go on meanwhile, and it rests again.
      else if (run.isAtRest) this.#places.give(id);
    });
  }

  /** A run was paused, cancelled, ended or parked by somebody. */
  async #interrupted(id: ExecutionId): Promise<void> {
    this.#parts.early.interruptions.add(id);
    const run = this.#runs.get(id);
    if (run === undefined) return;
    const looking = this.#lookAt(run);
    this.#looking.set(run, looking);
    await looking;
    if (this.#looking.get(run) === looking) this.#looking.delete(run);
  }

  async #lookAt(run: HotRun): Promise<void> {
    const { state } = run;
    const { context, signal } = this.#parts;
    try {
      const interruption = await repeated(context.clock, signal, () =>
        interruptionOf(context, state),
      );
      // Its next pass has begun meanwhile, and is to hear of it.
      if (this.#runs.get(state.id) !== run) return await this.#interrupted(state.id);
      if (interruption.kind === "taken") return this.#lost(state, lockWasLost(state.id));
      // Given back also when it rests: resumed, it need not wait for the end of its lease.
      if (interruption.kind === "paused") return run.leave("paused");
      if (interruption.kind === "cancelled")
        this.#places.goOn(run, () => run.cancel(interruption.cancellation));
    } catch {
      // Its next append, or its next lock, finds out.
    }
  }

  /** Begins the next pass of a run under its id. It keeps its place and its lock. */
  #continue(state: RunState): Promise<void> {
    return this.#loading.during(state.locked, state.leaseUntil, (load) =>
      this.#nextPass(state, load),
    );
  }

  async #nextPass(state: RunState, load: Load): Promise<void> {
    try {
      const next = await nextPass(this.#parts, state);
      // It was locked again meanwhile.
      if (this.#runs.get(state.id)?.state !== state) return;
      if (next === undefined) return this.#forget(state);
      const { leaseUntil } = load;
      if (state.leaving === undefined)
        return await this.#begin(state.definition, { ...next, leaseUntil });
      // It was paused, or its worker closes, since it ended its last pass.
      state.version = next.nextVersion;
      await this.#releaseBetween(state, state.leaving);
    } catch (error) {
      const { message } = error as Error;
      await this.#releaseBetween(state, `it could not be read: ${message}`);
    }
  }

  /** Between two passes the lock is held though the last is over: giving it back is repeated behind what others write meanwhile. */
  #releaseBetween(state: RunState, reason: string): Promise<void> {
    state.isOver = false;
    return this.#host.release(state, reason);
  }

  /** Its lease is over: nothing of it is begun before it is known to be this worker's. */
  async #renew(state: RunState): Promise<void> {
    const { id, locked } = state;
    const until = await renewedLock(this.#parts, locked);
    if (state.isOver) return;
    if (until === undefined) this.#lost(state, lockWasLost(id));
    else state.leaseUntil = Math.max(state.leaseUntil, until);
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
  #forget(state: RunState, reason = "It was given back."): void {
    const { id } = state;
    const run = this.#runs.get(id);
    if (run?.state !== state) return;
    if (!state.isOver) run.drop(new Error(reason));
    this.#runs.delete(id);
    this.#resting.delete(id);
    this.#places.give(id);
    this.#emptied.tell();
  }
}
