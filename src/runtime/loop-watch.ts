import { processorMs } from "../host/timers.ts";
import type { Notice } from "./runtime-event.ts";

/** Code that may have blocked the loop; one of the candidates if there are several. */
export interface Holders {
  readonly functions: readonly string[];
  readonly id?: string;
  readonly step?: string;
}

/** The longest stretch of code without a warning: locks are renewed and timers fire between stretches. */
const heldMsMax = 200;
const namesSpokenMax = 3;
/** The pause between two reads of the processor time, which cost a microsecond each. */
const readEveryMs = 50;

/**
 * Notices user code that runs for long without giving way. A stretch is measured from its
 * start. Stretches inside it have reported their own time, which is not counted again.
 */
export class LoopWatch {
  readonly #tell: (notice: Notice) => void;
  readonly #told = new Set<string>();
  /** The total time of all measured stretches. */
  toldMs = 0;
  #readAt = 0;
  #processorMs = 0;

  constructor(tell: (notice: Notice) => void) {
    this.#tell = tell;
  }

  /** No user code runs at this instant. */
  rests(now: number): void {
    if (now - this.#readAt < readEveryMs) return;
    this.#readAt = now;
    this.#processorMs = processorMs();
  }

  /** Ends a stretch that began when `toldMs` had the given value. `step` names the step if the stretch was one. */
  took(ms: number, toldBefore: number, holders: (step?: string) => Holders, step?: string): void {
    const ownMs = ms - (this.toldMs - toldBefore);
    this.toldMs = toldBefore + ms;
    if (ownMs > heldMsMax && this.#hasComputed(ownMs)) this.#warn(ownMs, holders(step));
  }

  /**
   * True if the process computed for a quarter of the stretch, as it does on a crowded machine.
   * Otherwise it was stopped, as by a debugger or a machine that slept.
   */
  #hasComputed(ms: number): boolean {
    return processorMs() - this.#processorMs > ms / 4;
  }

  #warn(ms: number, { functions: all, id, step }: Holders): void {
    const functions = [...new Set(all)].slice(0, namesSpokenMax);
    const fresh = functions.filter((name) => !this.#told.has(keyOf(name, step)));
    if (fresh.length === 0) return;
    for (const name of fresh) this.#told.add(keyOf(name, step));
    const names = functions.map((name) => `"${name}"`).join(" or ");
    const place = step === undefined ? "" : `, step "${step}",`;
    this.#tell({
      level: "warn",
      message:
        `Code of ${names}${place} blocked the event loop for ${Math.round(ms)} ms. During that time nothing else runs in this process, ` +
        "and locks are not renewed. Do long computations in a worker thread, or in an activity that another process serves.",
      details: {
        functions,
        ...(id !== undefined && { id }),
        ...(step !== undefined && { step }),
      },
    });
  }
}

function keyOf(name: string, step: string | undefined): string {
  return step === undefined ? name : `${name} ${step}`;
}
