import type { HoldfastError } from "../../../model/errors.ts";
import type { ExecutionId } from "../../../model/ids/execution-id.ts";
import type { LoadedExecution, LockedExecution } from "../../../stores/execution/lock/locked.ts";
import type { HeldLockOf } from "../../../stores/execution/lock/held.ts";
import type { ExecutionStanding } from "../../../stores/execution/read/standings.ts";
import { newResponse, runInterrupted } from "../../../stores/execution/topics.ts";
import { Appends } from "./appends.ts";
import type { Definition } from "../../definition/definitions.ts";
import { lockWasLost } from "../../failures.ts";
import { RestingRuns } from "./resting-runs.ts";
import { UntilEmpty } from "./until-empty.ts";
import { givingWay, isLong, loadedWhole, nextPass, tellFault } from "./history.ts";
import { interruptionOf } from "./interruption.ts";
import { releaseLeft } from "../held-locks.ts";
import { repeated } from "../../pauses.ts";
import { PlacedRuns } from "./placed-runs.ts";
import { Responses } from "./responses.ts";
import { Loading, type Load } from "./loading.ts";
import { lockOf, renewedLock, type HeldLock } from "../renewals.ts";
import { loadedBytes } from "../../run/held-bytes.ts";
import { HotRun } from "../../run/hot-run.ts";
import type { RunHost } from "../../run/run-host.ts";
import type { RunState } from "../../run/run-state.ts";
import { workerHost } from "./worker-host.ts";
import { UnnamedChanges } from "./unnamed-changes.ts";
import type { WorkerParts } from "../worker-parts.ts";

/**
 * The workflows that a worker has in memory: the running workflows, and as many waiting ones as
 * it may keep. A run that waits past its lease stays in memory. If the worker locks it again
 * and no other worker has had it in between, it resumes where it stopped instead of being
 * replayed.
 */
export class HotRuns {
  readonly #parts: WorkerParts;
  /** Resting runs, in the order in which they began to rest. */
  readonly #runs = new Map<ExecutionId, HotRun>();
  readonly #places: PlacedRuns;
  /** Runs whose interruption is being read. */
  readonly #looking = new WeakMap<HotRun, Promise<void>>();
  readonly #responses: Responses;
  readonly #resting = new RestingRuns();
  readonly #loading = new Loading();
  readonly #host: RunHost;
  readonly #unnamed: UnnamedChanges;
  #unsubscribe: () => void = () => undefined;
  readonly #untilEmpty: UntilEmpty;
  #isClosing = false;

