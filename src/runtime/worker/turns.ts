/** How many of the last turns are remembered. */
const turnsMax = 100;

/**
 * Which functions had the last turns of a worker. With running ones it makes
 * the load by which functions share its places: who has fewer running comes
 * first, and among equals who had fewer turns lately. Turns that are long over
 * count for nothing, so nobody saves them up.
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

  /** Whole for each that runs, and a fraction for lately. */
  loadOf(name: string, running: number): number {
    return running + (this.#counts.get(name) ?? 0) / (turnsMax + 1);
  }

  #count(name: string, change: number): void {
    const count = (this.#counts.get(name) ?? 0) + change;
    if (count === 0) this.#counts.delete(name);
    else this.#counts.set(name, count);
  }
}
