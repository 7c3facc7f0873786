import { monotonicMs, realLater, realSoon } from "../../host/timers.ts";
import { processWaitingMax } from "../../model/execution/stream.ts";
import type { StreamContext } from "../../stores/stream/context.ts";
import type { Clock } from "../../model/time/clock.ts";
import type { Notice } from "../runtime-event.ts";
import { RunOutput, type OutputRun } from "./run-output.ts";

/** The time between two writes of live output. */
const paceMs = 50;

export interface StreamWriterParts {
  readonly store: StreamContext;
  readonly clock: Clock;
  readonly tell: (notice: Notice) => void;
}

/**
 * Writes the live output of all runs of a process: one write at a time, one every 50 ms, for
 * everything that waits. The first chunk of a step and the last chunks before its record do not wait
 * for the next. The pace protects the database, so it counts real time, also while a test moves its
 * clock.
 */
export class StreamWriter {
  readonly parts: StreamWriterParts;
  /** The size of all that waits, is being written, or was given to `settled`. */
  size = 0;
  readonly #waiting = new Set<RunOutput>();
  #cancelTimer: (() => void) | undefined;
  #lastMs = Number.NEGATIVE_INFINITY;
  #isAsked = false;
  #writing: Promise<void> | undefined;
  #hasFailed = false;

  constructor(parts: StreamWriterParts) {
    this.parts = parts;
  }

  /** Makes the output of a run that a worker holds. */
  of(run: OutputRun): RunOutput {
    return new RunOutput(this, run);
  }

  hasRoomFor(size: number): boolean {
    return this.size + size <= processWaitingMax;
  }

  /** Notes that a run has something to write: now, or with the next write. */
  ask(output: RunOutput, isUrgent: boolean): void {
    this.#waiting.add(output);
    if (this.#writing !== undefined || this.#isAsked) {
      if (isUrgent) this.#isAsked = true;
      return;
    }
    if (isUrgent) return this.#writeSoon();
    if (this.#cancelTimer !== undefined) return;
    const leftMs = Math.max(0, this.#lastMs + paceMs - monotonicMs());
    this.#cancelTimer = realLater(leftMs, () => this.#write());
  }

  /**
   * Resolves when a write of a run is over. If chunks were lost, one more write shows the gap, since
   * nothing is written behind the end of the run.
   */
  async written(output: RunOutput, write: number): Promise<void> {
    await this.#over(output, write);
    if (output.hasLost) await this.#over(output, output.writes.begun + 1);
  }

  async #over(output: RunOutput, write: number): Promise<void> {
    while (output.writes.over < write) {
      if (output.writes.begun < write) this.ask(output, true);
      await (this.#writing ?? new Promise<void>((resolve) => realSoon(resolve)));
    }
  }

  /** Writes what waits. */
  async close(): Promise<void> {
    await this.#writing;
    const waiting = [...this.#waiting];
    await Promise.all(waiting.map((output) => this.written(output, output.writes.begun + 1)));
    await this.#writing;
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
  }

  /** Reports the first of several writes that failed. Its chunks are lost, and nothing else is. */
  failed(error: unknown): void {
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    this.parts.tell({
      level: "warn",
      message: `Live output could not be written, and readers will see a gap: ${(error as Error).message}`,
      details: {},
    });
  }

  succeeded(): void {
    this.#hasFailed = false;
  }

  #writeSoon(): void {
    this.#isAsked = true;
    // Chunks of the same turn go together.
    realSoon(() => this.#write());
  }

  #write(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    this.#isAsked = false;
    this.#lastMs = monotonicMs();
    const outputs = [...this.#waiting];
    this.#waiting.clear();
    this.#writing = Promise.all(outputs.map((output) => output.write())).then(() => {
      this.#writing = undefined;
      if (this.#waiting.size === 0) this.#isAsked = false;
      else if (this.#isAsked) this.#writeSoon();
      else for (const output of this.#waiting) this.ask(output, false);
    });
  }
}
