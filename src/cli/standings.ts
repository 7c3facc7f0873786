import type { Standing } from "../model/execution/spoken-standing.ts";
import type { OpenWait } from "../model/execution/open-waits.ts";
import type { ReadableHoldfast } from "../open/open-existing.ts";
import { executionContext } from "../stores/execution/context.ts";
import { findUnserved } from "../stores/execution/read/unserved.ts";
import type { ExecutionSummary } from "../stores/execution/read/summary.ts";
import { openAsks } from "../runtime/client/open-asks.ts";

/** The time in milliseconds after which a due run may count as unserved, as in handles. */
export const patienceMs = 2_000;

/** The number of runs of a list whose logs are read. */
const logsReadMax = 100;

/** The standing of a run in a list. */
export interface ListedRun extends ExecutionSummary {
  readonly standing: Pick<Standing, "status" | "waits">;
}

/** A run of a list for programs. */
export function listedJson({ standing, ...run }: ListedRun): unknown {
  return { ...run, ...standing };
}

/** Adds to the runs of a list what they wait for, and which of them no worker serves, as `status()` of a handle does. */
export async function withStandings(
  opened: ReadableHoldfast,
  runs: readonly ExecutionSummary[],
  now: number,
): Promise<readonly ListedRun[]> {
  const unserved = await unservedOf(opened, runs, now - patienceMs);
  const asks = await Promise.all(
    runs.map(async (run, index): Promise<readonly OpenWait[]> => {
      if (run.status !== "blocked" || index >= logsReadMax) return [];
      // A damaged log of one run must not hide the others.
      return openAsks(opened.pages.executions, run, now).catch(() => []);
    }),
  );
  return runs.map((run, index) => {
    const status = isDueBy(run, now - patienceMs) && unserved.has(run.function);
    return {
      ...run,
      standing: { status: status ? "unserved" : run.status, waits: asks[index] ?? [] },
    };
  });
}

/** True for a run that has been due since an instant, and that no worker has. */
export function isDueBy(
  { status, state: { pending } }: ExecutionSummary,
  instant: number,
): boolean {
  return status === "pending" && pending.kind === "pending" && pending.dueAt <= instant;
}

/** The functions of due runs that no worker runs. */
export async function unservedOf(
  { database }: Pick<ReadableHoldfast, "database">,
  runs: readonly ExecutionSummary[],
  dueBy: number,
): Promise<ReadonlySet<string>> {
  const names = new Set(runs.filter((run) => isDueBy(run, dueBy)).map((run) => run.function));
  const find = findUnserved(executionContext(database, {}));
  const found = await Promise.all(
    Array.from(names, (only) => database.read(find, { only, dueBy })),
  );
  return new Set(found.flat().map((each) => each.function));
}
