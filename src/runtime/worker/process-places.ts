import type { Slots } from "./slots.ts";

/**
 * The places of all workers of a process, over all databases. A death ends everything that the
 * process runs, so a suspect that is to run alone must be the only run of the process.
 */
export class ProcessPlaces {
  readonly #slots = new Set<Slots>();
  #isReserved = false;

  /** Adds a worker, which is told when a place of any worker is freed. Returns a function that removes it. */
  join(slots: Slots, onFreed: () => void): () => void {
    this.#slots.add(slots);
    if (this.#isReserved) slots.keepOut();
    slots.onFreed = () => {
      for (const each of this.#slots) each.tellFreed();
    };
    slots.tellFreed = onFreed;
    return () => void this.#slots.delete(slots);
  }

  /** Keeps out all work except that of one look, if nothing runs. */
  reserve(slots: Slots, claimed: number): boolean {
    if (this.#isReserved) return false;
    for (const each of this.#slots)
      if (each.isAsked || !each.isEmptyBut(each === slots ? claimed : 0)) return false;
    this.#isReserved = true;
    for (const each of this.#slots) each.keepOut();
    return true;
  }

  /** True if nothing runs or waits for a place. */
  get isIdle(): boolean {
    return [...this.#slots].every((slots) => !slots.isAsked && slots.isEmptyBut(0));
  }

  letIn(): void {
    this.#isReserved = false;
    for (const each of this.#slots) each.letIn();
  }
}

export const processPlaces: ProcessPlaces = new ProcessPlaces();
