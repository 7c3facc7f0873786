import type { Clock } from "../../model/clock.ts";
import { durationMs } from "../../model/durations.ts";
import type { Duration } from "../../model/durations.ts";
import { graceUnlessTold } from "../blob/environment.ts";
import type { Database } from "../database.ts";
import { givenDatabase, givenFunction, optionsOf } from "../given.ts";
import { checkedCount } from "../execution/checks.ts";
import { sourceKeyMemoryUnlessTold } from "../queue/purge.ts";
import { collect } from "./collect.ts";
import type { MaintenanceCollectOptions, CollectReport } from "./collect.ts";
import { measureSizes } from "./sizes.ts";
import type { SizeReport, MaintenanceSizesOptions } from "./sizes.ts";

export interface MaintenanceEnvironment {
  readonly clock?: Clock;
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
  /** What blobs take, by kind, and attachments, of all sessions. For one of them: `sizes` of `sessions`. */
  sizes(options?: MaintenanceSizesOptions): Promise<SizeReport>;
}

export function maintenance(
  database: Database,
  environment?: MaintenanceEnvironment,
): Maintenance {
  givenDatabase(database);
  const { onCollected, collectEvery = 0, ...given } = optionsOf(environment);
  const {
    clock = database.clock,
    grace = graceUnlessTold,
    sourceKeyMemory = sourceKeyMemoryUnlessTold,
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
    sizes: async (options) => measureSizes(database, optionsOf(options)),
  };
}
