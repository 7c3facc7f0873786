import { aloneDeathsMax, isSuspect } from "../../model/execution/decisions.ts";
import type { ExecutionId } from "../../model/ids/execution-id.ts";
import type { LockedExecution } from "../../stores/execution/lock/locked.ts";
import type { SuspectsWanted } from "../../stores/execution/lock/suspects.ts";
import { isDoneBy, repeated } from "../pauses.ts";
import type { Notice } from "../runtime-event.ts";
import type { ProcessPlaces } from "./process-places.ts";
import type { Slots } from "./slots.ts";
import type { WorkerParts } from "./worker-parts.ts";

/** The longest time for which a suspect keeps other work out. */
const aloneMs = 30_000;

type Alone = Pick<LockedExecution, "id" | "key">;

/**
 * Runs the suspects of a worker: runs that were executing when three processes died.
 *
 *   worker idle ─ reserve the process ─ lock one suspect alone ─ it records something, waits or ends ─ let others in
 *                                                              └ 30 s, or close ─ renew without the mark ─┘
 *
 * While a suspect runs alone, no other run of the process gets a place. A worker that is never
 * idle runs overdue suspects beside its other work, one at a time.
 */
export class AloneRuns {
  readonly #parts: Omit<WorkerParts, "alone">;
  readonly #places: ProcessPlaces;
  /** True if this worker runs the suspect. */
  readonly #isHere: (id: ExecutionId) => boolean;
  readonly #leave: () => void;
  /** True if the last look left suspects, or if there was no look yet. */
  #mayBeDue = true;
  /** True if the process ran something when the last look began, so that the look could lock no suspect alone. */
  #wasBusy = false;
  #run: Alone | undefined;
  #ending: Promise<void> | undefined;
  #cancelTimer: () => void = () => undefined;
  /** The suspect that runs beside other work. */
  #beside: ExecutionId | undefined;
  /** The suspects that end a wait for work. */
  #waited: SuspectsWanted = "none";
  /** Ends that wait once a suspect may be locked. */
  #lookAgain: () => void = () => undefined;

  constructor(
    parts: Omit<WorkerParts, "alone">,
    places: ProcessPlaces,
    isHere: (id: ExecutionId) => boolean,
  ) {
    this.#parts = parts;
    this.#places = places;
    this.#isHere = isHere;
    this.#leave = places.join(parts.slots, () => this.#freed());
  }

  /** Keeps other work out during a look, if there may be suspects and nothing runs. */
  reserve(slots: Slots, claimed: number): boolean {
    const isReserved = this.#mayBeDue && this.#places.reserve(slots, claimed);
    this.#wasBusy = !isReserved;
    return isReserved;
  }

  /** The suspects that a look beside other work may lock. */
  wanted(): SuspectsWanted {
    if (this.#beside !== undefined && this.#isHere(this.#beside)) return "none";
    this.#beside = undefined;
    return "overdue";
  }

  /** Ends a look for work. The result of a failed look is undefined. */
  looked(
    isReserved: boolean,
    found:
      { readonly locked: readonly LockedExecution[]; readonly hasSuspects: boolean } | undefined,
  ): void {
    const [first] = found?.locked ?? [];
    const isAlone = first?.isAlone === true && this.#isHere(first.id);
    // Due suspects that an idle worker could not lock were locked by others. After a failed
    // look the next look keeps nothing out, since it may wait for its database.
    this.#mayBeDue = found?.hasSuspects === true && (isAlone || !isReserved);
    if (isReserved && isAlone) return this.#begin(first);
    if (isReserved) this.#places.letIn();
    this.#beside ??= found?.locked.find(isSuspect)?.id;
  }

  /** Waits for work, at most until a suspect may be locked. */
  async during(
    signal: AbortSignal,
    wait: (suspects: SuspectsWanted, signal: AbortSignal) => Promise<void>,
  ): Promise<void> {
    // The wait ends with the first suspect. The worker then knows of suspects, and looks when a
    // place is free.
    if (!this.#mayBeDue) {
      await wait("alone", signal);
      this.#mayBeDue = true;
      return;
    }
    // The last run ended during the look.
    if (this.#wasBusy && this.#places.isIdle) return;
    const again = new AbortController();
    const stop = (): void => again.abort();
    signal.addEventListener("abort", stop, { once: true });
    this.#lookAgain = stop;
    try {
      this.#waited = this.wanted();
      await wait(this.#waited, again.signal);
    } catch (error) {
      if (!again.signal.aborted || signal.aborted) throw error;
    } finally {
      this.#lookAgain = () => undefined;
      signal.removeEventListener("abort", stop);
    }
  }

  /** Lets other work in: the run has recorded something and makes progress. */
  recorded(id: ExecutionId): void {
    if (this.#run?.id === id) this.#over();
  }

  /** Removes the mark from the lock of a run that is alone, and lets other work in. */
  async end(): Promise<void> {
    if (this.#run === undefined) return;
    this.#ending ??= this.#renewBeside(this.#run);
    await this.#ending;
  }

  /** Leaves the process once the worker has closed. */
  leave(): void {
    this.#over();
    this.#leave();
  }

  #begin(locked: LockedExecution): void {
    const { id, key } = locked;
    this.#run = { id, key };
    const { background, tell } = this.#parts.context;
    tell(noticeOf(locked));
    this.#cancelTimer = background.wakeAt(background.now() + aloneMs, () => void this.end());
  }

  async #renewBeside(run: Alone): Promise<void> {
    const { context, settings, holder, signal } = this.#parts;
    const { background, clock, pages } = context;
    const renewed = repeated(clock, signal, () =>
      pages.executions.renew([run], { holder, lease: settings.leaseMs, beside: true }),
    );
    try {
      // A lock that was not renewed by then has expired, and keeps out no worker of another database.
      await isDoneBy(background, background.now() + settings.leaseMs, renewed);
    } catch {
      // Nothing can be written any more, and no other run is locked at that time.
    }
    if (this.#run === run) this.#over();
  }

  #freed(): void {
    if (this.#run !== undefined && this.#parts.slots.isEmptyBut(0)) this.#over();
    if (this.#places.isIdle || this.#waited !== this.wanted()) this.#lookAgain();
  }

  #over(): void {
    if (this.#run === undefined) return;
    this.#cancelTimer();
    this.#run = undefined;
    this.#ending = undefined;
    this.#places.letIn();
  }
}

/** Explains that this process starts nothing else. Most suspects are innocent, so only a death while alone is a warning. */
function noticeOf({ id, function: name, deaths, aloneDeaths }: LockedExecution): Notice {
  const alone =
    aloneDeaths === 0
      ? ""
      : ` ${aloneDeaths} of them ran nothing else; after ${aloneDeathsMax} such deaths the run is parked.`;
  return {
    level: aloneDeaths === 0 ? "info" : "warn",
    message: `Run ${id} of ${name} runs by itself in this process for up to ${aloneMs / 1_000} s, because ${deaths} processes died while they held it.${alone}`,
    details: { id, function: name, deaths, aloneDeaths },
  };
}
