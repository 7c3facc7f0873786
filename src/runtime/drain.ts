import { LoopWatch } from "./loop-watch.ts";
import { monotonicMs, realSoon } from "../host/timers.ts";

/**
 * Tells when the code of a run has come to rest. User code continues only after a delivery, and
 * then runs until no microtask is left. The next delivery must wait for that, live and on
 * replay alike. Otherwise two branches that run side by side would make their calls in another
 * order.
 *
 * A tick that is requested inside a microtask runs when the microtask queue is empty. It costs
 * 0.44 µs, where `setImmediate` takes 1.85. One microtask, ten chained microtasks, or a tick
 * requested outside a microtask come too early for some programs. The tests keep these as
 * controls that must fail.
 */

// Taken at load, since fake timers of tests replace them. Jest may do so earlier: fakes have a
// clock, and would not run before a test advances it.
const isFaked = "clock" in (Reflect.get(process, "nextTick") as object);
const nextTick: (go: () => void) => void = isFaked ? realSoon : process.nextTick.bind(process);
const microtask: (go: () => void) => void = isFaked
  ? (go) => void Promise.resolve().then(go)
  : queueMicrotask;

/** A run that is to be advanced once all microtasks have run. */
export interface Drained {
  /** Makes one step. A run with more to do asks to be drained again. */
  pump(): void;
  /** The name of the function whose code it runs. */
  readonly name: string;
}

/** Calls `go` once the microtask queue is empty. */
export type AfterMicrotasks = (go: () => void) => void;

const afterMicrotasks: AfterMicrotasks = (go) => microtask(() => nextTick(go));

/** Ticks in a row starve timers and sockets, so after this time they give way. */
const stretchMs = 3;

/** One drain serves all runs of a process. Runs at rest advance together, so that their appends share a transaction. */
export class Drain {
  /** Measures the time that code of runs takes between two rests. */
  readonly loop: LoopWatch;
  readonly #after: AfterMicrotasks;
  #waiting: Drained[] = [];
  #isAsked = false;
  #stretchEnds = 0;
  /** The time of the request: only microtasks run between it and the next tick. */
  #askedAt = 0;
  #toldMs = 0;

  constructor(after: AfterMicrotasks = afterMicrotasks, loop?: LoopWatch) {
    this.#after = after;
    this.loop = loop ?? new LoopWatch(() => undefined);
  }

  /**
   * True while a run is still to be advanced. A test clock must know this: a replay gives way
   * and continues without a call of the database.
   */
  get isBusy(): boolean {
    return this.#waiting.length > 0;
  }

  /** Calls `pump` at the next rest, once for any number of requests. */
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
      // The event loop turns, and a new stretch starts.
      this.#stretchEnds = 0;
      this.#after(() => {
        this.#measure();
        realSoon(() => this.#after(this.#go));
      });
    }
  }

  /** Measures the time since the request, in which code of one of the runs may have run throughout. */
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
