import { HoldfastError, isFinal } from "../../model/errors.ts";
import type { ExecutionId } from "../../model/ids/execution-id.ts";
import type { ExecutorId, RunId } from "../../model/ids/prefixed-id.ts";
import type { Fence } from "../../stores/execution/checks.ts";
import type { HeldLockOf } from "../../stores/execution/lock/held.ts";
import type { LockedExecution } from "../../stores/execution/lock/locked.ts";
import type { FunctionDraft } from "../../stores/execution/lock/places.ts";
import type { ExecutionDraft } from "../../stores/execution/log/create.ts";
import type { Damaged } from "../../stores/damage.ts";
import { retryPolicyFor } from "../../model/time/retry-policy.ts";
import { ActivityRuns } from "./activity-runs.ts";
import type { Definition } from "../definition/definitions.ts";
import { EarlyHints } from "./early-hints.ts";
import { HotRuns } from "./hot/hot-runs.ts";
import { watchMove } from "./move-watch.ts";
import { isDoneBy, pauseBefore } from "../pauses.ts";
import { keepLocks } from "./renewals.ts";
import type { RuntimeContext } from "../runtime-context.ts";
import { removeOld } from "./retention.ts";
import { Slots } from "./slots.ts";
import { keepTime, tellParked } from "./timers.ts";
import { Turns } from "./turns.ts";
import { UntoldLocks } from "./untold-locks.ts";
import { watchRejections } from "./unhandled-rejections.ts";
import type { WorkerParts, WorkerSettings } from "./worker-parts.ts";

/** What one call locks at most. */
const lockMax = 100;

/** How long the last calls may take to be answered once the time to close is over. */
const answerMs = 5_000;

/** How many rows are told of that cannot be read. */
const damagedMax = 1_000;

/**
 * Runs workflows and activities of some functions: locks what is due, as much
 * as there are places for, keeps the locks, and lets time pass for all.
 */
