import type { LoggedResponse } from "../../../model/execution/event.ts";
import type { ExecutionId } from "../../../model/ids/execution-id.ts";
import { repeated } from "../../pauses.ts";
import type { HotRun } from "../../run/hot-run.ts";
import type { RunState } from "../../run/run-state.ts";
import type { WorkerParts } from "../worker-parts.ts";
import { responsesAfter, tellFault } from "./history.ts";
import type { PlacedRuns } from "./placed-runs.ts";

/** Facts about the runs in memory. */
interface Known {
  /** The run that the worker has under an id. */
  readonly current: (id: ExecutionId) => HotRun | undefined;
  /** Resolves when the interruption of a run is known, if it is being read. */
  readonly looked: (run: HotRun) => Promise<void> | undefined;
}

/** Reads responses that runs in memory do not know, and delivers them to each run once it has a place. */
export class Responses {
  readonly #parts: WorkerParts;
  readonly #places: PlacedRuns;
  readonly #known: Known;
  readonly #fetching = new Set<RunState>();
  /** Runs that get the responses as soon as they have a place. */
  readonly #arriving = new Set<HotRun>();

  constructor(parts: WorkerParts, places: PlacedRuns, known: Known) {
    this.#parts = parts;
    this.#places = places;
    this.#known = known;
  }

  /** Reads new responses of a run, one read at a time. */
  async fetch(id: ExecutionId): Promise<void> {
    const { context, early, signal } = this.#parts;
    const run = this.#known.current(id);
    // A lock under way may have been taken before the response.
    if (run === undefined || !this.#places.isOurs(run)) early.responses.add(id);
    if (run === undefined) return;
    const { state } = run;
    state.told.add("response");
    if (this.#fetching.has(state) || this.#isArriving(run)) return;
    this.#fetching.add(state);
    try {
      while (state.told.delete("response") && !state.isOver) {
        const found = await repeated(context.clock, signal, () =>
          responsesAfter(context, id, state.known),
        );
        // Responses of a run that is being ended by force are not for its code.
        await this.#known.looked(run);
        if (found.length > 0 && !state.isOver) this.#arrive(run, found);
        if (this.#isArriving(run)) return;
      }
    } catch (error) {
      if (signal.aborted) return;
      tellFault(context, id, "could not read its responses", error);
    } finally {
      this.#fetching.delete(state);
    }
  }

  /**
   * True while a run waits for a place with its responses. No more are read then: each response
   * would bring the earlier ones along.
   */
  #isArriving(run: HotRun): boolean {
    return this.#arriving.has(run) && !this.#places.has(run.state.id);
  }

  #arrive(run: HotRun, found: readonly LoggedResponse<unknown>[]): void {
    const { id, told } = run.state;
    this.#arriving.add(run);
    const arrived = (): void => {
      this.#arriving.delete(run);
      run.arrive(found);
      // The run knew all responses: it stays at rest and needs no place.
      if (run.isAtRest) this.#places.give(id);
      if (told.has("response")) void this.fetch(id);
    };
    this.#places.goOn(run, arrived, () => this.#arriving.delete(run));
  }
}
