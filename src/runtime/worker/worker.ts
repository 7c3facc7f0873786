import { HoldfastError, isFinal } from "../../model/errors.ts";
import type { ExecutionId } from "../../model/ids/execution-id.ts";
import type { ExecutorId, RunId } from "../../model/ids/prefixed-id.ts";
import type { Fence } from "../../stores/execution/checks.ts";
import type { HeldLockOf } from "../../stores/execution/lock/held.ts";
import type { LockedExecution } from "../../stores/execution/lock/locked.ts";
import type { FunctionDraft } from "../../stores/execution/lock/limits.ts";
import type { ExecutionDraft } from "../../stores/execution/log/create.ts";
import type { LockPendingOutcome } from "../../stores/execution/lock/lock-pending.ts";
import type { Damaged } from "../../stores/damage.ts";
import { retryPolicyFor } from "../../model/time/retry-policy.ts";
import { ActivityRuns } from "./activity-runs.ts";
import { AloneRuns } from "./alone.ts";
import { hasLimit, type Definition } from "../definition/definitions.ts";
import { HintsWhileLocking } from "./hints-while-locking.ts";
import { HotRuns } from "./hot/hot-runs.ts";
import { watchMove } from "./move-watch.ts";
import { isDoneBy, pauseBefore } from "../pauses.ts";
import { keepLocks } from "./renewals.ts";
import type { RuntimeContext } from "../runtime-context.ts";
import { removeOld } from "./retention.ts";
import { removeOldStreams } from "./stream-retention.ts";
import type { FoundRun } from "./shares.ts";
import { Slots } from "./slots.ts";
import { keepTime, reportNotes } from "./timers.ts";
import { UnansweredLocks } from "./unanswered-locks.ts";
import { watchRejections } from "./unhandled-rejections.ts";
import type { WorkerParts, WorkerSettings } from "./worker-parts.ts";

/** The most runs that one call locks. */
const lockMax = 100;

/** The time for the last calls to be answered once the closing time is over. */
const answerMs = 5_000;

/** The most unreadable rows that are reported. */
const damagedMax = 1_000;

/** Needed, since a process that lives on and runs nothing goes unnoticed. */
const stopAdvice =
  " Until then this process runs nothing: close it and open it again, or end the process so that its supervisor restarts it.";

/**
 * Runs workflows and activities of some functions: locks due runs as far as there are places,
 * renews the locks, and handles due times for all.
 */
export class Worker {
  readonly functions: ReadonlyMap<string, Definition>;
  readonly #context: RuntimeContext;
  readonly #settings: WorkerSettings;
  readonly #holder: Fence;
  readonly #slots: Slots;
  readonly #early = new HintsWhileLocking();
  readonly #alone: AloneRuns;
  readonly #parts: WorkerParts;
  readonly #runs: HotRuns;
  readonly #activities: ActivityRuns;
  readonly #stopLocking = new AbortController();
  readonly #stop = new AbortController();
  readonly #served: readonly FunctionDraft[];
  /** The functions with limits. */
  readonly #limited: ReadonlySet<string>;
  /** Starts that may bring a run with them. */
  readonly #starting = new Set<Promise<unknown>>();
  /** Unreadable rows that were reported. */
  readonly #damaged = new Set<string>();
  /** Releases locks whose response this worker did not get. */
  readonly #unanswered: UnansweredLocks;
  #locking: Promise<void> = Promise.resolve();
  /** The last round of the worker's loop. */
  #round: Promise<unknown> = Promise.resolve();
  #loops: Promise<unknown> = Promise.resolve();
  #letEnd: () => void = () => undefined;
  #stopWatching: () => void = () => undefined;
  #closing: Promise<boolean> | undefined;

