import { monotonicMs } from "../../host/timers.ts";
import type { Warning } from "../../sql/database.ts";
import type { Call } from "./call.ts";

/** The number of lock reruns within the time limit that is a pattern instead of an accident. */
const rerunsBeforeWarning = 3;
const withinMs = 10_000;
/**
 * The most warnings, because names may be generated per call and more warnings would not be read.
 */
const warningsMax = 100;

/**
 * Warns once, for each operation of a user and those that ran beside it, when locks make it rerun
 * repeatedly. The operation still works, but slowly, and only its author can order the locks.
 */
export class LockContention {
  readonly #warn: (warning: Warning) => void;
  readonly #running = new Set<Call>();
  readonly #reruns = new Map<string, { sinceMs: number; count: number }>();
  readonly #warned = new Set<string>();

  constructor(warn: (warning: Warning) => void) {
    this.#warn = warn;
  }

  began(call: Call): void {
    this.#running.add(call);
  }

  ended(call: Call): void {
    this.#running.delete(call);
  }

  /** Records that a lock or a deadlock caused a rerun of the call. */
  rerun(call: Call): void {
    const { name } = call.body;
    const nowMs = monotonicMs();
    const seen = this.#reruns.get(name);
    const isRecent = seen !== undefined && nowMs - seen.sinceMs <= withinMs;
    const { sinceMs, count } = isRecent ? seen : { sinceMs: nowMs, count: 0 };
    if (this.#reruns.size >= warningsMax) this.#reruns.clear();
    this.#reruns.set(name, { sinceMs, count: count + 1 });
    if (count + 1 < rerunsBeforeWarning) return;
    const others = new Set<string>();
    for (const { body } of this.#running) others.add(body.name);
    others.delete(name);
    for (const other of others.size === 0 ? [name] : others) this.#warnOf([name, other]);
  }

  #warnOf(names: readonly [string, string]): void {
    const pair = names.toSorted().join("\n");
    if (this.#warned.has(pair) || this.#warned.size >= warningsMax) return;
    this.#warned.add(pair);
    const [name, other] = names;
    const beside = other === name ? "calls of the same name" : `"${other}"`;
    this.#warn({
      code: "LOCK_CONTENTION",
      message:
        `"${name}" is rerun repeatedly because other transactions hold locks on its rows; as far as this process knows, ${beside} ran beside it. ` +
        "It works, but slowly. Let all of them lock their rows first and in the same order, for example by ascending id: SELECT … WHERE id = … ${lockRow}. " +
        "If they already do, the rows are contended, or the server is slow.",
    });
  }
}
