import type { RunLog } from "./workflow-context.ts";

/** The context of one attempt of an activity. */
export interface ActivityContext {
  /** The id of this run of the activity. */
  readonly id: string;
  /** The metadata that the run was started with, or inherited. It cannot be changed. */
  readonly metadata: Readonly<Record<string, string>>;
  /** The number of the attempt, from 1. */
  readonly attempt: number;
  /**
   * True when the attempt before this one was interrupted, as by a death or a closing worker: its
   * work may be done, in part or whole. A retried run knows of the failed run's last attempt.
   * False after an attempt that failed.
   */
  readonly isRepeat: boolean;
  /**
   * Aborted when the run is cancelled, the attempt times out, or another worker
   * takes the run. Pass it to the calls that you make.
   */
  readonly abortSignal: AbortSignal;
  /**
   * The same for all attempts, and for runs that `retry` makes of this one.
   * Pass it to services that take one.
   */
  readonly idempotencyKey: string;
  readonly log: RunLog;
  /** The last value that an earlier attempt gave to `heartbeat`; undefined if there is none. */
  readonly lastHeartbeat: unknown;
  /**
   * Reports the attempt's progress. The next attempt gets the value, and
   * readers of the run see it as its progress.
   */
  heartbeat(details?: unknown): void;
  /**
   * Shows a value to readers of this run's live output, or of a run above it (`run.stream`). It may
   * be lost in a crash. Returns false if it was dropped: too much waits to be written, or the
   * attempt is over.
   * @throws HoldfastError `NOT_SERIALIZABLE`, `VALUE_TOO_LARGE`
   */
  readonly stream: (chunk: unknown) => boolean;
}
