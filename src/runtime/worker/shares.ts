import {
  addedDebt,
  debtAfterAll,
  noDebt,
  placesPerTurn,
  type PlaceDebt,
} from "../../model/execution/place-debt.ts";
import { Turns } from "./turns.ts";

/** The pause between two looks of a busy worker for work that it does not know about. */
const lookPauseMs = 50;

/** The next user of a place: a resumed run of a function, or due work of one of several functions. */
export type NextUse =
  | { readonly kind: "resumed"; readonly name: string }
  | { readonly kind: "new"; readonly names: readonly string[] };

/** A run that a look found, and whether a worker had it before. */
export interface FoundRun {
  readonly name: string;
  readonly hasBegun: boolean;
}

/**
 * Decides which run uses the next place of a worker. Resumed runs ask for their place. Due work
 * waits in the database, where the worker must look. Due work is new, or has begun and is not
 * in memory.
 *
 *   functions   the one with the least load is next (`Turns`)
 *   within one  three places for resumed runs, then one for the longest due
 *   of due work three places for runs that have begun, then one for a new run
 *
 * Debt counts the places that others got while due work of either kind was kept waiting. Three
 * of them owe one place (`PlaceDebt`), and a look is given the debt. A look that finds nothing
 * cancels the debt, so due work saves up no places while there is none. The debt to functions
 * whose limits may keep due work waiting stays.
 */
export class Shares {
  readonly #names: readonly string[];
  readonly #turns = new Turns();
  readonly #running = new Map<string, number>();
  readonly #debts = new Map<string, PlaceDebt>();
  /** The debt that the current look was given. */
  #told: ReadonlyMap<string, PlaceDebt> = new Map();
  /** Functions with due work in the last look, so there may be more. */
  readonly #known = new Set<string>();
  /** Places kept for due work of functions known to have some, until the look that uses them ends. */
  #kept = new Map<string, number>();
  #looking: ReadonlyMap<string, number> = new Map();
  #isProbing = false;
  #quietUntil = 0;

  constructor(names: Iterable<string>) {
    this.#names = [...names];
  }

  /** Counts a place for a run of a function. */
  begin(name: string): void {
    add(this.#running, name, 1);
    this.#turns.add(name);
  }

  end(name: string): void {
    add(this.#running, name, -1);
  }

  loadOf(name: string): number {
    return this.#turns.loadOf(name, this.#running.get(name) ?? 0);
  }

  /** The debt of other functions' places to the due work of a function. */
  debtOf(name: string): PlaceDebt {
    return addedDebt(this.#told.get(name) ?? noDebt, this.#debts.get(name) ?? noDebt);
  }

  /** Counts a place that a resumed run got while due work waited. */
  owe(name: string): void {
    this.#debts.set(name, addedDebt(this.#debts.get(name) ?? noDebt, { begun: 1, new: 1 }));
  }

  /** The function whose resumed run is next. The asking functions come in the order of their longest waits. */
  resumed(asking: Iterable<string>): string | undefined {
    return least(asking, (name) => this.#loadWithKept(name));
  }

  /** The next use of a place for which resumed runs ask, when due work can be looked for. */
  next(asking: Iterable<string>, now: number): NextUse | undefined {
    const resumed = this.resumed(asking);
    if (resumed === undefined) return undefined;
    const load = this.#loadWithKept(resumed);
    const names = this.#names.filter((name) =>
      name === resumed ? this.#isOwed(name) : this.#loadWithKept(name) < load,
    );
    if (names.length > 0 && !this.#isProbing && !this.#isQuiet(now)) {
      this.#isProbing = true;
      return { kind: "new", names };
    }
    const known = names.filter((name) => this.#known.has(name));
    const due = least(known, (name) => this.#loadWithKept(name));
    if (due === undefined) return { kind: "resumed", name: resumed };
    add(this.#kept, due, 1);
    return { kind: "new", names: [due] };
  }

  /** Starts a look for due work: no other place is kept to find out whether there is any. */
  looking(): void {
    this.#isProbing = true;
    this.#looking = this.#kept;
    this.#kept = new Map();
    this.#told = new Map(this.#debts);
    this.#debts.clear();
  }

  /**
   * Ends a look for due work of some functions. A limit may keep due work of `keptWaiting` from
   * the look, so a look that finds nothing leaves the debt to it.
   */
  looked(
    names: Iterable<string>,
    found: readonly FoundRun[],
    now: number,
    keptWaiting: ReadonlySet<string> = new Set(),
  ): void {
    for (const [name, counts] of countsOf(found)) {
      this.#known.add(name);
      const told = debtAfterAll(this.#told.get(name) ?? noDebt, counts);
      this.#told = new Map([...this.#told, [name, told]]);
    }
    this.#ended();
    if (found.length > 0) return;
    this.#quietUntil = now + lookPauseMs;
    for (const name of names) {
      // No place is kept for work behind a limit: a worker would look for it after every place.
      this.#known.delete(name);
      if (!keptWaiting.has(name)) this.#debts.delete(name);
    }
  }

  /** Ends a look that failed or was not made. */
  notLooked(now: number): void {
    this.#ended();
    this.#quietUntil = now + lookPauseMs;
  }

  /** Notes that there is due work, even if the last look found none. */
  told(): void {
    this.#quietUntil = 0;
  }

  #ended(): void {
    this.#isProbing = false;
    this.#looking = new Map();
    for (const name of this.#told.keys()) this.#debts.set(name, this.debtOf(name));
    this.#told = new Map();
  }

  #isOwed(name: string): boolean {
    const { begun, new: fresh } = this.debtOf(name);
    return Math.max(begun, fresh) >= placesPerTurn * (this.#keptFor(name) + 1);
  }

  /** True during the pause after a look. A clock that was set back does not make the pause longer. */
  #isQuiet(now: number): boolean {
    const leftMs = this.#quietUntil - now;
    return leftMs > 0 && leftMs <= lookPauseMs;
  }

  #loadWithKept(name: string): number {
    return this.loadOf(name) + this.#keptFor(name);
  }

  #keptFor(name: string): number {
    return (this.#kept.get(name) ?? 0) + (this.#looking.get(name) ?? 0);
  }
}

function countsOf(found: readonly FoundRun[]): ReadonlyMap<string, PlaceDebt> {
  const counts = new Map<string, PlaceDebt>();
  for (const { name, hasBegun } of found) {
    const one = { begun: Number(hasBegun), new: Number(!hasBegun) };
    counts.set(name, addedDebt(counts.get(name) ?? noDebt, one));
  }
  return counts;
}

function add(counts: Map<string, number>, name: string, change: number): void {
  const count = (counts.get(name) ?? 0) + change;
  if (count === 0) counts.delete(name);
  else counts.set(name, count);
}

/** The first name with the smallest number. */
function least(names: Iterable<string>, numberOf: (name: string) => number): string | undefined {
  let found: string | undefined;
  let smallest = Number.POSITIVE_INFINITY;
  for (const name of names) {
    const number = numberOf(name);
    if (number >= smallest) continue;
    smallest = number;
    found = name;
  }
  return found;
}