  constructor(parts: WorkerParts) {
    this.#parts = parts;
    this.#places = new PlacedRuns(parts, (run) => this.#runs.get(run.state.id) === run);
    this.#responses = new Responses(parts, this.#places, {
      current: (id) => this.#runs.get(id),
      looked: (run) => this.#looking.get(run),
    });
    this.#unnamed = new UnnamedChanges(
      parts,
      () => Array.from(this.#runs.values(), ({ state }) => state.locked),
      (standing) => this.#stands(standing),
    );
    this.#untilEmpty = new UntilEmpty(parts.context.clock, () => this.#runs.size === 0);
    const appends = new Appends(parts);
    this.#host = workerHost(parts, appends, {
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

  /** Subscribes once to responses and interruptions of all its runs. */
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

  /** Checks a run that may have changed. */
  #stands({ id, responses, lifecycle, state }: ExecutionStanding): void {
    const known = this.#runs.get(id)?.state.known ?? responses;
    if (responses > known) void this.#responses.fetch(id);
    if (lifecycle !== "active" || state === "finished") void this.#interrupted(id);
  }

  /** Takes a run that was just locked, which holds a place. */
  adopt(definition: Definition, locked: LockedExecution): void {
    const { id } = locked;
    const warm = this.#runs.get(id);
    const isWarm = warm?.isAsBefore(locked) === true;
    // The run may have been released and locked again before the release is known here.
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
    void this.#untilEmpty.during(this.#parts.early.during(() => this.#begin(definition, locked)));
  }

  /** Checks a run that a caller may have interrupted or answered since it was locked. */
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
      // The lease expires, and the run is loaded again. A damaged row is reported each time.
      this.#notLoaded(locked.id);
      tellFault(context, locked.id, "could not be loaded", error);
    }
  }

  async #load(definition: Definition, locked: LoadedExecution, load: Load): Promise<void> {
    const { context, signal } = this.#parts;
    const { id } = locked;
    const whole = await repeated(context.clock, signal, () => loadedWhole(context, locked));
    // Other work gets its turn between the pages, their decoding, and the replay.
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
    // The later of two locks that were read at once counts.
    if (other?.isOver === false) {
      if (other.version >= locked.nextVersion) return;
      this.#runs.get(id)?.drop(lockWasLost(id));
    }
    this.#runs.set(id, run);
    if (this.#isClosing) return run.leave("the worker closes");
    run.start();
    this.#lookAgain(id);
  }

  /** Frees the place of a run that was not loaded, and forgets its earlier pass. */
  #notLoaded(id: ExecutionId): void {
    const before = this.#runs.get(id)?.state;
    if (before?.isOver === true) this.#forget(before);
    this.#places.give(id);
  }

  /** The locks that must be renewed. */
  running(): readonly HeldLock[] {
    const held = [...this.#loading.held()];
    for (const { state } of this.#runs.values())
      if (!state.isWaiting && !state.isGoingToRest && !state.isOver)
        held.push(lockOf(state, () => this.#lost(state, lockWasLost(state.id))));
    return held;
  }

  /**
   * True if a run continues here under a lock, or is about to. A run that does not know of its
   * release has an older lock.
   */
  holds({ id, lockVersion }: HeldLockOf): boolean {
    if (this.#loading.has(id)) return true;
    const state = this.#runs.get(id)?.state;
    if (state === undefined || state.isOver || state.isWaiting) return false;
    // A run that starts its next pass may have locked itself again before it knows the answer.
    return state.isLockingAgain || state.version > (lockVersion ?? 0);
  }

  /**
   * Resolves when no run is left, or at the instant. The remaining runs are released as the log
   * has them: an append may be under way.
   */
  async close(by: number): Promise<void> {
    this.#isClosing = true;
    const { clock } = this.#parts.context;
    for (const run of Array.from(this.#runs.values()))
      if (run.isAtRest && run.state.leaseUntil <= clock.now()) this.#forget(run.state);
      else run.leave("the worker closes");
    await this.#untilEmpty.by(by);
    const left = new Set([...this.#loading.ids(), ...this.#runs.keys()]);
    for (const { state } of Array.from(this.#runs.values()))
      this.#forget(state, "The worker closed before this was done.");
    await releaseLeft(this.#parts, left);
    this.#unsubscribe();
  }

  #rests(state: RunState): void {
    const { id } = state;
    const run = this.#runs.get(id);
    // The run was locked again before this was known: the place belongs to the new lock.
    if (run?.state !== state) return;
    this.#places.give(id);
    this.#runs.delete(id);
    this.#runs.set(id, run);
    if (this.#isClosing) return run.leave("the worker closes");
    this.#resting.add(id, run.state.heldBytes);
    const isAsking = (asking: ExecutionId): boolean => this.#places.isAsking(asking);
    this.#resting.evict(this.#runs, isAsking, this.#parts.settings);
  }

  /** Wakes a run whose timer has come. */
  #wakes({ id }: RunState): void {
    const run = this.#runs.get(id);
    if (run?.isDue !== true) return;
    this.#places.goOn(run, () => {
      if (run.isDue) run.wake();
      // Another event resumed the run in between, and it rests again.
      else if (run.isAtRest) this.#places.give(id);
    });
  }

  /** Handles a run that a caller paused, cancelled, ended or parked. */
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
      // The next pass has begun in between, and must learn of it.
      if (this.#runs.get(state.id) !== run) return await this.#interrupted(state.id);
      if (interruption.kind === "taken") return this.#lost(state, lockWasLost(state.id));
      // A resting run is released too: once resumed, it need not wait for the end of its lease.
      if (interruption.kind === "paused") return run.leave("paused");
      if (interruption.kind === "cancelled")
        this.#places.goOn(run, () => run.cancel(interruption.cancellation));
    } catch {
      // The next append, or the next lock, finds out.
    }
  }

  /** Starts the next pass of a run under its id. The run keeps its place and its lock. */
  #continue(state: RunState): Promise<void> {
    return this.#loading.during(state.locked, state.leaseUntil, (load) =>
      this.#nextPass(state, load),
    );
  }

  async #nextPass(state: RunState, load: Load): Promise<void> {
    try {
      const next = await nextPass(this.#parts, state);
      // The run was locked again in between.
      if (this.#runs.get(state.id)?.state !== state) return;
      if (next === undefined) return this.#forget(state);
      const { leaseUntil } = load;
      if (state.leaving === undefined)
        return await this.#begin(state.definition, { ...next, leaseUntil });
      // The run was paused, or its worker closes, since its last pass ended.
      state.version = next.nextVersion;
      await this.#releaseBetween(state, state.leaving);
    } catch (error) {
      const { message } = error as Error;
      await this.#releaseBetween(state, `it could not be read: ${message}`);
    }
  }

  /**
   * Releases a run between two passes. The lock is held though the last pass is over, so the
   * release is repeated behind events of other writers.
   */
  #releaseBetween(state: RunState, reason: string): Promise<void> {
    state.isOver = false;
    return this.#host.release(state, reason);
  }

  /** Renews an expired lease: no code of the run starts before the run is known to belong to this worker. */
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

  /** Forgets a run, unless a newer one has its id: it may be locked again as soon as it is released. */
  #forget(state: RunState, reason = "It was given back."): void {
    const { id } = state;
    const run = this.#runs.get(id);
    if (run?.state !== state) return;
    if (!state.isOver) run.drop(new Error(reason));
    this.#runs.delete(id);
    this.#resting.delete(id);
    this.#places.give(id);
    this.#untilEmpty.tell();
  }
}
