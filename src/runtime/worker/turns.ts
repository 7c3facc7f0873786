/** The number of recent turns that are remembered. */
const turnsMax = 100;

/**
 * The functions that had the last turns of a worker. Turns and running runs make the load by
 * which functions share its places. The function with fewer running runs comes first, and among
 * equals the function with fewer recent turns. Old turns count for nothing, so no function
 * saves them up.
 */
export class Turns {
  readonly #names: string[] = [];
  readonly #counts = new Map<string, number>();
  #next = 0;

  add(name: string): void {
    const gone = this.#names[this.#next];
    if (gone !== undefined) this.#count(gone, -1);
    this.#names[this.#next] = name;
    this.#count(name, 1);
    this.#next = (this.#next + 1) % turnsMax;
  }

  /** The load of a function: one for each running run, and a fraction for recent turns. */
  loadOf(name: string, running: number): number {
    return running + (this.#counts.get(name) ?? 0) / (turnsMax + 1);
  }

  #count(name: string, change: number): void {
    const count = (this.#counts.get(name) ?? 0) + change;
    if (count === 0) this.#counts.delete(name);
    else this.#counts.set(name, count);
  }
}
