import type { Database } from "../../sql/database.ts";
import type { SweepOptions } from "../removal.ts";
import { checkDatabase, type CheckedTable, type MaintenanceCheckReport } from "./check.ts";
import { collect, type CollectOptions, type CollectReport } from "./collect.ts";
import { maintenanceContext, type MaintenanceOptions } from "./context.ts";
import { repairRuns, type RepairOptions, type RepairReport } from "./repair.ts";
import { measureSizes, type SizeReport } from "./sizes.ts";

/** Housekeeping that keeps a database small while it is in use. */
export interface Maintenance {
  /**
   * Removes unreferenced blobs and forgotten source keys, in slices. A reference is a session's
   * checkpoint or frame, an artifact, or a `keep` of `blobs`; a row of the app does not count.
   * Source keys go once they are older than the source memory of the queues. A stop or a crash
   * leaves less garbage and changes nothing else.
   * @throws HoldfastError `ABORTED`, `OPTION_INVALID`, `DURATION_INVALID`
   * @example
   * const { deleted, refused } = await maintenance(database).collect({ grace: "1 day" });
   */
  collect(options?: CollectOptions): Promise<CollectReport>;
  /**
   * Counts a successful turn commit. `sessions(database, { maintenance })` calls it automatically;
   * call it for commits made in other ways. After every `collectEvery` commits it collects and
   * returns the report. Only one collection runs at a time. A failed collection does not affect the
   * commit.
   */
  afterCommit(): Promise<CollectReport | undefined>;
  /**
   * Reads every row of every Holdfast table, in small snapshots beside other work. It decodes rows
   * as reads do, recomputes stored hashes (inputs, results, envelopes, answers, blobs, attachments
   * in the database …), and checks that referenced rows exist. The row of each run is compared with
   * the fold of its log. It writes nothing; damage is reported and never thrown. To check the file
   * itself, use `check` of a SQLite database.
   * @throws HoldfastError `ABORTED`, `OPTION_INVALID`
   * @example
   * const { damaged } = await maintenance(database, { payload }).check();
   * for (const { table, key, reason } of damaged) console.error(table, key, reason);
   */
  check(options?: SweepOptions<CheckedTable>): Promise<MaintenanceCheckReport>;
  /**
   * Rewrites the rows of runs that contradict their logs, as reported by `check`: state, lifecycle,
   * wait and its end, due time and deadline. Each run is folded again and written under the lock of
   * its row. Versions and counts stay, and no lease is granted or moved. A run is skipped, with the
   * reason, while a process that is or may be alive holds it, or when its log is damaged. Without
   * `apply` it writes nothing and reports the planned changes.
   * @throws HoldfastError `ABORTED`, `OPTION_INVALID`
   * @example
   * const { found } = await maintenance(database).repair({ apply: true });
   * for (const { id, outcome, reason } of found) console.log(id, outcome, reason);
   */
  repair(options?: RepairOptions): Promise<RepairReport>;
  /**
   * Sums the storage of all sessions: blobs by kind, and attachments. For one session, use `sizes`
   * of `sessions`.
   * @throws HoldfastError `ABORTED`, `OPTION_INVALID`
   */
  sizes(options?: { readonly signal?: AbortSignal }): Promise<SizeReport>;
}

/** @throws HoldfastError `OPTION_INVALID`, `DURATION_INVALID` */
export function maintenance(database: Database, options?: MaintenanceOptions): Maintenance {
  const context = maintenanceContext(database, options);
  const { collectEvery, onCollected, payload } = context;
  let commits = 0;
  let last: Promise<unknown> = Promise.resolve();
  return {
    collect: async (given) => collect(context, given),
    async afterCommit() {
      if (collectEvery === 0) return undefined;
      commits += 1;
      if (commits % collectEvery !== 0) return undefined;
      const collecting = last.then(() => collect(context, undefined));
      last = collecting
        .then(onCollected, (error: unknown) => onCollected?.({ error }))
        .catch(() => undefined);
      return collecting;
    },
    check: async (given) => checkDatabase(database, payload, given),
    repair: async (given) => repairRuns(context, given),
    sizes: async (given) => measureSizes(database, given),
  };
}
