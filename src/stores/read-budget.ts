import type { Tx } from "../sql/operation.ts";

/** Text that one page reads. */
export const pageCharactersMax: number = 1024 * 1024;

/** What a row costs besides its text: a hundred thousand short ones are too much as well. */
const rowCost = 100;
/** The first rows of a page tell how large they are, and so how many more may be read at once. */
const firstRowsMax = 20;

/** How much text one call may still read from the database. */
export class ReadBudget {
  #left: number;

  constructor(characters: number) {
    this.#left = characters;
  }

  get left(): number {
    return this.#left;
  }

  get isSpent(): boolean {
    return this.#left <= 0;
  }

  spend(characters: number): void {
    this.#left -= characters;
  }
}

interface Read<R> {
  readonly rows: readonly R[];
  /** True when there are no others. */
  readonly isAll: boolean;
}

/**
 * Reads rows in slices, each after the last row of the one before, until it
 * has as many as are wanted or the budget is spent. The last slice may spend
 * more than there was, by as much as its rows are larger than those before.
 */
export function* readWithin<R>(
  budget: ReadBudget,
  wanted: number,
  slice: (after: R | undefined, count: number) => Tx<readonly R[]>,
  sizeOf: (row: R) => number,
): Tx<Read<R>> {
  const read: R[] = [];
  let spent = 0;
  while (read.length < wanted && !budget.isSpent) {
    const fitting =
      read.length === 0
        ? firstRowsMax
        : Math.max(1, Math.floor((budget.left * read.length) / spent));
    const count = Math.min(wanted - read.length, fitting);
    const found = yield* slice(read.at(-1), count);
    for (const one of found) {
      const cost = rowCost + sizeOf(one);
      spent += cost;
      budget.spend(cost);
      read.push(one);
    }
    if (found.length < count) return { rows: read, isAll: true };
  }
  return { rows: read, isAll: false };
}
