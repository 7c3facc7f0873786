import type { EffectRef } from "./effect-row.ts";

/**
 * The largest number of remembered scopes, and of keys per scope. A forgotten entry costs one more
 * read.
 */
const scopesMax = 500;
const keysMax = 200;

/**
 * Scopes that have run past their recorded effects. The next effect of such a scope is new, so it
 * can be claimed without reading the record first. That read took a fifth of the time of an effect.
 * This is only a guess: the claim still finds an effect that another worker recorded.
 */
export class Frontier {
  /** Keys that were claimed past the record, by scope. */
  readonly #claimed = new Map<string, Set<string>>();

  isPast(ref: EffectRef): boolean {
    const claimed = this.#claimed.get(scopeOf(ref));
    return claimed !== undefined && !claimed.has(keyOf(ref));
  }

  /** Notes the claim of an effect that was not recorded. */
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

  /** Notes a recorded effect: the scope is most likely being run again. */
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
