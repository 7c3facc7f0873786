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
import { processRoots } from "./process/environment-row.ts";
import { sessionRoots } from "./session/state-row.ts";

/** All references that keep a blob. Add a new column that refers to blobs here. */
export const allRoots: readonly BlobRoots[] = [
  ...sessionRoots,
  processRoots,
  artifactRoots,
  keepRoots,
];

/**
 * Removes the blobs among some hashes that nothing in the database refers to any longer. For a
 * transaction that has just removed rows that referred to them.
 */
export function* removeUnused({ hashes, putUntil }: BlobRemoval): Tx<RemovedBlobs> {
  if (hashes.length === 0) return { blobs: 0, bytes: 0 };
  return yield* removeLeft(yield* lockedBlobs(hashes, "wait"), putUntil);
}

/** Does the same for blobs that `exchangeBlobs` has locked. */
export function* removeLeft(left: readonly LockedBlob[], putUntil: number): Tx<RemovedBlobs> {
  return yield* removeLocked(left, putUntil, allRoots);
}
