import { soon } from "../host/timers.ts";
import type { OwnerId } from "../model/ids/prefixed-id.ts";
import type { Change } from "../sql/operation.ts";
import type { ChangeHint } from "../sql/database.ts";

/** The listeners of one database. The caller of `tell` has made the change durable. */
export class Subscribers {
  readonly #listeners = new Set<(hint: ChangeHint) => void>();

  get isEmpty(): boolean {
    return this.#listeners.size === 0;
  }

  add(listener: (hint: ChangeHint) => void): () => void {
    // Wrapped, so that subscribing one function twice gives two subscriptions.
    const own = (hint: ChangeHint): void => listener(hint);
    this.#listeners.add(own);
    return () => void this.#listeners.delete(own);
  }

  /** Nobody is told anything any more. */
  clear(): void {
    this.#listeners.clear();
  }

  /** No changes at all mean one that has no name, as of a write by a body alone. */
  tell(changes: readonly Change[]): void {
    if (this.isEmpty) return;
    if (changes.length === 0) this.tellUnknown();
    for (const change of changes) this.#deliver({ kind: "change", ...change });
  }

  /** Something may have changed and nobody can say what. */
  tellUnknown(): void {
    this.#deliver({ kind: "unknown" });
  }

  tellDeath(owner: OwnerId): void {
    this.#deliver({ kind: "death", owner });
  }

  /** Without it, a wait for a change would last for ever. */
  tellClosing(): void {
    this.#deliver({ kind: "closing" });
  }

  #deliver(hint: ChangeHint): void {
    for (const listener of this.#listeners) {
      try {
        listener(hint);
      } catch (error) {
        // A listener's bug is its own: it must neither fail the write it
        // heard of nor be swallowed, so it surfaces as an uncaught exception.
        soon(() => {
          throw error;
        });
      }
    }
  }
}
