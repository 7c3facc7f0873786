import { monotonicMs, realLater } from "../host/timers.ts";
import type { HoldfastError } from "../model/errors.ts";
import type { Drain } from "../runtime/drain.ts";
import type { RunningBodies } from "../runtime/running-bodies.ts";
import type { TestClock } from "./test-clock.ts";
import type { Traffic } from "./traffic.ts";

/**
 * So long, in the machine's time, something may still come from the test
 * itself, such as a request that sends a signal, when nothing else can.
 */
const patienceMs = 1_000;
/**
 * So long, in the machine's time, who moves time by hand waits for a body. One
 * that has not ended by then may wait for its timeout, or for something that
 * the test brings afterwards, and nobody can tell these from one that is slow.
 * Three seconds are more than bodies of tests should take, and leave a test
 * that moves time over one that hangs within the 5 s that test runners give it.
 */
const bodyPatienceMs = 3_000;
/** After so many instants that brought it nothing a run is looked at: it may wait for nothing that time brings. */
const instantsMax = 1_000;
/** So many instants a result may take: a run that goes on for ever would be waited for as long. */
const instantsInAllMax = 10_000;

/** What runs just now: code of runs and bodies in the process that works, which may be another one by now. */
interface Running {
  readonly drain: Pick<Drain, "isBusy">;
  readonly bodies: RunningBodies;
  readonly end: Promise<void>;
}

/** A result that a test waits for. */
interface Awaited {
  readonly id: string;
  readonly giveUp: (why: HoldfastError) => void;
  /** How far its run had come, and how many instants ago that was looked at. */
  version: number;
  instants: number;
  /** How many it has taken in all. */
  instantsInAll: number;
}

interface SkippingParts {
  readonly clock: TestClock;
  readonly traffic: Traffic;
  readonly running: () => Running;
  /** How many events a run has. */
  readonly versionOf: (id: string) => Promise<number>;
  /** Whether a run, or one below it, waits for an instant itself. */
  readonly waitsForTime: (id: string) => Promise<boolean>;
  /** Why a run cannot go on. */
  readonly whyStuck: (id: string) => Promise<HoldfastError>;
  /** That a run has not ended after so many instants. */
  readonly endless: (id: string, instants: number) => HoldfastError;
}

/**
 * Moves time for a test. While it waits for a result, and nothing runs, time
 * goes to the next instant that something waits for. When there is none, the
 * result can never come, and the test is told what the run waits for.
 */
export class TimeSkipping {
  readonly #parts: SkippingParts;
  readonly #awaited = new Set<Awaited>();
  /** Since when, in the machine's time, who moves time by hand has waited for a body. */
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

  /** The same for who moves time by hand: bodies that take too long are left running. */
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

  /** Counted for each body, and once: time that is moved over many instants must not wait for one that hangs at each of them. */
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

  /** No call of the database, and no code of a run that is still to be moved on. */
  #quiet(): Promise<void> {
    const { traffic, running } = this.#parts;
    return traffic.quiet(() => running().drain.isBusy);
  }

  /** Moves to an instant; what is due on the way happens at its own. */
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

  /** Moves time as long as a result is waited for. @throws HoldfastError `RUN_STUCK` */
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

  /** Others may go on for ever, such as one that polls: a run that they never wake, and that no instant of its own wakes, is stuck. */
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
