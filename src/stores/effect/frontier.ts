import type { EffectRef } from "./effect-row.ts";

/** So many scopes are remembered, and so many keys of each; what is forgotten costs one read more. */
const scopesMax = 500;
const keysMax = 200;

/**
 * The scopes that have gone past what is recorded of them: what they ask for
 * next is new, so it can be claimed without a look at the record first, which
 * took a fifth of an effect. Only a guess: whatever is recorded all the same,
 * by others, is what the claim then finds.
 */
export class Frontier {
  /** By scope, the keys that were claimed past its record. */
  readonly #claimed = new Map<string, Set<string>>();

  isPast(ref: EffectRef): boolean {
    const claimed = this.#claimed.get(scopeOf(ref));
    return claimed !== undefined && !claimed.has(keyOf(ref));
  }

  /** One was claimed that had not been recorded. */
  advance(ref: EffectRef): void {
    const scope = scopeOf(ref);
    const claimed = this.#claimed.get(scope) ?? new Set();
    claimed.add(keyOf(ref));
    if (claimed.size > keysMax) {
      this.#claimed.delete(scope);
      return;
    }
    this.#claimed.set(scope, claimed);
    const [oldest] = this.#claimed.keys();
    if (this.#claimed.size > scopesMax && oldest !== undefined) this.#claimed.delete(oldest);
  }

  /** One was recorded: the scope is run again, most likely. */
  retreat(ref: EffectRef): void {
    this.#claimed.delete(scopeOf(ref));
  }
}

function scopeOf({ scope: { kind, id, session } }: EffectRef): string {
  return session === undefined
    ? `${kind}\0${id}`
    : `${kind}\0${id}\0${session.id}\0${session.generation ?? ""}`;
}

function keyOf({ replayKey, attempt }: EffectRef): string {
  return attempt === 1 ? replayKey : `${replayKey}\0${attempt}`;
}
