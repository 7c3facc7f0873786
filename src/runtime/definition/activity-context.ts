import type { RunLog } from "./workflow-context.ts";

/** What the code of an activity is given. */
export interface ActivityContext {
  /** Of this run of the activity. */
  readonly id: string;
  /** From 1 on. */
  readonly attempt: number;
  /** Aborted when it is cancelled, its time is over, or another worker has taken it. Pass it on. */
  readonly abortSignal: AbortSignal;
  /** The same for all attempts: for services that take one. */
  readonly idempotencyKey: string;
  readonly log: RunLog;
  /** What the attempts before last gave to `heartbeat`; undefined if nothing. */
  readonly lastHeartbeat: unknown;
  /** Tells how far it has come; the next attempt is given it. Also shown as the run's progress. */
  heartbeat(details?: unknown): void;
}
