import { processorMs } from "../host/timers.ts";
import type { Notice } from "./runtime-event.ts";

/** Whose code may have held the loop; one of them, if they are several. */
export interface Holders {
  readonly functions: readonly string[];
  readonly id?: string;
  readonly step?: string;
}

/** Longer than this a stretch of code must not take: locks are renewed and timers heard between stretches. */
const heldMsMax = 200;
const namesSpokenMax = 3;
/** How often the processor's time is read, which costs a microsecond. */
const readEveryMs = 50;

/**
 * Notices code of the user's that runs for long without giving way. What a
 * stretch took is measured where it was begun; stretches inside it have told
 * of their own time, which is not counted again.
 */
export class LoopWatch {
  readonly #tell: (notice: Notice) => void;
  readonly #told = new Set<string>();
  /** What all stretches have taken that were measured. */
  toldMs = 0;
  #readAt = 0;
  #processorMs = 0;

  constructor(tell: (notice: Notice) => void) {
    this.#tell = tell;
  }

  /** Nothing runs at this instant. */
  rests(now: number): void {
    if (now - this.#readAt < readEveryMs) return;
    this.#readAt = now;
    this.#processorMs = processorMs();
  }

  /** A stretch that began when `toldMs` was as given is over; `step` is the one that it was, if it was one. */
  took(ms: number, toldBefore: number, holders: (step?: string) => Holders, step?: string): void {
    const ownMs = ms - (this.toldMs - toldBefore);
    this.toldMs = toldBefore + ms;
    if (ownMs > heldMsMax && this.#hasComputed()) this.#warn(ownMs, holders(step));
  }

  /** On a crowded machine a process may merely have waited for a processor, which is nobody's fault. */
  #hasComputed(): boolean {
    return processorMs() - this.#processorMs > heldMsMax / 2;
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
        `Code of ${names}${place} held the event loop for ${Math.round(ms)} ms without giving way. Meanwhile nothing else runs in this process, ` +
        "and locks are not renewed: do long computations in a worker thread, or in an activity that another process serves.",
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
