import { soon } from "../host/timers.ts";
import type { OwnerId } from "../model/ids/prefixed-id.ts";
import { draftOf, givenInvalid, givenList } from "../model/shape.ts";
import type { Change } from "../sql/operation.ts";
import type { ChangeHint, Interest } from "../sql/database.ts";

type Listener = (hint: ChangeHint) => void;
/** The listeners of an operation by key; those under undefined listen for all keys. */
type ByKey = Map<string | undefined, Set<Listener>>;

/**
 * The listeners of one database. The caller of `tell` has made the change durable. A change is
 * looked up by operation and key, so its cost depends only on the listeners it matches. When every
 * listener was called in turn, 10,000 waiters made an append cost 288 microseconds instead of 26.
 */
export class Subscribers {
  /** All listeners. A hint that is not a change may affect any of them. */
  readonly #everybody = new Set<Listener>();
  /** Listeners for every change. */
  readonly #unfiltered = new Set<Listener>();
  readonly #interested = new Map<string, ByKey>();

  get isEmpty(): boolean {
    return this.#everybody.size === 0;
  }

  /** @throws HoldfastError `OPTION_INVALID` */
  add(listener: Listener, interests?: readonly Interest[]): () => void {
    if (typeof listener !== "function") throw givenInvalid("the listener", "a function", listener);
    const named = checkedInterests(interests);
    // Wrapped, so that subscribing the same function twice creates two subscriptions.
    const own: Listener = (hint) => listener(hint);
    this.#everybody.add(own);
    if (named === undefined) this.#unfiltered.add(own);
    else for (const interest of named) this.#listenFor(interest, own);
    return () => {
      this.#everybody.delete(own);
      this.#unfiltered.delete(own);
      for (const interest of named ?? []) this.#forget(interest, own);
    };
  }

  /** Removes all listeners. */
  clear(): void {
    this.#everybody.clear();
    this.#unfiltered.clear();
    this.#interested.clear();
  }

  /** An empty list stands for an unnamed change, such as a write with only a body. */
  tell(changes: readonly Change[]): void {
    if (this.isEmpty) return;
    if (changes.length === 0) this.tellUnknown();
    for (const { operation, key } of changes) {
      const byKey = this.#interested.get(operation);
      const ofKey = byKey?.get(key);
      const ofAll = byKey?.get(undefined);
      if (!ofKey && !ofAll && this.#unfiltered.size === 0) continue;
      const hint: ChangeHint = { kind: "change", operation, key };
      deliver(hint, this.#unfiltered);
      if (ofAll !== undefined) deliver(hint, ofAll);
      if (ofKey !== undefined) deliver(hint, ofKey);
    }
  }

  /** Reports that something may have changed, without saying what. */
  tellUnknown(): void {
    deliver({ kind: "unknown" }, this.#everybody);
  }

  tellDeath(owner: OwnerId): void {
    deliver({ kind: "death", owner }, this.#everybody);
  }

  /** Reports the closing of the database. Without it, a wait for a change would never end. */
  tellClosing(): void {
    deliver({ kind: "closing" }, this.#everybody);
  }

  #listenFor({ operation, key }: Interest, listener: Listener): void {
    const byKey: ByKey = this.#interested.get(operation) ?? new Map();
    const listeners = byKey.get(key) ?? new Set();
    this.#interested.set(operation, byKey.set(key, listeners.add(listener)));
  }

  #forget({ operation, key }: Interest, listener: Listener): void {
    const byKey = this.#interested.get(operation);
    const listeners = byKey?.get(key);
    listeners?.delete(listener);
    if (listeners?.size === 0) byKey?.delete(key);
    if (byKey?.size === 0) this.#interested.delete(operation);
  }
}

/** @throws HoldfastError `OPTION_INVALID` */
function checkedInterests(given: readonly Interest[] | undefined): readonly Interest[] | undefined {
  if (given === undefined) return undefined;
  return givenList("interests", given).map((interest) => {
    const { operation, key } = draftOf("an interest", interest, interestNames);
    if (typeof operation !== "string")
      throw givenInvalid("the operation of an interest", "a text", operation);
    if (key !== undefined && typeof key !== "string")
      throw givenInvalid("the key of an interest", "a text", key);
    return { operation, key };
  });
}

const interestNames = ["operation", "key"] as const satisfies readonly (keyof Interest)[];

function deliver(hint: ChangeHint, listeners: ReadonlySet<Listener>): void {
  for (const listener of listeners) {
    try {
      listener(hint);
    } catch (error) {
      // A listener's failure must neither fail the write that caused the hint nor be swallowed, so
      // it surfaces as an uncaught exception.
      soon(() => {
        throw error;
      });
    }
  }
}
