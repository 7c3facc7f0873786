import type { Tx } from "../sql/operation.ts";
import { lockedBlobs, type LockedBlob } from "./blob/blob-row.ts";
import {
  artifactRoots,
  keepRoots,
  removeLocked,
  type BlobRemoval,
  type BlobRoots,
  type RemovedBlobs,
} from "./blob/root-row.ts";
import { sessionRoots } from "./session/state-row.ts";

/** Everything that keeps a blob. A new column that refers to blobs is added here. */
export const allRoots: readonly BlobRoots[] = [...sessionRoots, artifactRoots, keepRoots];

/**
 * Removes those of some blobs that nothing in the database refers to any more.
 * For a transaction that has just removed rows that did.
 */
export function* removeUnused({ hashes, putUntil }: BlobRemoval): Tx<RemovedBlobs> {
  if (hashes.length === 0) return { blobs: 0, bytes: 0 };
  return yield* removeLeft(yield* lockedBlobs(hashes, "wait"), putUntil);
}

/** The same for those that `exchangeBlobs` has locked. */
export function* removeLeft(left: readonly LockedBlob[], putUntil: number): Tx<RemovedBlobs> {
  return yield* removeLocked(left, putUntil, allRoots);
}
