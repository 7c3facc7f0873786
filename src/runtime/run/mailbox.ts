import type { LoggedResponse } from "../../model/execution/event.ts";

/** A call that waits for a signal. */
export interface Receiver {
  readonly call: number;
  readonly signal: string;
  /** Its time is over at this instant; null waits for ever. */
  readonly expiresAt: number | null;
}

type Sent = Extract<LoggedResponse<unknown>["response"], { kind: "signal" }>;

/** A signal that was delivered and that no call has taken. */
interface Kept {
  readonly seq: number;
  readonly value: unknown;
}

/** Signals of a run: those that wait to be asked for, and the calls that wait for one. */
export class Mailbox {
  readonly #kept = new Map<string, Kept[]>();
  readonly #receivers = new Map<string, Receiver[]>();
  /** Those whose time is over, which is about to be recorded. */
  readonly #expired = new Set<Receiver>();

  /** The oldest signal of a name, if one is there. */
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

  /** The call that gets a signal which has come: the one that has waited longest. Kept when there is none. */
  deliver(seq: number, { signal, value }: Sent): Receiver | undefined {
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
   * Those whose time is over, each told of once, in the order of their calls.
   * They wait on until that is delivered: of many only some fit into an
   * append, and a signal that comes before the next one finds them on replay.
   */
  expire(now: number): readonly Receiver[] {
    const over = this.receivers.filter(
      (receiver) =>
        receiver.expiresAt !== null && receiver.expiresAt <= now && !this.#expired.has(receiver),
    );
    for (const receiver of over) this.#expired.add(receiver);
    return over;
  }

  forget(receiver: Receiver): void {
    this.#expired.delete(receiver);
    const waiting = this.#receivers.get(receiver.signal) ?? [];
    const left = waiting.filter((other) => other !== receiver);
    if (left.length === 0) this.#receivers.delete(receiver.signal);
    else this.#receivers.set(receiver.signal, left);
  }

  /** The call waits no longer. */
  forgetCall(call: number): void {
    const receiver = this.receivers.find((other) => other.call === call);
    if (receiver !== undefined) this.forget(receiver);
  }

  /** No call waits any longer. */
  dropReceivers(): void {
    this.#receivers.clear();
    this.#expired.clear();
  }

  /** In the order of their calls. */
  get receivers(): readonly Receiver[] {
    return [...this.#receivers.values()].flat().toSorted((a, b) => a.call - b.call);
  }

  /** When the first of them has waited long enough that has not been told of. */
  get nextExpiry(): number | undefined {
    // Asked at each rest, where an iterator over nothing shows.
    if (this.#receivers.size === 0) return undefined;
    let next: number | undefined;
    for (const waiting of this.#receivers.values())
      for (const receiver of waiting) {
        const { expiresAt } = receiver;
        if (expiresAt === null || this.#expired.has(receiver)) continue;
        if (next === undefined || expiresAt < next) next = expiresAt;
      }
    return next;
  }

  /** The numbers of what nobody has taken, for the pass that comes next. */
  get unread(): readonly number[] {
    return [...this.#kept.values()]
      .flat()
      .map(({ seq }) => seq)
      .toSorted((a, b) => a - b);
  }
}
