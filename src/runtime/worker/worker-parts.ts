import type { Fence } from "../../stores/execution/checks.ts";
import type { AloneRuns } from "./alone.ts";
import type { HintsWhileLocking } from "./hints-while-locking.ts";
import type { RuntimeContext } from "../runtime-context.ts";
import type { Slots } from "./slots.ts";

/** The checked settings of a worker. */
export interface WorkerSettings {
  readonly concurrency: number;
  readonly codeVersion: string | undefined;
  /** The time for which a lock lasts without renewal. After it another machine may take over. */
  readonly leaseMs: number;
  /** The most waiting runs kept in memory. */
  readonly hotRunsMax: number;
  /** About the most bytes that the waiting runs may hold together. */
  readonly hotBytesMax: number;
  /** The time for which the live output of a run is kept after its end. */
  readonly keepStreamsMs: number;
}

/** The objects that the parts of a worker share. */
export interface WorkerParts {
  readonly context: RuntimeContext;
  readonly settings: WorkerSettings;
  readonly holder: Fence;
  readonly slots: Slots;
  readonly early: HintsWhileLocking;
  readonly alone: AloneRuns;
  /** Aborted when the worker has closed. */
  readonly signal: AbortSignal;
}
