import type { Database } from "../../sql/database.ts";
import type { SweepOptions } from "../removal.ts";
import { checkDatabase, type CheckedTable, type MaintenanceCheckReport } from "./check.ts";
import { collect, type CollectOptions, type CollectReport } from "./collect.ts";
import { maintenanceContext, type MaintenanceOptions } from "./context.ts";
import { measureSizes, type SizeReport } from "./sizes.ts";

/** Keeping a database small, beside its work. */
export interface Maintenance {
  /**
   * Removes blobs that nothing refers to (a session's checkpoint or frame, an
   * artifact, or a `keep` of `blobs`; a row of the app does not count), and
   * forgets source keys that queues need not remember any longer, in slices.
   * Stopping it, or a crash, leaves less garbage and nothing else.
   * @throws HoldfastError `ABORTED`, `OPTION_INVALID`, `DURATION_INVALID`
   * @example
   * const { deleted, refused } = await maintenance(database).collect({ grace: "1 day" });
   */
  collect(options?: CollectOptions): Promise<CollectReport>;
  /**
   * Counts a turn commit that has succeeded. `sessions(database, { maintenance })`
   * calls it by itself; call it for commits made in other ways. After each
   * `collectEvery` of them it collects and answers with the report. One
   * collection at a time; a failed one says nothing about the commit.
   */
  afterCommit(): Promise<CollectReport | undefined>;
  /**
   * Reads every row of every table of Holdfast, in small snapshots beside other
   * work: decodes it as reads do, computes stored hashes anew (inputs, results,
   * envelopes, answers, blobs, attachments in the database …) and looks whether
   * what rows refer to is there. It writes nothing, and damage is reported and
   * never thrown. Whether the file itself is sound is for `check` of a SQLite
   * database to say.
   * @throws HoldfastError `ABORTED`, `OPTION_INVALID`
   * @example
   * const { damaged } = await maintenance(database, { payload }).check();
   * for (const { table, key, reason } of damaged) console.error(table, key, reason);
   */
  check(options?: SweepOptions<CheckedTable>): Promise<MaintenanceCheckReport>;
  /**
   * What blobs take, by kind, and attachments, of all sessions. For one of
   * them: `sizes` of `sessions`.
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
    sizes: async (given) => measureSizes(database, given),
  };
}
