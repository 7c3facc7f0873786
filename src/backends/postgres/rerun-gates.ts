import type { Call } from "./call.ts";

/** The number of conflicts after which crowding is more likely than bad luck. */
const conflictsBeforeGate = 2;

/** Keeps waiting calls of a name from being taken by a transaction. */
export interface Holding {
  hold(name: string): void;
  release(name: string): void;
}

/**
 * Lets reruns of one user operation run one at a time in this process, while the other calls of
 * that name wait. Of many serializable calls that change one row, only one commits and all others
 * are rerun. Of many calls that lock two rows in opposing orders, two suffice to stop all of them
 * for as long as a lock wait lasts. Side by side they would block each other until some have spent
 * their budget. Each waits here without a connection.
 *
 * A call that waits too long for a lock although it is alone is blocked by another process, which
 * this gate cannot hold back. That call leaves the gate, so that the others of its name do not wait
 * for a stranger.
 */
export class RerunGates {
  readonly #holding: Holding;
  /** The holder of each operation's gate, and the calls that wait for it. */
  readonly #gates = new Map<string, { holder: Call; waiting: Call[] }>();

  constructor(holding: Holding) {
    this.#holding = holding;
  }

  /** True when the call may run now. Otherwise `leave` returns it in its turn. */
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

  /**
   * Records that the call has waited too long for a lock. @returns the next call, if this one was
   * alone
   */
  lockedOut(call: Call): Call | undefined {
    if (this.#gates.get(call.body.name)?.holder !== call) return undefined;
    call.isHeldUpElsewhere = true;
    return this.leave(call);
  }

  /** Must be called for every settled call. @returns the next call */
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

  /** Removes all waiting calls, so that they can be refused. */
  drain(): readonly Call[] {
    return [...this.#gates.values()].flatMap((gate) => gate.waiting.splice(0));
  }
}

function isCrowded(call: Call): boolean {
  return !call.isHeldUpElsewhere && (call.lockReruns > 0 || call.attempts >= conflictsBeforeGate);
}
