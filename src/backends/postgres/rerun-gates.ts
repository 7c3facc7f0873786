import type { Call } from "./call.ts";

/** After so many conflicts bad luck has become crowding. */
const conflictsBeforeGate = 2;

/** Keeps calls of a name, which no transaction has taken, from being taken. */
export interface Holding {
  hold(name: string): void;
  release(name: string): void;
}

/**
 * Lets re-runs of one operation of a user go one at a time in this process,
 * while the other calls of that name wait. Of many serializable calls that
 * change one row only one commits and all others are run again; of many that
 * lock two rows in opposing orders two suffice to stop all for as long as a
 * lock is waited for. Side by side they would get in each other's way until
 * the budget of some is spent. Each waits here without a connection.
 *
 * A call that waits too long for a lock although it is alone is held up by
 * somebody else, whom this cannot keep away: it goes on outside, so that the
 * others of its name do not wait for a stranger.
 */
export class RerunGates {
  readonly #holding: Holding;
  /** By the name of an operation: who holds its gate, and who waits for it. */
  readonly #gates = new Map<string, { holder: Call; waiting: Call[] }>();

  constructor(holding: Holding) {
    this.#holding = holding;
  }

  /** False when the call has to wait: then `leave` hands it out in its turn. */
  mayGo(call: Call): boolean {
    if (!isCrowded(call)) return true;
    const { name } = call.body;
    const gate = this.#gates.get(name);
    if (gate === undefined) {
      this.#gates.set(name, { holder: call, waiting: [] });
      this.#holding.hold(name);
      return true;
    }
    if (gate.holder === call) return true;
    gate.waiting.push(call);
    return false;
  }

  /** The call has waited too long for a lock. @returns who goes next, if it was alone */
  lockedOut(call: Call): Call | undefined {
    if (this.#gates.get(call.body.name)?.holder !== call) return undefined;
    call.isHeldUpElsewhere = true;
    return this.leave(call);
  }

  /** To be told of every call that is settled. @returns who goes next */
  leave(call: Call): Call | undefined {
    const { name } = call.body;
    const gate = this.#gates.get(name);
    if (gate?.holder !== call) return undefined;
    const next = gate.waiting.shift();
    if (next !== undefined) gate.holder = next;
    else {
      this.#gates.delete(name);
      this.#holding.release(name);
    }
    return next;
  }

  /** Takes out all who wait, for refusing them. */
  drain(): readonly Call[] {
    return [...this.#gates.values()].flatMap((gate) => gate.waiting.splice(0));
  }
}

function isCrowded(call: Call): boolean {
  return !call.isHeldUpElsewhere && (call.lockReruns > 0 || call.attempts >= conflictsBeforeGate);
}
