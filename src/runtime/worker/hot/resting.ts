import type { ExecutionId } from "../../../model/ids/execution-id.ts";
import type { HotRun } from "../../run/hot-run.ts";
import type { WorkerSettings } from "../worker-parts.ts";

/** The runs of a worker that rest: what they hold, and which are to be forgotten. */
export class Resting {
  readonly #held = new Map<ExecutionId, number>();
  /** Those that are about to be forgotten. */
  readonly #evicted = new Set<ExecutionId>();
  #bytes = 0;

  add(id: ExecutionId, bytes: number): void {
    this.#release(id);
    this.#held.set(id, bytes);
    this.#bytes += bytes;
  }

  delete(id: ExecutionId): void {
    this.#release(id);
    this.#evicted.delete(id);
  }

  /** Forgets those that have rested longest, until the others fit. Going on then costs one replay each. */
  evict(runs: ReadonlyMap<ExecutionId, HotRun>, { hotRunsMax, hotBytesMax }: WorkerSettings): void {
    const fits = (): boolean =>
      runs.size - this.#evicted.size <= hotRunsMax && this.#bytes <= hotBytesMax;
    if (fits()) return;
    for (const [id, run] of runs) {
      if (!run.isAtRest || this.#evicted.has(id)) continue;
      this.#evicted.add(id);
      this.#release(id);
      run.leave("evicted");
      if (fits()) return;
    }
  }

  #release(id: ExecutionId): void {
    this.#bytes -= this.#held.get(id) ?? 0;
    this.#held.delete(id);
  }
}
