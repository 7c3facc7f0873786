import {
  integersOf,
  lockRow,
  seesLatest,
  skipLocked,
  textsOf,
} from "../../sql/dialect.ts";
import { rows, run } from "../../sql/operation.ts";
import type { Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import type { BlobRoots } from "./roots.ts";

export interface BlobRemoval {
  readonly hashes: readonly string[];
  /** Those that somebody put on their own later stay: he may be about to refer to them. */
  readonly putUntil: number;
}

export interface RemovedBlobs {
  readonly blobs: number;
  readonly bytes: number;
}

/** A blob that nobody else can refer to before the transaction ends. */
export interface LockedBlob {
  readonly key: number;
  readonly hash: string;
  /** When it was first stored. */
  readonly put_at: number;
  readonly stored: number;
}

/**
 * Locks those of some blobs that are there, in the order of their hashes. One
 * that another transaction has locked is waited for when it was one's own, so
 * that of two owners who leave at once the last takes it along; the garbage of
 * others can wait, and is passed over.
 */
export function* lockedBlobs(
  hashes: readonly string[],
  whenLocked: "wait" | "passOver",
): Tx<readonly LockedBlob[]> {
  return yield* rows<LockedBlob>(sql`
    SELECT key, hash, put_at, length(content) AS stored FROM holdfast_blob
    WHERE hash IN ${textsOf(hashes)} ORDER BY hash ${whenLocked === "wait" ? lockRow : skipLocked}`);
}

/**
 * Removes those of some locked blobs that no row refers to. The roots are
 * asked in statements after the one that locked: whoever refers to a blob
 * has locked it first, so either its row is seen here or it finds the blob gone
 * and stores it anew. Inside a serializable transaction such a row may be newer
 * than what is seen, so there all blobs stay for the next collection.
 */
export function* removeLocked(
  locked: readonly LockedBlob[],
  putUntil: number,
  roots: readonly BlobRoots[],
): Tx<RemovedBlobs> {
  if (locked.length === 0) return { blobs: 0, bytes: 0 };
  const used = yield* usedBlobs(
    locked.map(({ hash }) => hash),
    roots,
  );
  const unused = locked.filter(({ hash }) => !used.has(hash));
  const puts = yield* putsOf(unused.map(({ hash }) => hash));
  const recent = recentOf(puts, putUntil);
  const removable = unused.filter(({ hash }) => !recent.has(hash));
  if (removable.length === 0) return { blobs: 0, bytes: 0 };
  const blobs = yield* run(sql`
    DELETE FROM holdfast_blob
    WHERE key IN ${integersOf(removable.map(({ key }) => key))} AND ${seesLatest}`);
  if (blobs === 0) return { blobs: 0, bytes: 0 };
  if (puts.length > 0)
    yield* run(sql`
      DELETE FROM holdfast_blob_put WHERE hash IN ${textsOf(removable.map(({ hash }) => hash))}`);
  return {
    blobs,
    bytes: removable.reduce((sum, { stored }) => sum + stored, 0),
  };
}

/** Those of some hashes that any root refers to. */
export function* usedBlobs(
  hashes: readonly string[],
  roots: readonly BlobRoots[],
): Tx<ReadonlySet<string>> {
  const used = new Set<string>();
  for (const root of roots) {
    const wanted = hashes.filter((hash) => !used.has(hash));
    if (wanted.length === 0) break;
    for (const hash of yield* root.usedOf(wanted)) used.add(hash);
  }
  return used;
}

/** Those of some hashes that were put on their own after an instant. */
export function* recentlyPut(
  hashes: readonly string[],
  putUntil: number,
): Tx<ReadonlySet<string>> {
  return recentOf(yield* putsOf(hashes), putUntil);
}

interface BlobPut {
  readonly hash: string;
  readonly at: number;
}

function* putsOf(hashes: readonly string[]): Tx<readonly BlobPut[]> {
  if (hashes.length === 0) return [];
  return yield* rows<BlobPut>(sql`
    SELECT hash, at FROM holdfast_blob_put WHERE hash IN ${textsOf(hashes)}`);
}

function recentOf(
  puts: readonly BlobPut[],
  putUntil: number,
): ReadonlySet<string> {
  const recent = puts.filter(({ at }) => at > putUntil);
  return new Set(recent.map(({ hash }) => hash));
}
