/** Limits the work of one check, whatever its schema and its value are. */
export class Work {
  #left: number;

  constructor(units: number) {
    this.#left = units;
  }

  /** @throws WorkExceeded */
  spend(units: number): void {
    this.#left -= units;
    if (this.#left < 0) this.exhaust();
  }

  exhaust(): never {
    throw new WorkExceeded("It takes too much work.");
  }
}

/** Thrown when a check has used up its work. */
export class WorkExceeded extends Error {}
