import type { Clock } from "../../model/clock.ts";
import { durationMs } from "../../model/durations.ts";
import type { PayloadCodec } from "../../model/payload-codec.ts";
import type { Duration } from "../../model/durations.ts";
import { checkedCount, givenFunction, optionsOf } from "../../model/shape.ts";
import { graceUnlessTold } from "../blob/context.ts";
import type { Database } from "../../sql/database.ts";
import { givenDatabase } from "../given.ts";
import { sourceKeyMemoryDefault } from "../queue/context.ts";
import { checkDatabase } from "./check.ts";
import type {
  MaintenanceCheckReport,
  MaintenanceCheckOptions,
} from "./check.ts";
import { collect } from "./collect.ts";
import type { MaintenanceCollectOptions, CollectReport } from "./collect.ts";
import { measureSizes } from "./sizes.ts";
import type { SizeReport, MaintenanceSizesOptions } from "./sizes.ts";

export interface MaintenanceEnvironment {
  readonly clock?: Clock;
  /** The codec that the stores were given: `check` reads values with it. */
  readonly payload?: PayloadCodec;
  /** Collect garbage after so many commits; never unless told. */
  readonly collectEvery?: number;
  /** For collections that say nothing else: 1 hour. */
  readonly grace?: Duration;
  /** The same: 30 days. Give it what `queue` is given. */
  readonly sourceKeyMemory?: Duration;
  /** Told of every collection that `afterCommit` began, since nobody waits for those after turn commits. */
  readonly onCollected?: (
    outcome: CollectReport | { readonly error: unknown },
  ) => void;
}

/** Keeping a database small, beside its work. */
export interface Maintenance {
  /**
   * Removes blobs that nothing refers to (a session's checkpoint or frame, an
   * artifact, or a `keep` of `blobs`; a row of the app does not count), and forgets source keys that queues
   * need not remember any longer, in slices. Stopping it, or a crash, leaves a
   * smaller garbage heap and nothing else.
   * @throws HoldfastError `ABORTED`
   */
  collect(options?: MaintenanceCollectOptions): Promise<CollectReport>;
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
  check(options?: MaintenanceCheckOptions): Promise<MaintenanceCheckReport>;
  /** What blobs take, by kind, and attachments, of all sessions. For one of them: `sizes` of `sessions`. */
  sizes(options?: MaintenanceSizesOptions): Promise<SizeReport>;
}

export function maintenance(
  database: Database,
  environment?: MaintenanceEnvironment,
): Maintenance {
  givenDatabase(database);
  const {
    onCollected,
    payload,
    collectEvery = 0,
    ...given
  } = optionsOf(environment);
  const {
    clock = database.clock,
    grace = graceUnlessTold,
    sourceKeyMemory = sourceKeyMemoryDefault,
  } = given;
  givenFunction("onCollected", onCollected);
  durationMs(grace, "grace");
  durationMs(sourceKeyMemory, "sourceKeyMemory");
  const every = checkedCount("collectEvery", collectEvery, {
    min: 0,
    max: Number.MAX_SAFE_INTEGER,
  });
  let commits = 0;
  let last: Promise<unknown> = Promise.resolve();
  const collectNow = async (
    options?: MaintenanceCollectOptions,
  ): Promise<CollectReport> =>
    collect(database, clock, {
      grace,
      sourceKeyMemory,
      ...optionsOf(options),
    });
  return {
    collect: collectNow,
    async afterCommit() {
      if (every === 0) return undefined;
      commits += 1;
      if (commits % every !== 0) return undefined;
      const collecting = last.then(() => collectNow());
      last = collecting
        .then(onCollected, (error: unknown) => onCollected?.({ error }))
        .catch(() => undefined);
      return collecting;
    },
    check: async (options) => checkDatabase(database, payload, options),
    sizes: async (options) => measureSizes(database, optionsOf(options)),
  };
}
