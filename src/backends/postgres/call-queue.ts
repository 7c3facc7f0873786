import { queueFull } from "../refusals.ts";
import { CallLine } from "./call-line.ts";
import type { Call, ManyForm } from "./call.ts";

/** Calls of one set form with distinct keys. */
export interface CallSet {
  readonly many: ManyForm;
  readonly calls: readonly [Call, ...Call[]];
}

export type Work = Call | CallSet;

export function callsOf(work: Work): CallSet["calls"] {
  return "calls" in work ? work.calls : [work];
}

/**
 * Larger sets gain nothing (19–25 µs per row from 128 to 5,000 rows), and the limit bounds memory.
 */
const setCallsMax = 256;
/**
 * A larger call runs alone; a set of 256 calls of a few megabytes each would be one statement of a
 * gigabyte.
 */
const setBytesMax = 1_048_576;

/**
 * Calls that wait for a connection. Writes to one key run one after the other, in the order of
 * submission, as on SQLite. The server would make them wait for each other's row locks anyway, but
 * in any order and with one connection each. So at most one call per key is ready at a time, which
 * a set form requires as well.
 */
export class CallQueue {
  readonly #callsMax: number;
  /** Work whose transaction had no effect; it goes first. */
  readonly #again: Work[] = [];
  /** Ready calls that run alone, and ready calls that may run together. */
  readonly #alone = new CallLine();
  readonly #together = new Map<ManyForm, CallLine>();
  /** Keys with a running call, each with the calls behind it, if any. */
  readonly #keys = new Map<string, CallLine | undefined>();
  /** Names whose calls are held back, with the calls that would be ready. */
  readonly #held = new Map<string, CallLine>();
  #submitted = 0;
  #depth = 0;

  constructor(callsMax: number) {
    this.#callsMax = callsMax;
  }

  /** The number of calls that no transaction has taken. */
  get depth(): number {
    return this.#depth;
  }

  /** Adds a call. @throws HoldfastError `QUEUE_FULL` */
  push(call: Call): void {
    if (this.#depth >= this.#callsMax) throw queueFull(this.#callsMax);
    this.#submitted += 1;
    this.#depth += 1;
    call.order = this.#submitted;
    const { key } = call;
    if (key === undefined) return this.#ready(call);
    if (this.#keys.has(key)) return this.#lineBehind(key).push(call);
    this.#keys.set(key, undefined);
    this.#ready(call);
  }

  /** Takes the next work: retried work first, else the call that waits longest. */
  take(setsAllowed: boolean): Work | undefined {
    const again = this.#again.shift();
    if (again !== undefined) return again;
    if (this.#held.size > 0) this.#keepBack();
    const alone = this.#alone.first;
    const together = setsAllowed ? this.#oldestSet() : undefined;
    if (together === undefined || (alone !== undefined && alone.order < together.order))
      return this.#taken(this.#alone);
    const { many, line, head } = together;
    const calls: [Call, ...Call[]] = [head];
    this.#taken(line);
    let bytes = head.bytes;
    while (calls.length < setCallsMax) {
      bytes += line.first?.bytes ?? 0;
      const call = bytes > setBytesMax ? undefined : this.#taken(line);
      if (call === undefined) break;
      calls.push(call);
    }
    return { many, calls };
  }

  /** The number of connections that the ready calls could use. */
  appetite(lanesFree: number): number {
    let sets = 0;
    for (const calls of this.#together.values()) sets += Math.ceil(calls.length / setCallsMax);
    return this.#again.length + this.#alone.length + Math.min(lanesFree, sets);
  }

  /** Holds back the writes of a name, except those that run in sets. */
  hold(name: string): void {
    if (!this.#held.has(name)) this.#held.set(name, new CallLine());
  }

  release(name: string): void {
    const line = this.#held.get(name);
    this.#held.delete(name);
    for (let call = line?.shift(); call !== undefined; call = line?.shift()) {
      call.isHeld = false;
      this.#alone.push(call);
    }
  }

  /** Puts back work whose transaction had no effect. Its keys stay taken. */
  again(work: Work): void {
    this.#again.push(work);
  }

  /** Removes a settled call and makes the next call of its key ready. */
  finish(call: Call): void {
    const { key } = call;
    if (key === undefined || !this.#keys.has(key)) return;
    const next = this.#keys.get(key)?.shift();
    if (next === undefined) this.#keys.delete(key);
    else this.#ready(next);
  }

  /** Removes a call whose caller gave up; false when a transaction has it. */
  withdraw(call: Call): boolean {
    if (call.taken || call.withdrawn) return false;
    this.#depth -= 1;
    if (call.isReady) {
      this.#readyLine(call).stepOut(call);
      this.finish(call);
    } else if (call.key !== undefined) {
      this.#lineBehind(call.key).stepOut(call);
    }
    return true;
  }

  /** Removes all waiting calls, in order, so that they can be refused. */
  drain(): readonly Call[] {
    const calls: Call[] = [];
    for (const name of this.#held.keys()) this.release(name);
    // Calls behind a key come first; otherwise each finished call would make the next one ready.
    for (const line of this.#keys.values())
      while (line?.first !== undefined) {
        const call = this.#taken(line);
        if (call !== undefined) calls.push(call);
      }
    for (let work = this.take(true); work !== undefined; work = this.take(true))
      for (const call of callsOf(work)) {
        calls.push(call);
        this.finish(call);
      }
    return calls.toSorted((a, b) => a.order - b.order);
  }

  #ready(call: Call): void {
    call.isReady = true;
    this.#readyLine(call).push(call);
  }

  #readyLine({ many, isHeld, body }: Call): CallLine {
    if (many === undefined) return (isHeld ? this.#held.get(body.name) : undefined) ?? this.#alone;
    let line = this.#together.get(many);
    if (line === undefined) this.#together.set(many, (line = new CallLine()));
    return line;
  }

  /** Moves held-back calls out of the way of the others. */
  #keepBack(): void {
    for (let call = this.#alone.first; call; call = this.#alone.first) {
      const line = call.access === "write" ? this.#held.get(call.body.name) : undefined;
      if (line === undefined) return;
      this.#alone.shift();
      call.isHeld = true;
      line.push(call);
    }
  }

  #lineBehind(key: string): CallLine {
    let line = this.#keys.get(key);
    if (line === undefined) this.#keys.set(key, (line = new CallLine()));
    return line;
  }

  #taken(line: CallLine): Call | undefined {
    const call = line.shift();
    if (call === undefined) return undefined;
    this.#depth -= 1;
    call.taken = true;
    return call;
  }

  #oldestSet(): OldestSet | undefined {
    let oldest: OldestSet | undefined;
    for (const [many, line] of this.#together) {
      const head = line.first;
      if (head !== undefined && !(oldest && oldest.order < head.order))
        oldest = { many, line, head, order: head.order };
    }
    return oldest;
  }
}

interface OldestSet {
  readonly many: ManyForm;
  readonly line: CallLine;
  readonly head: Call;
  readonly order: number;
}
