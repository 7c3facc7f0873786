import type { HoldfastError } from "../../model/errors.ts";
import type { ExecutionId } from "../../model/ids/execution-id.ts";
import type { ExecutorId, RunId } from "../../model/ids/prefixed-id.ts";
import type { Fence } from "../../stores/execution/checks.ts";
import type { LockedExecution } from "../../stores/execution/lock/locked.ts";
import type { FunctionDraft } from "../../stores/execution/lock/places.ts";
import type { ExecutionDraft } from "../../stores/execution/log/create.ts";
import type { Damaged } from "../../stores/damage.ts";
import { retryPolicyFor } from "../../model/time/retry-policy.ts";
import { ActivityRuns } from "./activity-runs.ts";
import type { Definition } from "../definitions.ts";
import { EarlyHints } from "./early-hints.ts";
import { HotRuns } from "./hot-runs.ts";
import { pauseBefore } from "../pauses.ts";
import { keepLocks } from "./renewals.ts";
import type { RuntimeContext } from "../runtime-context.ts";
import { removeOld } from "./retention.ts";
import { Slots } from "./slots.ts";
import { keepTime } from "./timers.ts";
import { Turns } from "./turns.ts";
import { watchRejections } from "./unhandled-rejections.ts";
import type { WorkerParts, WorkerSettings } from "./worker-parts.ts";

/** What one call locks at most. */
const lockMax = 100;

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
  #locking: Promise<void> = Promise.resolve();
  #loops: Promise<unknown> = Promise.resolve();
  #release: () => void = () => undefined;
  #closing: Promise<void> | undefined;

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
    this.#served = [...functions.values()].map(servedFunction);
  }

  /** Resolves once it listens for work. */
  async start(): Promise<void> {
    const {
      database,
      pages: { executions },
    } = this.#context;
    // A worker that only waits is somebody's reason to keep the process.
    const release = database.keepAlive();
    const stopWatching = watchRejections(this.#context.tell);
    this.#release = () => {
      release();
      stopWatching();
    };
    this.#runs.listen();
    // There may have been nobody to notice the death of others.
    await executions.releaseDead();
    this.#locking = this.#lockLoop();
    this.#loops = Promise.all([
      this.#locking,
      keepLocks(this.#parts, () => [
        ...this.#runs.running(),
        ...this.#activities.running(),
      ]),
      keepTime(this.#context, this.#stop.signal),
      removeOld(this.#context, this.functions.values(), this.#stop.signal),
    ]);
  }

  /** Creates a run and begins it here, when there is a place for it; undefined when others are to have it. */
  async startHere(draft: ExecutionDraft): Promise<ExecutionId | undefined> {
    const definition = this.functions.get(draft.function);
    if (definition === undefined || !this.#canStart(definition, draft))
      return undefined;
    const starting = this.#early.during(() =>
      this.#startHere(definition, draft),
    );
    this.#starting.add(starting);
    try {
      return await starting;
    } finally {
      this.#starting.delete(starting);
    }
  }

  async #startHere(
    definition: Definition,
    draft: ExecutionDraft,
  ): Promise<ExecutionId> {
    this.#slots.take();
    try {
      const created = await this.#context.pages.executions.createLocked(
        draft,
        this.#terms(definition),
      );
      if (created.locked === undefined) this.#slots.give();
      else this.#adopt(created.locked);
      return created.id;
    } catch (error) {
      this.#slots.give();
      throw error;
    }
  }

  /** Limits of functions are counted where work is locked, and later is for later. */
  #canStart(
    { concurrency, concurrencyPerKey }: Definition,
    { startAt = "now" }: ExecutionDraft,
  ): boolean {
    return (
      this.#closing === undefined &&
      this.#slots.free > 0 &&
      concurrency === undefined &&
      concurrencyPerKey === undefined &&
      startAt === "now"
    );
  }

  /**
   * Stops taking work, lets what runs come to a point where it can be given
   * back, and gives back the rest when the time is over.
   */
  close(timeoutMs: number): Promise<void> {
    this.#closing ??= this.#close(timeoutMs);
    return this.#closing;
  }

  async #close(timeoutMs: number): Promise<void> {
    this.#stopLocking.abort();
    const { clock } = this.#context;
    const by = clock.now() + timeoutMs;
    // What is being locked just now is given back like the rest.
    await Promise.allSettled([this.#locking, ...this.#starting]);
    await Promise.all([this.#runs.close(by), this.#activities.close(by)]);
    this.#stop.abort();
    await this.#loops;
    this.#release();
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
        const found = await this.#early.during(() => this.#lockSome());
        if (found === "nothing") await this.#somethingDue(signal);
        // They stay due, so waiting for something due would not wait.
        if (found === "damage") await pauseBefore(clock, failures, signal);
        failures = found === "damage" ? failures + 1 : 0;
      } catch (error) {
        if (signal.aborted) return;
        const { message } = error as HoldfastError;
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
    if (definition === undefined)
      throw new Error(`Nobody serves ${locked.function} here.`);
    // The answer came too late: the run is anybody's, and its timers say so.
    if (locked.leaseUntil <= this.#context.clock.now())
      return this.#slots.give();
    this.#turns.add(definition.name);
    if (locked.role === "activity") this.#activities.begin(definition, locked);
    else this.#runs.adopt(definition, locked);
  }
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
