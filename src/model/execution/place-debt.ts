/**
 * Two kinds of due runs share the places of a function: those that a worker
 * has had before, and new ones. Each place that others get is owed to a kind;
 * three of them make it the turn of that kind.
 *
 *   new ones are owed three          the longest due new run is next
 *   both are, since runs that resume
 *   in memory had the places         the longest due of both is next
 *   otherwise                        the longest due begun run is next
 *
 * So of every four places three go to begun runs and one to a new run. When
 * there is no run whose turn it is, the other kind gets the place, and nothing
 * is owed to what is missing.
 */

/** The number of places that others got since a run of this kind had its turn. */
export interface PlaceDebt {
  readonly begun: number;
  readonly new: number;
}

export type DueKind = keyof PlaceDebt;

export const noDebt: PlaceDebt = { begun: 0, new: 0 };

/** Places of others that make it the turn of a kind. */
export const placesPerTurn = 3;

/** The kind whose longest due run is next; `either` is the longest due of both. */
export function nextKind(debt: PlaceDebt): DueKind | "either" {
  if (debt.new < placesPerTurn) return "begun";
  return debt.begun < placesPerTurn ? "new" : "either";
}

/** The debt once a run of a kind has the next place. */
export function debtAfter(debt: PlaceDebt, kind: DueKind): PlaceDebt {
  const next = nextKind(debt);
  if (next === "either") return { begun: paid(debt.begun), new: paid(debt.new) };
  const other = kind === "new" ? "begun" : "new";
  // Nothing is due of the kind whose turn it was.
  const rest = next === kind ? debt[other] + 1 : 0;
  return kind === "new"
    ? { begun: rest, new: paid(debt.new) }
    : { begun: paid(debt.begun), new: rest };
}

/** The debt once the given numbers of runs of both kinds have places. */
export function debtAfterAll(before: PlaceDebt, counts: PlaceDebt): PlaceDebt {
  let debt = before;
  let { begun, new: fresh } = counts;
  while (begun + fresh > 0) {
    const isNew = begun === 0 || (fresh > 0 && nextKind(debt) === "new");
    debt = debtAfter(debt, isNew ? "new" : "begun");
    if (isNew) fresh -= 1;
    else begun -= 1;
  }
  return debt;
}

export function addedDebt(a: PlaceDebt, b: PlaceDebt): PlaceDebt {
  return { begun: a.begun + b.begun, new: a.new + b.new };
}

function paid(owed: number): number {
  return Math.max(0, owed - placesPerTurn);
}
