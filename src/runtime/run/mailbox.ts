import { isOwnSignal } from "../../model/ids/own-signal.ts";
import type { LoggedResponse } from "../../model/execution/event.ts";

/** A call that waits for a signal. */
export interface Receiver {
  readonly call: number;
  readonly signal: string;
  /** The instant at which the wait times out; null waits forever. */
  readonly expiresAt: number | null;
}

const none: readonly string[] = [];

type Sent = Extract<LoggedResponse<unknown>["response"], { kind: "signal" }>;

/** A delivered signal that no call has taken. */
interface Kept {
  readonly seq: number;
  readonly value: unknown;
}

/** The signals of a run: signals that no call has taken, and calls that wait for one. */
export class Mailbox {
  readonly #kept = new Map<string, Kept[]>();
  readonly #receivers = new Map<string, Receiver[]>();
  /** Receivers that timed out, which is about to be recorded. */
  readonly #expired = new Set<Receiver>();
  /** The signal that comes before any timeout. */
  #first: number | undefined;

  /** Takes the oldest signal of a name, if there is one. */
  take(signal: string): { readonly value: unknown } | undefined {
    const kept = this.#kept.get(signal);
    const first = kept?.shift();
    if (kept?.length === 0) this.#kept.delete(signal);
    return first;
  }

  wait(receiver: Receiver): void {
    const waiting = this.#receivers.get(receiver.signal);
    if (waiting === undefined) this.#receivers.set(receiver.signal, [receiver]);
    else waiting.push(receiver);
  }

  /** Returns the call that gets a new signal: the call that has waited longest. The signal is kept if there is none. */
  deliver(seq: number, { signal, value }: Sent): Receiver | undefined {
    if (this.#first !== undefined && seq >= this.#first) this.#release();
    const receiver = this.#receivers.get(signal)?.[0];
    if (receiver !== undefined) {
      this.forget(receiver);
      return receiver;
    }
    const kept = this.#kept.get(signal);
    if (kept === undefined) this.#kept.set(signal, [{ seq, value }]);
    else kept.push({ seq, value });
    return undefined;
  }

  /**
   * Returns calls that timed out, each once, in the order of the calls. They wait on until the
   * timeout is delivered: only some of many fit into one append, and a signal that arrives
   * before the next append finds them on replay.
   */
  expire(now: number): readonly Receiver[] {
    if (this.#first !== undefined) return [];
    const over = this.receivers.filter(
      (receiver) =>
        receiver.expiresAt !== null && receiver.expiresAt <= now && !this.#expired.has(receiver),
    );
    for (const receiver of over) this.#expired.add(receiver);
    return over;
  }

  /** Lets no call time out until a signal is delivered. Calls that were about to do so wait on. */
  hold(seq: number): void {
    this.#first = seq;
  }

  #release(): void {
    this.#first = undefined;
    this.#expired.clear();
  }

  forget(receiver: Receiver): void {
    this.#expired.delete(receiver);
    const waiting = this.#receivers.get(receiver.signal) ?? [];
    const left = waiting.filter((other) => other !== receiver);
    if (left.length === 0) this.#receivers.delete(receiver.signal);
    else this.#receivers.set(receiver.signal, left);
  }

  /** Removes a call that no longer waits. */
  forgetCall(call: number): void {
    const receiver = this.receivers.find((other) => other.call === call);
    if (receiver !== undefined) this.forget(receiver);
  }

  /** Removes all waiting calls. */
  dropReceivers(): void {
    this.#receivers.clear();
    this.#release();
  }

  /** All waiting calls, in their order. */
  get receivers(): readonly Receiver[] {
    return [...this.#receivers.values()].flat().toSorted((a, b) => a.call - b.call);
  }

  /** The first timeout of a call that `expire` has not returned yet. */
  get nextExpiry(): number | undefined {
    // Read at each rest, where an iterator over nothing is measurable.
    if (this.#receivers.size === 0 || this.#first !== undefined) return undefined;
    let next: number | undefined;
    for (const waiting of this.#receivers.values())
      for (const receiver of waiting) {
        const { expiresAt } = receiver;
        if (expiresAt === null || this.#expired.has(receiver)) continue;
        if (next === undefined || expiresAt < next) next = expiresAt;
      }
    return next;
  }

  /** The names of signals that no call has taken, once for each; not those of our own signals. */
  get unreadNames(): readonly string[] {
    // Read at every end, and nearly always empty.
    if (this.#kept.size === 0) return none;
    return [...this.#kept]
      .filter(([signal]) => !isOwnSignal(signal))
      .flatMap(([signal, kept]) => kept.map(() => signal));
  }

  /** The numbers of signals that no call has taken, for the next pass. */
  get unread(): readonly number[] {
    return [...this.#kept.values()]
      .flat()
      .map(({ seq }) => seq)
      .toSorted((a, b) => a - b);
  }
}
