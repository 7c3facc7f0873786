import type { Fence } from "../../stores/execution/checks.ts";
import type { EarlyHints } from "./early-hints.ts";
import type { RuntimeContext } from "../runtime-context.ts";
import type { Slots } from "./slots.ts";

/** How a worker is to work, checked. */
export interface WorkerSettings {
  readonly concurrency: number;
  readonly codeVersion: string | undefined;
  /** How long a lock lasts without being renewed: after it another machine may take over. */
  readonly leaseMs: number;
  /** How many runs that wait are kept in memory. */
  readonly hotRunsMax: number;
  /** About how many bytes those may hold together. */
  readonly hotBytesMax: number;
}

/** What the parts of a worker share. */
export interface WorkerParts {
  readonly context: RuntimeContext;
  readonly settings: WorkerSettings;
  readonly holder: Fence;
  readonly slots: Slots;
  readonly early: EarlyHints;
  /** Aborted when the worker has closed. */
  readonly signal: AbortSignal;
}
