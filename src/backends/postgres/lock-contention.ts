import { monotonicMs } from "../../host/timers.ts";
import type { Warning } from "../../sql/database.ts";
import type { Call } from "./call.ts";

/** So many re-runs for locks in so short a time are a pattern, and no accident. */
const rerunsBeforeWarning = 3;
const withinMs = 10_000;
/** Names may be made up for each call; nobody reads more than so many warnings. */
const warningsMax = 100;

/**
 * Says once, for each operation of a user and those that ran beside it, that
 * locks make it run again and again: it goes on working, but slowly, and only
 * its author can order the locks.
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

  /** A lock, or a deadlock, was why the call is run again. */
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
        `"${name}" keeps being run again because rows that it wants are locked by others; beside it ran ${beside}, as far as this process knows. ` +
        "It works, but slowly. Let all of them lock their rows first and in one order, by ascending id for example: SELECT … WHERE id = … ${lockRow}. " +
        "If they do, the rows are popular, or the server is slow.",
    });
  }
}