export class Worker {
  readonly functions: ReadonlyMap<string, Definition>;
  readonly #context: RuntimeContext;
  readonly #settings: WorkerSettings;
  readonly #holder: Fence;
  readonly #slots: Slots;
  readonly #early = new EarlyHints();
  readonly #turns = new Turns();
  readonly #parts: WorkerParts;
  readonly #runs: HotRuns;
  readonly #activities: ActivityRuns;
  readonly #stopLocking = new AbortController();
  readonly #stop = new AbortController();
  readonly #served: readonly FunctionDraft[];
  /** Starts that may bring a run with them. */
  readonly #starting = new Set<Promise<unknown>>();
  /** Rows that were told of. */
  readonly #damaged = new Set<string>();
  /** Gives back locks of which nobody here was told. */
  readonly #untold: UntoldLocks;
  #locking: Promise<void> = Promise.resolve();
  /** The last round of it. */
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
    this.#slots = new Slots(settings.concurrency);
    this.#parts = {
      context,
      settings,
      holder: this.#holder,
      slots: this.#slots,
      early: this.#early,
      signal: this.#stop.signal,
    };
    this.#runs = new HotRuns(this.#parts);
    this.#activities = new ActivityRuns(this.#parts);
    this.#untold = new UntoldLocks(
      this.#parts,
      (held) => this.#holds(held),
      () => [this.#round, ...this.#starting],
    );
    this.#served = [...functions.values()].map(servedFunction);
  }

  /** Resolves once it listens for work. */
  async start(): Promise<void> {
    const {
      database,
      pages: { executions },
    } = this.#context;
    // A worker that only waits is somebody's reason to keep the process.
    this.#letEnd = database.keepAlive();
    const stopWatching = watchRejections(this.#context.tell);
    const onFinal = (error: HoldfastError): void => this.#leave(error);
    const stopMoveWatch = watchMove(this.#context, onFinal);
    this.#stopWatching = () => {
      stopWatching();
      stopMoveWatch();
    };
    this.#runs.listen();
    // There may have been nobody to notice the death of others.
    tellParked(this.#context.tell, (await executions.releaseDead()).parked);
    if (this.#closing !== undefined) throw holdfastClosed();
    this.#locking = this.#lockLoop();
    this.#loops = Promise.all([
      this.#locking,
      keepLocks(this.#parts, () => [...this.#runs.running(), ...this.#activities.running()]),
      keepTime(this.#context, this.#stop.signal, onFinal),
      removeOld(this.#context, this.functions.values(), this.#stop.signal),
    ]);
  }

  /** Creates a run and begins it here, when there is a place for it; undefined when others are to have it. */
  startHere(draft: ExecutionDraft): Promise<ExecutionId> | undefined {
    const definition = this.functions.get(draft.function);
    if (definition === undefined || !this.#canStart(definition, draft)) return undefined;
    const starting = this.#early.during(() => this.#startHere(definition, draft));
    this.#starting.add(starting);
    return starting.finally(() => this.#starting.delete(starting));
  }

  async #startHere(definition: Definition, draft: ExecutionDraft): Promise<ExecutionId> {
    this.#slots.take();
    try {
      const created = await this.#context.pages.executions.createLocked(
        draft,
        this.#terms(definition),
      );
      const { id, locked, existed } = created;
      if (locked !== undefined && !existed) this.#adopt(locked);
      else this.#slots.give();
      // One that was there before goes on where it is, here too: it was started twice. If it is not here, the answer to its lock was lost.
      if (locked !== undefined && existed && !this.#isHere(id)) this.#untold.look();
      return id;
    } catch (error) {
      this.#slots.give();
      this.#untold.mayBe(error);
      throw error;
    }
  }

  #holds(held: HeldLockOf): boolean {
    return this.#runs.holds(held) || this.#activities.holds(held);
  }

  /** Under whatever lock. */
  #isHere(id: ExecutionId): boolean {
    return this.#holds({ id, lockVersion: null });
  }

  /** Limits of functions are counted where work is locked, and later is for later. */
  #canStart(
    { concurrency, concurrencyPerKey }: Definition,
    { startAt = "now" }: ExecutionDraft,
  ): boolean {
    return (
      this.#closing === undefined &&
      !this.#untold.isLooking &&
      this.#slots.free > 0 &&
      concurrency === undefined &&
      concurrencyPerKey === undefined &&
      startAt === "now"
    );
  }

  /**
   * Stops taking work, lets what runs come to a point where it can be given
   * back, and gives back the rest when the time is over.
   * @returns whether the database answered.
   */
  close(timeoutMs: number): Promise<boolean> {
    this.#closing ??= this.#close(timeoutMs);
    return this.#closing;
  }

  /** The database was moved away or must be opened anew: what runs here is continued there, and nothing of it can be given back. */
  #leave({ message, code }: HoldfastError): void {
    if (this.#closing !== undefined) return;
    this.#context.tell({
      level: "error",
      message: `This worker stops. ${message}`,
      details: { code },
    });
    void this.close(0);
  }

  async #close(timeoutMs: number): Promise<boolean> {
    this.#stopLocking.abort();
    const { clock, tell } = this.#context;
    const by = clock.now() + timeoutMs;
    const given = this.#giveBack(by);
    // A call that the database never answers must not keep who closes.
    const isAnswered = await isDoneBy(clock, by + answerMs, given);
    if (!isAnswered)
      tell({
        level: "error",
        message: `The database has not answered for ${answerMs / 1_000} s after the time to close was over, so what was running is not given back: others take it over when its leases end.`,
        details: {},
      });
    this.#stop.abort();
    await isDoneBy(clock, by + answerMs, this.#loops);
    this.#letEnd();
    this.#stopWatching();
    return isAnswered;
  }

  async #giveBack(by: number): Promise<void> {
    // What is being locked just now is given back like the rest.
    await Promise.allSettled([this.#locking, ...this.#starting]);
    await this.#untold.looked;
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
        await this.#untold.looked;
        const round = this.#early.during(() => this.#lockSome());
        this.#round = round;
        const found = await round;
        if (found === "nothing") await this.#somethingDue(signal);
        // They stay due, so waiting for something due would not wait.
        if (found === "damage") await pauseBefore(clock, failures, signal);
        failures = found === "damage" ? failures + 1 : 0;
      } catch (error) {
        if (signal.aborted) return;
        const { message, code } = error as HoldfastError;
        // It is not opened again under this worker, which is no reason any more to keep the process.
        if (code === "DATABASE_CLOSED") return this.#letEnd();
        if (isFinal(error)) return this.#leave(error);
        this.#untold.mayBe(error);
        tell({
          level: "warn",
          message: `Could not look for work; trying again: ${message}`,
          details: {},
        });
        await pauseBefore(clock, failures, signal);
        failures += 1;
      }
  }

  async #lockSome(): Promise<"work" | "damage" | "nothing"> {
    const { executions } = this.#context.pages;
    const { leaseMs, codeVersion } = this.#settings;
    const wanted = Math.min(this.#slots.free, lockMax);
    // The place that was free has been taken since.
    if (wanted === 0) return "work";
    for (let taken = 0; taken < wanted; taken += 1) this.#slots.take();
    let used = 0;
    try {
      const { locked, damaged } = await executions.lockPending({
        functions: this.#withLoads(),
        limit: wanted,
        holder: this.#holder,
        lease: leaseMs,
        signal: this.#stopLocking.signal,
        ...(codeVersion !== undefined && { codeVersion }),
      });
      for (const row of damaged) this.#tellDamaged(row);
      for (const one of locked) {
        used += 1;
        this.#adopt(one);
      }
      if (locked.length > 0) return "work";
      return damaged.length > 0 ? "damage" : "nothing";
    } finally {
      for (let left = used; left < wanted; left += 1) this.#slots.give();
    }
  }

  /** Once for each row, or it would be told of as often as somebody looks for work. */
  #tellDamaged(row: Damaged): void {
    if (this.#damaged.has(row.key) || this.#damaged.size >= damagedMax) return;
    this.#damaged.add(row.key);
    this.#context.tell({
      level: "error",
      message: `Run ${row.key} cannot be read and is left alone. Look at it with maintenance.check.`,
      details: { ...row },
    });
  }

  /** Functions share the places: one with thousands of runs leaves some to the others. */
  #withLoads(): readonly FunctionDraft[] {
    const running = new Map<string, number>();
    for (const names of [this.#runs.placed(), this.#activities.placed()])
      for (const name of names) running.set(name, (running.get(name) ?? 0) + 1);
    return this.#served.map((served) => ({
      ...served,
      load: this.#turns.loadOf(served.name, running.get(served.name) ?? 0),
    }));
  }

  async #somethingDue(signal: AbortSignal): Promise<void> {
    const { executions } = this.#context.pages;
    const { codeVersion } = this.#settings;
    await executions.waitForPending(this.#served, {
      signal,
      ...(codeVersion !== undefined && { codeVersion }),
    });
  }

  #adopt(locked: LockedExecution): void {
    const definition = this.functions.get(locked.function);
    if (definition === undefined) throw new Error(`Nobody serves ${locked.function} here.`);
    // The answer came too late: the run is anybody's, and its timers say so, or this worker has closed.
    const { clock } = this.#context;
    if (locked.leaseUntil <= clock.now() || this.#stop.signal.aborted) return this.#slots.give();
    this.#turns.add(definition.name);
    if (locked.role === "activity") this.#activities.begin(definition, locked);
    else this.#runs.adopt(definition, locked);
  }
}

/** What is asked of it comes too late. */
export function holdfastClosed(): HoldfastError {
  return new HoldfastError(
    "DATABASE_CLOSED",
    "This Holdfast has been closed, so it takes up no work any more. Open it again to go on.",
  );
}

function policyOf({ kind, retry }: Definition) {
  return kind === "workflow" ? retryPolicyFor("workflow") : retry;
}

function servedFunction(definition: Definition): FunctionDraft {
  const { name, concurrency, concurrencyPerKey } = definition;
  return {
    name,
    retry: policyOf(definition),
    ...(concurrency !== undefined && { concurrencyMax: concurrency }),
    ...(concurrencyPerKey !== undefined && { perKeyMax: concurrencyPerKey }),
  };
}
