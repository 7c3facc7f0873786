import type { PlaceDebt } from "../../model/execution/place-debt.ts";
import { Shares, type FoundRun } from "./shares.ts";

/** Places that a worker took for new work, and the functions that may use them. */
export interface Claim {
  readonly count: number;
  readonly functions: ReadonlySet<string>;
}

const none: ReadonlySet<string> = new Set();

interface Waiting {
  readonly runs: (() => void)[];
  /** The index of the next run. Removing each run from the front would move all the others. */
  next: number;
}

/**
 * The places of a worker: the number of runs that use its process at once. A waiting run holds
 * none, or parents would starve the children they wait for. A woken run asks again. `Shares`
 * decides between resumed runs and new work.
 *
 * New work waits in the database. The worker takes all free places for a look there, or else
 * the places that were kept for new work. No place is kept while the worker does not look, such
 * as in a pause after an error.
 */
export class Slots {
  readonly #size: number;
  readonly #names: readonly string[];
  readonly #now: () => number;
  readonly #shares: Shares;
  readonly #asking = new Map<string, Waiting>();
  /** Places in use, kept, or claimed for a look. */
  #taken = 0;
  #kept = 0;
  readonly #keptFor = new Set<string>();
  #isAssigning = false;
  /** True if the worker looks for new work as soon as it has places for it. */
  #isLooking = false;
  /** True if the worker waits for places: due work comes before work that is started here. */
  #isAwaited = false;
  #onFree: (() => void) | undefined;
  /** True if one run of the process runs alone: no other run gets a place. */
  #isKeptOut = false;
  /** Called when a place was freed. */
  onFreed: () => void = () => undefined;
  /** Called when a place of any worker of the process was freed. */
  tellFreed: () => void = () => undefined;

  constructor(size: number, names: Iterable<string>, now: () => number) {
    this.#size = size;
    this.#names = [...names];
    this.#now = now;
    this.#shares = new Shares(this.#names);
  }

  /** Places for a run that is started here: none while older work may be due. */
  get free(): number {
    return this.#isAwaited || this.isAsked || this.#isKeptOut ? 0 : this.#size - this.#taken;
  }

  /** True if resumed runs wait for places. */
  get isAsked(): boolean {
    return this.#asking.size > 0;
  }

  /** True if nothing runs, except for a number of places claimed for a look. */
  isEmptyBut(claimed: number): boolean {
    return this.#taken - this.#kept === claimed;
  }

  /** Gives no further places until work is let in. */
  keepOut(): void {
    this.#isKeptOut = true;
  }

  letIn(): void {
    this.#isKeptOut = false;
    this.#assign();
  }

  loadOf(name: string): number {
    return this.#shares.loadOf(name);
  }

  debtOf(name: string): PlaceDebt {
    return this.#shares.debtOf(name);
  }

  /** Takes a place for a run that is started here. The caller has seen a free place. */
  take(name: string): void {
    this.#taken += 1;
    this.#shares.begin(name);
  }

  /** Calls back once a resumed run of a function has a place, at once if there is one. */
  again(name: string, run: () => void): void {
    const waiting = this.#asking.get(name);
    if (waiting === undefined) this.#asking.set(name, { runs: [run], next: 0 });
    else waiting.runs.push(run);
    this.#assign();
  }

  give(name: string): void {
    this.#taken -= 1;
    this.#shares.end(name);
    this.#assign();
    this.onFreed();
  }

  /** Resolves when there are places for new work. */
  freed(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.resolve();
    this.#isLooking = true;
    this.#isAwaited = true;
    if (this.#claimable > 0) return Promise.resolve();
    return new Promise((resolve) => {
      const end = (): void => {
        signal.removeEventListener("abort", end);
        resolve();
      };
      this.#onFree = end;
      signal.addEventListener("abort", end, { once: true });
    });
  }

  /**
   * Takes the places for a look for new work. A place whose look finds a run is used; the
   * others are freed when the look ends.
   */
  claim(max: number): Claim | undefined {
    const count = Math.min(this.#claimable, max);
    this.#isAwaited = false;
    if (count === 0) return undefined;
    const functions = new Set(this.isAsked ? this.#keptFor : this.#names);
    const kept = Math.min(this.#kept, count);
    this.#kept -= kept;
    this.#taken += count - kept;
    if (this.#kept === 0) this.#keptFor.clear();
    this.#shares.looking();
    return { count, functions };
  }

  /** Gives one place of a look to a run that it found. */
  begin(name: string): void {
    this.#shares.begin(name);
  }

  /**
   * Ends a look, with the runs it found; undefined if it failed. Functions that are kept waiting
   * by a limit may have due work, even if the look found none.
   */
  looked(
    claim: Claim,
    found: readonly FoundRun[] | undefined,
    keptWaiting: ReadonlySet<string> = none,
  ): void {
    if (found === undefined) this.#shares.notLooked(this.#now());
    else this.#shares.looked(claim.functions, found, this.#now(), keptWaiting);
    this.#taken -= claim.count - (found?.length ?? 0);
    this.#assign();
    this.onFreed();
  }

  /** Notes that new work is due. */
  told(): void {
    this.#shares.told();
  }

  /** Stops looking for new work until the worker waits for places again. */
  rest(): void {
    this.#isAwaited = false;
    this.#isLooking = false;
    this.#taken -= this.#kept;
    this.#kept = 0;
    this.#keptFor.clear();
    this.#assign();
  }

  get #claimable(): number {
    if (this.#isKeptOut) return 0;
    return this.#kept + (this.isAsked ? 0 : this.#size - this.#taken);
  }

  /**
   * Assigns free places to waiting runs. A run that no longer needs its place frees it at once:
   * thousands of nested calls would overflow the stack.
   */
  #assign(): void {
    if (this.#isAssigning || this.#isKeptOut) return;
    this.#isAssigning = true;
    try {
      while (this.isAsked && this.#taken < this.#size) this.#assignOne();
    } finally {
      this.#isAssigning = false;
    }
    if (!this.#isAwaited || this.#claimable === 0) return;
    const wake = this.#onFree;
    this.#onFree = undefined;
    wake?.();
  }

  #assignOne(): void {
    const isLooking = this.#isLooking;
    const next = isLooking ? this.#shares.next(this.#asking.keys(), this.#now()) : undefined;
    this.#taken += 1;
    if (next?.kind === "new") {
      this.#kept += 1;
      for (const name of next.names) this.#keptFor.add(name);
      return;
    }
    const name = next?.name ?? this.#shares.resumed(this.#asking.keys()) ?? "";
    if (isLooking) this.#shares.owe(name);
    this.#shares.begin(name);
    this.#shift(name)?.();
  }

  #shift(name: string): (() => void) | undefined {
    const waiting = this.#asking.get(name);
    if (waiting === undefined) return undefined;
    const run = waiting.runs[waiting.next];
    waiting.next += 1;
    if (waiting.next === waiting.runs.length) this.#asking.delete(name);
    return run;
  }
}
