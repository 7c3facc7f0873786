import { createHistogram } from "node:perf_hooks";
import type { RecordableHistogram } from "node:perf_hooks";
import type { Latency, Stats } from "../sql/database.ts";
import { OperationTimes } from "./operation-times.ts";

/** Counts and distributions behind `stats()`. Recording costs well under a microsecond. */
export class Meters {
  readonly #batchSizes: RecordableHistogram = createHistogram();
  readonly #commitMicros: RecordableHistogram = createHistogram();
  readonly #flushMicros: RecordableHistogram = createHistogram();
  readonly #queueMicros: RecordableHistogram = createHistogram();
  readonly #lockMicros: RecordableHistogram = createHistogram();
  readonly operations: OperationTimes = new OperationTimes();
  calls = 0;
  commits = 0;
  flushes = 0;
  rollbacks = 0;
  busyRetries = 0;
  reruns = 0;
  polls = 0;

  committed(calls: number, elapsedMs: number): void {
    this.commits += 1;
    this.calls += calls;
    this.#batchSizes.record(Math.max(1, calls));
    this.#commitMicros.record(micros(elapsedMs));
  }

  flushed(elapsedMs: number): void {
    this.flushes += 1;
    this.#flushMicros.record(micros(elapsedMs));
  }

  queued(waitedMs: number): void {
    this.#queueMicros.record(micros(waitedMs));
  }

  lockedOut(waitedMs: number): void {
    this.#lockMicros.record(micros(waitedMs));
  }

  snapshot(
    now: Pick<
      Stats,
      "queueDepth" | "walBytes" | "checkpoints" | "logHeldBack" | "clockOffsetMs" | "peers"
    >,
  ): Stats {
    return {
      ...now,
      calls: this.calls,
      commits: this.commits,
      flushes: this.flushes,
      rollbacks: this.rollbacks,
      busyRetries: this.busyRetries,
      reruns: this.reruns,
      polls: this.polls,
      batchSize: distribution(this.#batchSizes, 1),
      commitMs: latency(this.#commitMicros),
      flushMs: latency(this.#flushMicros),
      queueWaitMs: latency(this.#queueMicros),
      lockWaitMs: latency(this.#lockMicros),
      operations: this.operations.snapshot(),
    };
  }
}

function micros(elapsedMs: number): number {
  return Math.max(1, Math.round(elapsedMs * 1_000));
}

function latency(histogram: RecordableHistogram): Latency {
  return { count: histogram.count, ...distribution(histogram, 1_000) };
}

function distribution(
  histogram: RecordableHistogram,
  unit: number,
): { readonly p50: number; readonly p99: number; readonly max: number } {
  if (histogram.count === 0) return { p50: 0, p99: 0, max: 0 };
  return {
    p50: histogram.percentile(50) / unit,
    p99: histogram.percentile(99) / unit,
    max: histogram.max / unit,
  };
}
