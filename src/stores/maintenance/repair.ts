import { givenFlag, tellProgress } from "../../model/shape.ts";
import { repairExecution, suspiciousExecutions, type RepairedRun } from "../execution/parts.ts";
import { sweepOptions, type SweepOptions } from "../removal.ts";
import type { MaintenanceContext } from "./context.ts";

export interface RepairOptions extends SweepOptions<RepairProgress> {
  /** Writes the repairs; by default nothing is written. */
  readonly apply?: boolean;
}

interface RepairProgress {
  /** Examined runs. */
  readonly runs: number;
  /** Runs whose rows contradicted their logs and were repaired, or without `apply` would be. */
  readonly repaired: number;
  /** Runs that cannot be repaired now or at all. */
  readonly left: number;
}

export interface RepairReport extends RepairProgress {
  /** True when repairs were written. */
  readonly isApplied: boolean;
  /** The first 1,000 of both, with their faults and outcomes. */
  readonly found: readonly RepairedRun[];
}

const foundMax = 1_000;

/**
 * Examines all runs and repairs those whose rows contradict their logs, each in a separate
 * transaction.
 */
export async function repairRuns(
  context: MaintenanceContext,
  given: RepairOptions | undefined,
): Promise<RepairReport> {
  const { signal, onProgress, rowsPerSlice, apply } = sweepOptions<RepairOptions>(given, ["apply"]);
  givenFlag("apply", apply);
  const isApplied = apply === true;
  const found: RepairedRun[] = [];
  let progress: RepairProgress = { runs: 0, repaired: 0, left: 0 };
  const walk = suspiciousExecutions(context.database, { rowsPerSlice, signal });
  for await (const { rows, suspicious } of walk) {
    let { repaired, left } = progress;
    for (const each of suspicious) {
      const run = await repairExecution(context, each, { isApplied, signal });
      if (run.outcome === "agrees") continue;
      if (run.outcome === "repaired" || run.outcome === "repairable") repaired += 1;
      else left += 1;
      if (found.length < foundMax) found.push(run);
    }
    progress = { runs: progress.runs + rows, repaired, left };
    tellProgress(onProgress, progress);
  }
  return { isApplied, ...progress, found };
}