  constructor(
    context: RuntimeContext,
    functions: ReadonlyMap<string, Definition>,
    settings: WorkerSettings,
  ) {
    this.#context = context;
    this.functions = functions;
    this.#settings = settings;
    const { ids } = context.store;
    this.#holder = {
      executor: ids.nextId("Exr") satisfies ExecutorId,
      run: ids.nextId("Run") satisfies RunId,
    };
    this.#slots = new Slots(settings.concurrency, functions.keys(), () => context.clock.now());
    const parts = {
      context,
      settings,
      holder: this.#holder,
      slots: this.#slots,
      early: this.#early,
      signal: this.#stop.signal,
    };
    this.#alone = new AloneRuns(parts, context.places, (id) => this.#isHere(id));
    this.#parts = { ...parts, alone: this.#alone };
    this.#runs = new HotRuns(this.#parts);
    this.#activities = new ActivityRuns(this.#parts);
    this.#unanswered = new UnansweredLocks(
      this.#parts,
      (held) => this.#holds(held),
      () => [this.#round, ...this.#starting],
    );
    const definitions = [...functions.values()];
    this.#served = definitions.map(servedFunction);
    this.#limited = new Set(definitions.filter(hasLimit).map(({ name }) => name));
  }

  /** Resolves once the worker listens for work. */
  async start(): Promise<void> {
    const {
      database,
      pages: { executions },
    } = this.#context;
    // A worker that only waits is a reason to keep the process.
    this.#letEnd = database.keepAlive();
    const stopWatching = watchRejections(this.#context.tell);
    const onFinal = (error: HoldfastError): void => this.#leave(error);
    const stopMoveWatch = watchMove(this.#context, onFinal);
    this.#stopWatching = () => {
      stopWatching();
      stopMoveWatch();
    };
    this.#runs.listen();
    // There may have been no worker to notice the death of others.
    reportNotes(this.#context, await executions.releaseDead());
    if (this.#closing !== undefined) throw holdfastClosed();
    this.#locking = this.#lockLoop().finally(() => this.#slots.rest());
    this.#loops = Promise.all([
      this.#locking,
      keepLocks(this.#parts, () => [...this.#runs.running(), ...this.#activities.running()]),
      keepTime(this.#context, this.#stop.signal, onFinal),
      removeOld(this.#context, this.functions.values(), this.#stop.signal),
      removeOldStreams(this.#context, this.#settings.keepStreamsMs, this.#stop.signal),
    ]);
  }

  /** Creates a run and starts it here if a place is free. Undefined if other workers are to take it. */
  startHere(draft: ExecutionDraft): Promise<ExecutionId> | undefined {
    const definition = this.functions.get(draft.function);
    if (definition === undefined || !this.#canStart(definition, draft)) return undefined;
    const starting = this.#early.during(() => this.#startHere(definition, draft));
    this.#starting.add(starting);
    return starting.finally(() => this.#starting.delete(starting));
  }

  async #startHere(definition: Definition, draft: ExecutionDraft): Promise<ExecutionId> {
    const { name } = definition;
    this.#slots.take(name);
    try {
      const created = await this.#context.pages.executions.createLocked(
        draft,
        this.#terms(definition),
      );
      const { id, locked, existed } = created;
      if (!existed) this.#context.reports.started(name);
      if (locked !== undefined && !existed) this.#adopt(locked);
      else this.#slots.give(name);
      // A run that existed before continues where it is: it was started twice. If it is not
      // here, the answer to its lock was lost.
      if (locked !== undefined && existed && !this.#isHere(id)) this.#unanswered.look();
      return id;
    } catch (error) {
      this.#slots.give(name);
      this.#unanswered.mayBe(error);
      throw error;
    }
  }

  #holds(held: HeldLockOf): boolean {
    return this.#runs.holds(held) || this.#activities.holds(held);
  }

  /** True if this worker has the run, under any lock. */
  #isHere(id: ExecutionId): boolean {
    return this.#holds({ id, lockVersion: null });
  }

  /** True if a run may start here. Limits of functions are counted at the lock, and a later start is not due yet. */
  #canStart(definition: Definition, { startAt = "now" }: ExecutionDraft): boolean {
    return (
      this.#closing === undefined &&
      !this.#unanswered.isLooking &&
      this.#slots.free > 0 &&
      !hasLimit(definition) &&
      startAt === "now"
    );
  }

  /**
   * Stops taking work, lets running code reach a point at which its run can be released, and
   * releases the rest when the time is over.
   * @returns true if the database answered.
   */
  close(timeoutMs: number): Promise<boolean> {
    this.#closing ??= this.#close(timeoutMs);
    return this.#closing;
  }

  /**
   * Leaves a database that was moved or must be reopened. Its runs continue there, and none
   * of them can be released here.
   */
  #leave({ message, code }: HoldfastError): void {
    if (this.#closing !== undefined) return;
    this.#context.tell({
      level: "error",
      message: `This worker stops. ${message}${code === "MOVED_TO_POSTGRES" ? "" : stopAdvice}`,
      details: { code },
    });
    void this.close(0);
  }

  async #close(timeoutMs: number): Promise<boolean> {
    this.#stopLocking.abort();
    const { clock, tell } = this.#context;
    const by = clock.now() + timeoutMs;
    // The run is not to blame for a kill that follows the signal to close.
    await isDoneBy(clock, by, this.#alone.end());
    const given = this.#giveBack(by);
    // A call that the database never answers must not hold up the close.
    const isAnswered = await isDoneBy(clock, by + answerMs, given);
    if (!isAnswered)
      tell({
        level: "error",
        message: `The database has not answered for ${answerMs / 1_000} s after the timeout of close, so running work is not released: other workers take it over when its leases expire.`,
        details: {},
      });
    this.#stop.abort();
    await isDoneBy(clock, by + answerMs, this.#loops);
    this.#alone.leave();
    this.#letEnd();
    this.#stopWatching();
    return isAnswered;
  }

  async #giveBack(by: number): Promise<void> {
    // Runs that are being locked just now are released like the rest.
    await Promise.allSettled([this.#locking, ...this.#starting]);
    await this.#alone.end();
    await this.#unanswered.looked;
    await Promise.all([this.#runs.close(by), this.#activities.close(by)]);
  }

  #terms(definition: Definition) {
    const { leaseMs, codeVersion } = this.#settings;
    return {
      holder: this.#holder,
      lease: leaseMs,
      retry: policyOf(definition),
      ...(codeVersion !== undefined && { codeVersion }),
    };
  }

  async #lockLoop(): Promise<void> {
    const { signal } = this.#stopLocking;
    const { tell, clock } = this.#context;
    let failures = 0;
    while (!signal.aborted)
      try {
        await this.#slots.freed(signal);
        if (signal.aborted) return;
        await this.#unanswered.looked;
        const round = this.#early.during(() => this.#lockSome());
        this.#round = round;
        const found = await round;
        if (found === "nothing" && !this.#slots.isAsked) await this.#somethingDue(signal);
        if (found === "damage") {
          this.#slots.rest();
          // They stay due, so waiting for due work would not wait.
          await pauseBefore(clock, failures, signal);
        }
        failures = found === "damage" ? failures + 1 : 0;
      } catch (error) {
        if (signal.aborted) return;
        this.#slots.rest();
        const { message, code } = error as HoldfastError;
        // The database is not opened again under this worker, which is no longer a reason to
        // keep the process.
        if (code === "DATABASE_CLOSED") return this.#letEnd();
        if (isFinal(error)) return this.#leave(error);
        this.#unanswered.mayBe(error);
        tell({
          level: "warn",
          message: `Could not look for work; retrying: ${message}`,
          details: {},
        });
        await pauseBefore(clock, failures, signal);
        failures += 1;
      }
  }

  async #lockSome(): Promise<"work" | "damage" | "nothing"> {
    const { executions } = this.#context.pages;
    const { leaseMs, codeVersion } = this.#settings;
    const claim = this.#slots.claim(lockMax);
    // The free place was taken in between.
    if (claim === undefined) return "work";
    const isReserved = this.#alone.reserve(this.#slots, claim.count);
    let found: FoundRun[] | undefined;
    let outcome: LockPendingOutcome | undefined;
    try {
      outcome = await executions.lockPending({
        functions: this.#withLoads(claim.functions),
        limit: claim.count,
        suspects: isReserved ? "alone" : this.#alone.wanted(),
        holder: this.#holder,
        lease: leaseMs,
        signal: this.#stopLocking.signal,
        ...(codeVersion !== undefined && { codeVersion }),
      });
      const { locked, damaged, parked } = outcome;
      found = [];
      for (const row of damaged) this.#tellDamaged(row);
      reportNotes(this.#context, { parked });
      for (const one of locked) {
        found.push({ name: one.function, hasBegun: one.hasBegun });
        this.#slots.begin(one.function);
        this.#adopt(one);
      }
      if (locked.length + parked.length > 0) return "work";
      return damaged.length > 0 ? "damage" : "nothing";
    } finally {
      this.#alone.looked(isReserved, outcome);
      this.#slots.looked(claim, found, outcome?.isLimited === true ? this.#limited : undefined);
    }
  }

  /** Reports each row once, or every look for work would report it. */
  #tellDamaged(row: Damaged): void {
    if (this.#damaged.has(row.key) || this.#damaged.size >= damagedMax) return;
    this.#damaged.add(row.key);
    this.#context.tell({
      level: "error",
      message: `Run ${row.key} is unreadable and is skipped. Inspect it with maintenance.check.`,
      details: { ...row },
    });
  }

  /** Functions share the places: a function with thousands of runs leaves some to the others. */
  #withLoads(names: ReadonlySet<string>): readonly FunctionDraft[] {
    return this.#served
      .filter(({ name }) => names.has(name))
      .map((served) => ({
        ...served,
        load: this.#slots.loadOf(served.name),
        debt: this.#slots.debtOf(served.name),
      }));
  }

  async #somethingDue(signal: AbortSignal): Promise<void> {
    const { executions } = this.#context.pages;
    const { codeVersion } = this.#settings;
    this.#slots.rest();
    await this.#alone.during(signal, (suspects, stop) =>
      executions.waitForPending(this.#served, {
        signal: stop,
        suspects,
        ...(codeVersion !== undefined && { codeVersion }),
      }),
    );
    this.#slots.told();
  }

  #adopt(locked: LockedExecution): void {
    const definition = this.functions.get(locked.function);
    if (definition === undefined) throw new Error(`This worker does not serve ${locked.function}.`);
    // The answer came too late. Either the lease has expired and any worker may lock the run,
    // or this worker has closed.
    const { clock } = this.#context;
    if (locked.leaseUntil <= clock.now() || this.#stop.signal.aborted)
      return this.#slots.give(definition.name);
    if (locked.role === "activity") this.#activities.begin(definition, locked);
    else this.#runs.adopt(definition, locked);
  }
}

/** The error for a call after the close. */
export function holdfastClosed(): HoldfastError {
  return new HoldfastError(
    "DATABASE_CLOSED",
    "This Holdfast is closed, so it accepts no more work. Open it again to continue.",
  );
}

function policyOf({ kind, retry }: Definition) {
  return kind === "workflow" ? retryPolicyFor("workflow") : retry;
}

function servedFunction(definition: Definition): FunctionDraft {
  const { name, concurrency, concurrencyPerKey: perKeyMax, whenPoisoned } = definition;
  const retry = policyOf(definition);
  return { name, retry, whenPoisoned, concurrencyMax: concurrency, perKeyMax };
}
