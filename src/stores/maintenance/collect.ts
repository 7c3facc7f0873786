import { isBlobHash } from "../../model/blob.ts";
import { durationMs, type Duration } from "../../model/time/durations.ts";
import { plainOperation, type Tx } from "../../sql/operation.ts";
import { allRoots } from "../blob-roots.ts";
import { lockedBlobs, missingBlobs } from "../blob/blob-row.ts";
import {
  blobsAfter,
  newestBlob,
  recentlyPut,
  removeLocked,
  usedBlobs,
  type BlobRemoval,
  type BlobRoot,
  type RemovedBlobs,
} from "../blob/root-row.ts";
import { queue } from "../queue/queue.ts";
import { sweep, sweepOptions, type SweepOptions } from "../removal.ts";
import type { MaintenanceContext } from "./context.ts";

export interface CollectOptions extends SweepOptions<CollectReport> {
  /**
   * Blobs stored within this time stay, since something may be about to refer to them. Defaults to
   * 1 hour.
   */
  readonly grace?: Duration;
  /**
   * The time for which source keys of consumed queue work are remembered. Defaults to 30 days, as
   * for `queue`.
   */
  readonly sourceKeyMemory?: Duration;
}

export interface CollectReport {
  /** Examined blobs. Blobs stored during the collection are left to the next one. */
  readonly examined: number;
  readonly kept: number;
  readonly deleted: number;
  /** The size of the deleted blobs. */
  readonly deletedBytes: number;
  /**
   * Source keys of consumed queue work that were old enough to be forgotten. They are counted even
   * when no blob could be deleted.
   */
  readonly forgottenSourceKeys: number;
  /**
   * An unreadable or dangling root. Nothing was deleted then, since it is unknown which blobs it
   * kept.
   */
  readonly refused?: BlobRoot;
}

/**
 * Forgets old source keys, and removes unreferenced blobs. Every root is checked first, and then
 * blobs are examined, both in reads that block no other work. Only likely garbage is examined again
 * and removed, in small transactions. `onProgress` is called after each slice of blobs.
 */
export async function collect(
  context: MaintenanceContext,
  given: CollectOptions | undefined,
): Promise<CollectReport> {
  const { database, clock } = context;
  const options = sweepOptions(given, ["grace", "sourceKeyMemory"]);
  const { signal, rowsPerSlice: limit } = options;
  const { grace = context.grace, sourceKeyMemory = context.sourceKeyMemory } = options;
  const graceMs = durationMs(grace, "grace");
  const slice = { rowsPerSlice: limit, ...(signal && { signal }) };
  const { sourceKeys } = await queue(database, {
    clock,
    ...(sourceKeyMemory !== undefined && { sourceKeyMemory }),
  }).purgeSourceKeys(slice);
  const begun = { ...nothing, forgottenSourceKeys: sourceKeys };
  const refused = await doubtfulRoot(context, slice);
  if (refused !== undefined) return { ...begun, refused };
  const putUntil = clock.now() - graceMs;
  const until = await database.read(newestBlob, {}, { signal });
  let after = 0;
  return sweep<CollectReport>(context, options, async () => {
    const page = await database.read(lookForGarbage, { after, until, putUntil, limit }, { signal });
    const { blobs, bytes } = await removedGarbage(context, options, {
      hashes: page.garbage,
      putUntil,
    });
    const forgottenSourceKeys = after === 0 ? sourceKeys : 0;
    after = page.last ?? after;
    return {
      report: {
        examined: page.examined,
        kept: page.examined - blobs,
        deleted: blobs,
        deletedBytes: bytes,
        forgottenSourceKeys,
      },
      isDone: page.last === undefined,
    };
  });
}

const nothing: CollectReport = {
  examined: 0,
  kept: 0,
  deleted: 0,
  deletedBytes: 0,
  forgottenSourceKeys: 0,
};

async function removedGarbage(
  { database }: MaintenanceContext,
  { signal }: CollectOptions,
  removal: BlobRemoval,
): Promise<RemovedBlobs> {
  return removal.hashes.length === 0
    ? { blobs: 0, bytes: 0 }
    : database.write(collectBlobs, removal, { signal });
}

/** The first dangling or unreadable root, if any. */
async function doubtfulRoot(
  { database }: MaintenanceContext,
  { rowsPerSlice: limit, signal }: SweepOptions<never> & { readonly rowsPerSlice: number },
): Promise<BlobRoot | undefined> {
  let place: RootPlace | undefined = { column: 0, after: null };
  while (place !== undefined) {
    const page: RootsPage = await database.read(checkRoots, { place, limit }, { signal });
    if (page.refused !== undefined) return page.refused;
    place = page.next;
    await database.pause();
  }
  return undefined;
}

/** Removes the unreferenced blobs among some that were stored before the grace period. */
const collectBlobs = plainOperation("collectBlobs", {
  key: () => "",
  *one({ hashes, putUntil }: BlobRemoval): Tx<RemovedBlobs> {
    const locked = yield* lockedBlobs(hashes, "passOver");
    const old = locked.filter(({ put_at }) => put_at <= putUntil);
    return yield* removeLocked(old, putUntil, allRoots);
  },
});

/** The position of a check of the roots. */
interface RootPlace {
  readonly column: number;
  readonly after: string | null;
}

interface RootsPage {
  /** A dangling or unreadable root. */
  readonly refused: BlobRoot | undefined;
  /** The position to continue from; undefined when all roots were checked. */
  readonly next: RootPlace | undefined;
}

/**
 * Checks some roots in one snapshot. A root and its blob became visible together, so one without
 * the other is damage and not a moment in between.
 */
const checkRoots = plainOperation("checkRoots", {
  key: () => "",
  *one({ place, limit }: { readonly place: RootPlace; readonly limit: number }): Tx<RootsPage> {
    const roots = allRoots[place.column];
    if (roots === undefined) return { refused: undefined, next: undefined };
    const hashes = yield* roots.page(place.after, limit);
    const malformed = hashes.find((hash) => !isBlobHash(hash));
    const wrong = malformed ?? (yield* missingBlobs(hashes))[0];
    if (wrong !== undefined) return { refused: yield* roots.rootOf(wrong), next: undefined };
    const last = hashes.at(-1);
    const isEnd = last === undefined || hashes.length < limit;
    return {
      refused: undefined,
      next: isEnd
        ? { column: place.column + 1, after: null }
        : { column: place.column, after: last },
    };
  },
});

interface GarbagePage {
  readonly examined: number;
  /** Old enough, and unreferenced when they were examined. */
  readonly garbage: readonly string[];
  /** The last examined blob; undefined at the end. */
  readonly last: number | undefined;
}

interface LookForGarbage {
  readonly after: number;
  readonly until: number;
  readonly putUntil: number;
  readonly limit: number;
}

/** Examines some blobs without blocking other work. */
const lookForGarbage = plainOperation("lookForGarbage", {
  key: () => "",
  *one({ after, until, putUntil, limit }: LookForGarbage): Tx<GarbagePage> {
    const page = yield* blobsAfter(after, limit);
    const seen = page.filter(({ key }) => key <= until);
    const old = seen.filter(({ put_at }) => put_at <= putUntil).map(({ hash }) => hash);
    const used = yield* usedBlobs(old, allRoots);
    const unused = old.filter((hash) => !used.has(hash));
    const recent = yield* recentlyPut(unused, putUntil);
    return {
      examined: seen.length,
      garbage: unused.filter((hash) => !recent.has(hash)),
      last: seen.length < limit ? undefined : seen.at(-1)?.key,
    };
  },
});
