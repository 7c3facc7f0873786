import type { ExecutionId } from "../../../model/ids/execution-id.ts";
import type { HotRun } from "../../run/hot-run.ts";
import type { WorkerSettings } from "../worker-parts.ts";

/** The resting runs of a worker: their memory, and the choice of runs to forget. */
export class RestingRuns {
  readonly #held = new Map<ExecutionId, number>();
  /** Runs that are about to be forgotten. */
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

  /**
   * Forgets the runs that have rested longest, until the others fit. Resuming then costs one
   * replay each. A run that asks for a place stays: in the database it would be due as of now,
   * behind the runs that it preceded.
   */
  evict(
    runs: ReadonlyMap<ExecutionId, HotRun>,
    isAsking: (id: ExecutionId) => boolean,
    { hotRunsMax, hotBytesMax }: WorkerSettings,
  ): void {
    const fits = (): boolean =>
      runs.size - this.#evicted.size <= hotRunsMax && this.#bytes <= hotBytesMax;
    if (fits()) return;
    for (const [id, run] of runs) {
      if (!run.isAtRest || isAsking(id) || this.#evicted.has(id)) continue;
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
