import type { ExecutionId } from "../../../model/ids/execution-id.ts";
import type { HotRun } from "../../run/hot-run.ts";
import type { RunState } from "../../run/run-state.ts";
import { lockOfResting, renewLocks } from "../renewals.ts";
import type { WorkerParts } from "../worker-parts.ts";

/** Which workflows of a worker hold one of its places: those that go on. */
export class Places {
  readonly #parts: WorkerParts;
  /** Whether it is the one that the worker has under its id. */
  readonly #isCurrent: (run: HotRun) => boolean;
  /** With the functions of those that hold one. */
  readonly #placed = new Map<ExecutionId, string>();

  constructor(parts: WorkerParts, isCurrent: (run: HotRun) => boolean) {
    this.#parts = parts;
    this.#isCurrent = isCurrent;
  }

  /** The functions of those that hold one. */
  functions(): Iterable<string> {
    return this.#placed.values();
  }

  has(id: ExecutionId): boolean {
    return this.#placed.has(id);
  }

  /** A run was locked, and the lock came with a place of its own. */
  take(id: ExecutionId, name: string): void {
    this.give(id);
    this.#placed.set(id, name);
  }

  give(id: ExecutionId): void {
    if (this.#placed.delete(id)) this.#parts.slots.give();
  }

  /** Until when a run that rests is kept for its worker. Functions with limits wait without a lease: going on takes a lock, which counts. */
  hotUntil({ definition }: RunState, isClosing: boolean): number {
    const { context, settings } = this.#parts;
    const now = context.clock.now();
    const { concurrency, concurrencyPerKey } = definition;
    const isLimited = concurrency !== undefined || concurrencyPerKey !== undefined;
    return isLimited || isClosing ? now : now + settings.leaseMs;
  }

  /** False past its lease, and while it is being given back: then it is due in the log, and is locked by whoever comes first. */
  isOurs(run: HotRun): boolean {
    const { isOver, leaving, leaseUntil } = run.state;
    const { clock } = this.#parts.context;
    const isKept = !isOver && leaving === undefined;
    return isKept && this.#isCurrent(run) && leaseUntil > clock.now();
  }

  /**
   * Lets a run that rests go on once it has a place, if it is still this
   * worker's. Its lease has not been renewed while it rested, and might end
   * before the others' are: nothing is begun under what is left of it.
   */
  goOn(run: HotRun, go: () => void, otherwise: () => void = nothing): void {
    const { slots, context, settings } = this.#parts;
    const { id, definition } = run.state;
    if (this.#placed.has(id)) return go();
    if (!this.isOurs(run)) return otherwise();
    slots.again(() => {
      const isOurs = this.isOurs(run);
      if (!isOurs || this.#placed.has(id)) slots.give();
      else this.#placed.set(id, definition.name);
      if (!isOurs) return otherwise();
      const leftMs = run.state.leaseUntil - context.clock.now();
      if (leftMs > settings.leaseMs / 2) return go();
      void renewLocks(this.#parts, [lockOfResting(run.state)]).then(() => {
        // Another turn may have given its place back meanwhile.
        if (this.isOurs(run)) return this.goOn(run, go, otherwise);
        if (this.#isCurrent(run)) this.give(id);
        otherwise();
      });
    });
  }
}

const nothing = (): void => undefined;
