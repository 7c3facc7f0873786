import { durationMs } from "../../model/durations.ts";
import type { Duration } from "../../model/durations.ts";
import type { Clock } from "../../model/clock.ts";
import { checkedCount, givenFunction } from "../../model/shape.ts";
import { graceUnlessTold } from "../blob/context.ts";
import type { BlobRoot } from "../blob/roots.ts";
import { newestBlob } from "../blob/scan.ts";
import type { Database } from "../../sql/database.ts";
import { sourceKeyMemoryDefault } from "../queue/context.ts";
import { purgeInSlices } from "../queue/purge.ts";
import { checkRoots, collectBlobs, lookForGarbage } from "./roots.ts";
import type { GarbagePage, RootPlace, RootsPage } from "./roots.ts";

export interface MaintenanceCollectOptions {
  /** Blobs put within this time stay, since something may be about to refer to them: 1 hour unless told. */
  readonly grace?: Duration;
  /** How long source keys of consumed queue work are remembered: 30 days unless told, as for `queue`. */
  readonly sourceKeyMemory?: Duration;
  readonly signal?: AbortSignal | undefined;
  /** Rows per slice: 500 unless told. More is faster and holds up others longer. */
  readonly rowsPerSlice?: number;
  /** Told after every slice of blobs. */
  readonly onProgress?: ((soFar: CollectReport) => void) | undefined;
}

export interface CollectReport {
  /** Blobs looked at; those that came meanwhile are left to the next time. */
  readonly examined: number;
  readonly kept: number;
  readonly deleted: number;
  /** What the deleted ones took. */
  readonly deletedBytes: number;
  /** Source keys of consumed queue work that were old enough to be forgotten, whatever became of the blobs. */
  readonly forgottenSourceKeys: number;
  /** A row that cannot be believed. Then nothing was deleted: what it meant to keep cannot be known. */
  readonly refused?: BlobRoot;
}

const nothing: CollectReport = {
  examined: 0,
  kept: 0,
  deleted: 0,
  deletedBytes: 0,
  forgottenSourceKeys: 0,
};

/**
 * Forgets old source keys, and removes the blobs that nothing refers to. First every root is checked, then
 * blobs are looked at, both in reads that hold up nobody; only what looks like
 * garbage is looked at again and removed, in small transactions.
 */
export async function collect(
  database: Database,
  clock: Clock,
  options: MaintenanceCollectOptions = {},
): Promise<CollectReport> {
  const { grace = graceUnlessTold, signal, onProgress } = options;
  const { rowsPerSlice = 500, sourceKeyMemory = sourceKeyMemoryDefault } =
    options;
  givenFunction("onProgress", onProgress);
  const limit = checkedCount("rowsPerSlice", rowsPerSlice, {
    min: 1,
    max: 10_000,
  });
  const graceMs = durationMs(grace, "grace");
  const memoryMs = durationMs(sourceKeyMemory, "sourceKeyMemory");
  const { sourceKeys: forgottenSourceKeys } = await purgeInSlices(
    { database },
    clock.now() - memoryMs,
    { rowsPerSlice: limit, ...(signal && { signal }) },
  );
  const begun: CollectReport = { ...nothing, forgottenSourceKeys };
  const refused = await doubtfulRoot(database, { limit, signal });
  if (refused !== undefined) return { ...begun, refused };
  const putUntil = clock.now() - graceMs;
  const until = await database.read(newestBlob, {}, { signal });
  let report = begun;
  let after: number | undefined = 0;
  while (after !== undefined) {
    const page: GarbagePage = await database.read(
      lookForGarbage,
      { after, until, putUntil, limit },
      { signal },
    );
    const removed =
      page.garbage.length === 0
        ? { blobs: 0, bytes: 0 }
        : await database.write(
            collectBlobs,
            { hashes: page.garbage, putUntil },
            { signal },
          );
    report = {
      ...report,
      examined: report.examined + page.examined,
      kept: report.kept + page.examined - removed.blobs,
      deleted: report.deleted + removed.blobs,
      deletedBytes: report.deletedBytes + removed.bytes,
    };
    onProgress?.(report);
    await database.pause();
    after = page.last;
  }
  return report;
}

/** The first root that points to nothing or cannot be read, if there is one. */
async function doubtfulRoot(
  database: Database,
  slice: { readonly limit: number; readonly signal: AbortSignal | undefined },
): Promise<BlobRoot | undefined> {
  const { limit, signal } = slice;
  let place: RootPlace | undefined = { column: 0, after: null };
  while (place !== undefined) {
    const page: RootsPage = await database.read(
      checkRoots,
      { place, limit },
      { signal },
    );
    if (page.refused !== undefined) return page.refused;
    place = page.next;
    await database.pause();
  }
  return undefined;
}
