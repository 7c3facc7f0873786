import type { ExecutionEvent } from "./event.ts";

/**
 * What stays of the history before a new start when that is pruned, besides
 * the creation and the new start: the log must still tell who held the run
 * last, how it is retried, and with which version of the code it was run.
 */
export class LastLocks {
  readonly #versions = new Set<number>();
  #hasHolder = false;
  #hasRetry = false;
  #hasCodeVersion = false;

  /** Looks at an event that comes before all that it was shown already. */
  look(version: number, event: ExecutionEvent): void {
    if (event.kind === "forked") {
      // What a copy was made from was held by others.
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

  /** True when nothing that comes before can be needed: a lock that names its code also has a holder and a policy. */
  get isComplete(): boolean {
    return this.#hasCodeVersion;
  }

  get versions(): readonly number[] {
    return [...this.#versions];
  }
}
