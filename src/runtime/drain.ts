import { LoopWatch } from "./loop-watch.ts";
import { monotonicMs, realSoon } from "../host/timers.ts";

/**
 * When the code of a run has come to rest. User code goes on only when
 * something is delivered to it, and then runs until no microtask is left; the
 * next delivery must wait for that, live and on replay alike, or two branches
 * that run side by side would make their calls in another order.
 *
 * A tick that is asked for inside a microtask runs when the microtask queue is
 * empty: 0.44 µs, where `setImmediate` takes 1.85. One microtask, ten chained
 * ones, or a tick asked for outside a microtask come too early for some
 * programs; the tests keep them as controls that must fail.
 */

// Taken at load, since fake timers of tests replace them. Jest may do so
// before: fakes have a clock, and would not run before somebody moves it.
const isFaked = "clock" in (Reflect.get(process, "nextTick") as object);
const nextTick: (go: () => void) => void = isFaked ? realSoon : process.nextTick.bind(process);
const microtask: (go: () => void) => void = isFaked
  ? (go) => void Promise.resolve().then(go)
  : queueMicrotask;

/** Something that is to be moved on once all microtasks have run. */
export interface Drained {
  /** Does one thing. Whoever has more to do asks to be drained again. */
  pump(): void;
  /** Of the function whose code it runs. */
  readonly name: string;
}

/** Calls `go` once the microtask queue is empty. */
export type AfterMicrotasks = (go: () => void) => void;

const afterMicrotasks: AfterMicrotasks = (go) => microtask(() => nextTick(go));

/** Ticks in a row starve timers and sockets, so after this time they give way. */
const stretchMs = 3;

/** One for all runs of a process: what is at rest is moved on together, so that their appends share a transaction. */
export class Drain {
  /** Told how long the code of runs took between two rests. */
  readonly loop: LoopWatch;
  readonly #after: AfterMicrotasks;
  #waiting: Drained[] = [];
  #isAsked = false;
  #stretchEnds = 0;
  /** When it was asked for: from then to the next tick only microtasks run. */
  #askedAt = 0;
  #toldMs = 0;

  constructor(after: AfterMicrotasks = afterMicrotasks, loop?: LoopWatch) {
    this.#after = after;
    this.loop = loop ?? new LoopWatch(() => undefined);
  }

  /** Whether something is still to be moved on. Who moves time in place of the machine must know: a replay gives way and goes on without a call of the database. */
  get isBusy(): boolean {
    return this.#waiting.length > 0;
  }

  /** `pump` is called at the next rest, once however often it was asked for. */
  ask(drained: Drained & { isAsked: boolean }): void {
    if (drained.isAsked) return;
    drained.isAsked = true;
    this.#waiting.push(drained);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isAsked) return;
    this.#isAsked = true;
    const now = monotonicMs();
    this.#askedAt = now;
    this.#toldMs = this.loop.toldMs;
    if (now < this.#stretchEnds || this.#stretchEnds === 0) {
      if (this.#stretchEnds === 0) {
        this.loop.rests(now);
        this.#startStretch(now);
      }
      this.#after(this.#rest);
    } else {
      // The event loop comes round, and a new stretch begins.
      this.#stretchEnds = 0;
      this.#after(() => {
        this.#measure();
        realSoon(() => this.#after(this.#go));
      });
    }
  }

  /** The code of one of those who asked may have run all the time since. */
  #measure(): void {
    this.loop.took(monotonicMs() - this.#askedAt, this.#toldMs, () => ({
      functions: this.#waiting.map(({ name }) => name),
    }));
  }

  readonly #rest = (): void => {
    this.#measure();
    this.#go();
  };

  #startStretch(now: number): void {
    this.#stretchEnds = now + stretchMs;
    realSoon(() => {
      this.#stretchEnds = 0;
    });
  }

  readonly #go = (): void => {
    this.#isAsked = false;
    const waiting = this.#waiting as (Drained & { isAsked: boolean })[];
    this.#waiting = [];
    for (const drained of waiting) {
      drained.isAsked = false;
      drained.pump();
    }
  };
}
