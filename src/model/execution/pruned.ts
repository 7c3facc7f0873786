import type { ExecutionEvent } from "./event.ts";

/**
 * Selects the lock events to keep when the history before a new start is pruned, besides the
 * creation and the new start. The log must still show the last holder of the run, its retry policy
 * and the version of its code.
 */
export class LastLocks {
  readonly #versions = new Set<number>();
  #hasHolder = false;
  #hasRetry = false;
  #hasCodeVersion = false;

  /** Reads an event that comes before all events it has read. */
  look(version: number, event: ExecutionEvent): void {
    if (event.kind === "forked") {
      // The events before were copied from an execution with other holders.
      if (!this.#hasHolder) this.#versions.add(version);
      this.#hasHolder = true;
    }
    if (event.kind !== "locked") return;
    const isNamed = event.codeVersion !== null;
    const isLast = !this.#hasRetry || (isNamed && !this.#hasCodeVersion);
    if (isLast) this.#versions.add(version);
    this.#hasHolder = true;
    this.#hasRetry = true;
    this.#hasCodeVersion ||= isNamed;
  }

  /**
   * True when no earlier event can be needed: a lock that names its code also has a holder and a
   * policy.
   */
  get isComplete(): boolean {
    return this.#hasCodeVersion;
  }

  get versions(): readonly number[] {
    return [...this.#versions];
  }
}
