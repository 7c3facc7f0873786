import {
  debtAfter,
  nextKind,
  type DueKind,
  type PlaceDebt,
} from "../../../model/execution/place-debt.ts";
import type { Tx } from "../../../sql/operation.ts";
import { longestDueFirst, type Candidate } from "./candidate.ts";

/** Due runs of one kind of a function, longest due first, read on demand. */
export class DueFront {
  #rows: readonly Candidate[];
  #next = 0;
  readonly #readOn: (() => Tx<readonly Candidate[]>) | undefined;

  constructor(rows: readonly Candidate[], readOn?: () => Tx<readonly Candidate[]>) {
    this.#rows = rows;
    this.#readOn = readOn;
  }

  /** The longest due run that was not passed yet. */
  *peek(): Tx<Candidate | undefined> {
    if (this.#readOn !== undefined && this.#next > 0 && this.#next === this.#rows.length) {
      this.#rows = yield* this.#readOn();
      this.#next = 0;
    }
    return this.#rows[this.#next];
  }

  pass(): void {
    this.#next += 1;
  }
}

export type DueFronts = Readonly<Record<DueKind, DueFront>>;

export type Choice = "taken" | "passed" | "enough";

/** Offers the runs of a function in the order in which they share its places, until there are enough. */
export function* shareOut(
  fronts: DueFronts,
  debt: PlaceDebt,
  offer: (candidate: Candidate) => Choice,
): Tx<void> {
  let owed = debt;
  for (;;) {
    const begun = yield* fronts.begun.peek();
    const fresh = yield* fronts.new.peek();
    const candidate = chosenOf(begun, fresh, owed);
    if (candidate === undefined) return;
    const kind = candidate === fresh ? "new" : "begun";
    const choice = offer(candidate);
    if (choice === "enough") return;
    if (choice === "taken") owed = debtAfter(owed, kind);
    fronts[kind].pass();
  }
}

function chosenOf(
  begun: Candidate | undefined,
  fresh: Candidate | undefined,
  debt: PlaceDebt,
): Candidate | undefined {
  if (begun === undefined || fresh === undefined) return begun ?? fresh;
  const next = nextKind(debt);
  if (next === "either") return longestDueFirst(begun, fresh) < 0 ? begun : fresh;
  return next === "new" ? fresh : begun;
}
