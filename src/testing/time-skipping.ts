import { monotonicMs, realLater } from "../host/timers.ts";
import type { HoldfastError } from "../model/errors.ts";
import type { Drain } from "../runtime/drain.ts";
import type { RunningBodies } from "../runtime/running-bodies.ts";
import type { TestClock } from "./test-clock.ts";
import type { Traffic } from "./traffic.ts";

/**
 * The real time for which the test itself may still cause something when nothing else can, such as
 * a request that sends a signal.
 */
const patienceMs = 1_000;
/**
 * The real time for which moving time by hand waits for a body. A body that runs longer may wait
 * for its timeout, or for a later action of the test, and cannot be distinguished from a slow one.
 * Three seconds are more than bodies of tests should take. A test that moves time over a hanging
 * body still ends within the 5 s that test runners allow.
 */
const bodyPatienceMs = 3_000;
/**
 * After this many instants that brought a run nothing, it is checked: it may wait for nothing that
 * time brings.
 */
const instantsMax = 1_000;
/** The most instants a result may take. A run that never ends would be awaited forever. */
const instantsInAllMax = 10_000;

/**
 * The code that runs now: runs and bodies of the current worker process, which a crash replaces.
 */
interface Running {
  readonly drain: Pick<Drain, "isBusy">;
  readonly bodies: RunningBodies;
  readonly end: Promise<void>;
}

/** A result, or the next live output, that a test awaits. */
interface Awaited {
  readonly id: string;
  readonly giveUp: (why: HoldfastError) => void;
  /** The run's version at the last check, and the number of instants since. */
  version: number;
  instants: number;
  /** The number of instants in all. */
  instantsInAll: number;
}

interface SkippingParts {
  readonly clock: TestClock;
  readonly traffic: Traffic;
  readonly running: () => Running;
  /** The number of events of a run. */
  readonly versionOf: (id: string) => Promise<number>;
  /** True when a run or a descendant waits for an instant itself. */
  readonly waitsForTime: (id: string) => Promise<boolean>;
  /** The error for a run that cannot continue. */
  readonly whyStuck: (id: string) => Promise<HoldfastError>;
  /** The error for a run that has not ended after this many instants. */
  readonly endless: (id: string, instants: number) => HoldfastError;
}

/**
 * Moves time for a test. While a test awaits a result or live output and nothing runs, time jumps to
 * the next instant that something waits for. When there is none, the result can never come, and the
 * test gets an error that says what the run waits for.
 */
export class TimeSkipping {
  readonly #parts: SkippingParts;
  readonly #awaited = new Set<Awaited>();
  /** The real time since when moving by hand has waited for a body. */
  readonly #waitedSince = new WeakMap<object, number>();
  #isOn = false;

  constructor(parts: SkippingParts) {
    this.#parts = parts;
  }

  /** Resolves once nothing runs. */
  async idle(): Promise<void> {
    for (;;) {
      await this.#quiet();
      const { bodies, end } = this.#parts.running();
      if (bodies.size === 0) return;
      await Promise.race([bodies.ended(), end]);
    }
  }

  /** Resolves once nothing runs except bodies that exceed their patience, which stay running. */
  async #idleInPatience(): Promise<void> {
    for (;;) {
      await this.#quiet();
      const { bodies, end } = this.#parts.running();
      const leftMs = this.#patienceLeftMs(bodies);
      if (leftMs <= 0) return;
      await new Promise<void>((resolve) => {
        const cancel = realLater(leftMs, resolve);
        void Promise.race([bodies.ended(), end]).then(() => {
          cancel();
          resolve();
        });
      });
    }
  }

  /**
   * The patience is counted once per body. Otherwise time moved over many instants would wait for a
   * hanging body at each of them.
   */
  #patienceLeftMs({ all }: RunningBodies): number {
    const now = monotonicMs();
    let leftMs = 0;
    for (const body of all) {
      const since = this.#waitedSince.get(body) ?? now;
      this.#waitedSince.set(body, since);
      leftMs = Math.max(leftMs, since + bodyPatienceMs - now);
    }
    return leftMs;
  }

  /** Resolves when no call of the database is open and no run has code left to execute. */
  #quiet(): Promise<void> {
    const { traffic, running } = this.#parts;
    return traffic.quiet(() => running().drain.isBusy);
  }

  /** Moves to an instant. Work that is due on the way happens at its own instant. */
  async moveTo(instant: number): Promise<void> {
    const { clock } = this.#parts;
    for (;;) {
      await this.#idleInPatience();
      const { nextOfAll: next } = clock;
      if (next === undefined || next > instant) break;
      clock.moveTo(next);
    }
    clock.moveTo(instant);
    await this.#idleInPatience();
  }

  /** Moves time while a result is awaited. @throws HoldfastError `RUN_STUCK` */
  async during<T>(id: string, act: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const over = new AbortController();
    let giveUp: Awaited["giveUp"] = () => undefined;
    const stuck = new Promise<never>((_, reject) => {
      giveUp = reject;
    });
    const awaited: Awaited = {
      id,
      giveUp,
      version: -1,
      instants: 0,
      instantsInAll: 0,
    };
    this.#awaited.add(awaited);
    void this.#skip();
    try {
      return await Promise.race([act(over.signal), stuck]);
    } finally {
      this.#awaited.delete(awaited);
      over.abort();
    }
  }

  /** Moves time while each next value of what a run shows is awaited. @throws HoldfastError `RUN_STUCK` */
  async *each<T>(
    id: string,
    open: (signal: AbortSignal) => AsyncIterable<T>,
  ): AsyncGenerator<T, void, undefined> {
    const over = new AbortController();
    const values = open(over.signal)[Symbol.asyncIterator]();
    try {
      for (;;) {
        const next = await this.during(id, () => values.next());
        if (next.done === true) return;
        yield next.value;
      }
    } finally {
      over.abort();
      await values.return?.();
    }
  }

  async #skip(): Promise<void> {
    if (this.#isOn) return;
    this.#isOn = true;
    try {
      while (this.#awaited.size > 0) await this.#skipOnce();
    } catch (error) {
      for (const { giveUp } of this.#awaited) giveUp(error as HoldfastError);
    } finally {
      this.#isOn = false;
    }
  }

  async #skipOnce(): Promise<void> {
    const { clock, traffic, whyStuck } = this.#parts;
    await this.idle();
    const { next } = clock;
    if (next !== undefined) {
      await this.#countInstant();
      if (this.#awaited.size > 0) clock.moveTo(next);
    } else if (this.#awaited.size > 0 && !(await traffic.comesWithin(patienceMs)))
      for (const { id, giveUp } of this.#awaited) giveUp(await whyStuck(id));
  }

  /**
   * Counts an instant for each awaited run. Other runs may continue forever, such as one that
   * polls. So a run is stuck when they never wake it and no instant of its own does.
   */
  async #countInstant(): Promise<void> {
    const { versionOf, waitsForTime, whyStuck, endless } = this.#parts;
    for (const each of this.#awaited) {
      each.instants += 1;
      each.instantsInAll += 1;
      if (each.instantsInAll > instantsInAllMax) each.giveUp(endless(each.id, instantsInAllMax));
      if (each.instants < instantsMax) continue;
      const version = await versionOf(each.id);
      if (version === each.version && !(await waitsForTime(each.id)))
        each.giveUp(await whyStuck(each.id));
      each.version = version;
      each.instants = 0;
    }
  }
}
