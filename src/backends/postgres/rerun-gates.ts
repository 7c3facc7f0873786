import type { Call } from "./call.ts";

/** After so many conflicts bad luck has become crowding. */
const conflictsBeforeGate = 2;

/**
 * Lets re-runs of one operation go one at a time in this process. Of many
 * serializable calls that change one row only one commits and all others are
 * run again; side by side they would get in each other's way until the budget
 * of some is spent. Each waits here without a connection.
 */
export class RerunGates {
  /** By the name of an operation: who holds its gate, and who waits for it. */
  readonly #gates = new Map<string, { holder: Call; waiting: Call[] }>();

  /** False when the call has to wait: then `leave` hands it out in its turn. */
  mayGo(call: Call): boolean {
    if (call.attempts < conflictsBeforeGate) return true;
    const { name } = call.body;
    const gate = this.#gates.get(name);
    if (gate === undefined) {
      this.#gates.set(name, { holder: call, waiting: [] });
      return true;
    }
    if (gate.holder === call) return true;
    gate.waiting.push(call);
    return false;
  }

  /** To be told of every call that is settled. @returns who goes next */
  leave(call: Call): Call | undefined {
    const { name } = call.body;
    const gate = this.#gates.get(name);
    if (gate?.holder !== call) return undefined;
    const next = gate.waiting.shift();
    if (next === undefined) this.#gates.delete(name);
    else gate.holder = next;
    return next;
  }

  /** Takes out all who wait, for refusing them. */
  drain(): readonly Call[] {
    return [...this.#gates.values()].flatMap((gate) => gate.waiting.splice(0));
  }
}
