import type { ExecutionId } from "../../../model/ids/execution-id.ts";
import type { HotRun } from "../../run/hot-run.ts";
import type { RunState } from "../../run/run-state.ts";
import { lockOfResting, renewLocks } from "../renewals.ts";
import type { WorkerParts } from "../worker-parts.ts";

/** The active workflows of a worker, each of which holds one of its places. */
export class PlacedRuns {
  readonly #parts: WorkerParts;
  /** True for the run that the worker has under its id. */
  readonly #isCurrent: (run: HotRun) => boolean;
  /** Runs that hold a place, with their functions. */
  readonly #placed = new Map<ExecutionId, string>();

  /** Runs that ask for a place. */
  readonly #asking = new Set<ExecutionId>();

  constructor(parts: WorkerParts, isCurrent: (run: HotRun) => boolean) {
    this.#parts = parts;
    this.#isCurrent = isCurrent;
  }

  has(id: ExecutionId): boolean {
    return this.#placed.has(id);
  }

  isAsking(id: ExecutionId): boolean {
    return this.#asking.has(id);
  }

  /** Records the place that came with the lock of a run. */
  take(id: ExecutionId, name: string): void {
    this.give(id);
    this.#placed.set(id, name);
  }

  give(id: ExecutionId): void {
    const name = this.#placed.get(id);
    if (name === undefined) return;
    this.#placed.delete(id);
    this.#parts.slots.give(name);
  }

  /**
   * The instant until which a resting run is kept for its worker. Functions with limits wait
   * without a lease: resuming takes a lock, which counts.
   */
  hotUntil({ definition }: RunState, isClosing: boolean): number {
    const { context, settings } = this.#parts;
    const now = context.clock.now();
    const { concurrency, concurrencyPerKey } = definition;
    const isLimited = concurrency !== undefined || concurrencyPerKey !== undefined;
    return isLimited || isClosing ? now : now + settings.leaseMs;
  }

  /**
   * False after the lease, and while the run is being released: it is then due in the log, and
   * the next worker to ask locks it.
   */
  isOurs(run: HotRun): boolean {
    const { isOver, leaving, leaseUntil } = run.state;
    const { clock } = this.#parts.context;
    const isKept = !isOver && leaving === undefined;
    return isKept && this.#isCurrent(run) && leaseUntil > clock.now();
  }

  /**
   * Resumes a resting run once it has a place, if it still belongs to this worker. Its lease
   * was not renewed while it rested, and might expire before the next renewal. So a short
   * remainder is renewed before anything starts.
   */
  goOn(run: HotRun, go: () => void, otherwise: () => void = nothing): void {
    const { slots, context, settings } = this.#parts;
    const { id, definition } = run.state;
    if (this.#placed.has(id)) return go();
    if (!this.isOurs(run)) return otherwise();
    const { name } = definition;
    this.#asking.add(id);
    slots.again(name, () => {
      this.#asking.delete(id);
      const isOurs = this.isOurs(run);
      if (!isOurs || this.#placed.has(id)) slots.give(name);
      else this.#placed.set(id, name);
      if (!isOurs) return otherwise();
      const leftMs = run.state.leaseUntil - context.clock.now();
      if (leftMs > settings.leaseMs / 2) return go();
      void renewLocks(this.#parts, [lockOfResting(run.state)]).then(() => {
        // Another turn may have freed the place in between.
        if (this.isOurs(run)) return this.goOn(run, go, otherwise);
        if (this.#isCurrent(run)) this.give(id);
        otherwise();
      });
    });
  }
}

const nothing = (): void => undefined;
