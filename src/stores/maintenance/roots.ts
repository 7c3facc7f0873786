import { isBlobHash } from "../../model/blob.ts";
import { plainOperation } from "../../sql/operation.ts";
import type { Operation, Tx } from "../../sql/operation.ts";
import { artifactRoots } from "../artifact/pointer.ts";
import { keepRoots } from "../blob/keep.ts";
import { missingBlobs } from "../blob/read.ts";
import {
  lockedBlobs,
  recentlyPut,
  removeLocked,
  usedBlobs,
} from "../blob/remove.ts";
import type { BlobRemoval, LockedBlob, RemovedBlobs } from "../blob/remove.ts";
import type { BlobRoot, BlobRoots } from "../blob/roots.ts";
import { blobsAfter } from "../blob/scan.ts";
import { sessionRoots } from "../session/roots.ts";

/** Everything that keeps a blob. A new column that refers to blobs is added here. */
const allRoots: readonly BlobRoots[] = [
  ...sessionRoots,
  artifactRoots,
  keepRoots,
];

/**
 * Removes those of some blobs that nothing in the database refers to any more.
 * For whoever has just removed rows that did, in the same transaction.
 */
export function* removeUnused({
  hashes,
  putUntil,
}: BlobRemoval): Tx<RemovedBlobs> {
  if (hashes.length === 0) return { blobs: 0, bytes: 0 };
  return yield* removeLeft(yield* lockedBlobs(hashes, "wait"), putUntil);
}

/** The same for those that `exchangeBlobs` has locked. */
export function* removeLeft(
  left: readonly LockedBlob[],
  putUntil: number,
): Tx<RemovedBlobs> {
  return yield* removeLocked(left, putUntil, allRoots);
}

/** The same for garbage that was found, as a call of its own: what was stored of late stays. */
export const collectBlobs: Operation<BlobRemoval, RemovedBlobs> =
  plainOperation("collectBlobs", {
    key: () => "",
    *one({ hashes, putUntil }: BlobRemoval) {
      const locked = yield* lockedBlobs(hashes, "passOver");
      const old = locked.filter(({ put_at }) => put_at <= putUntil);
      return yield* removeLocked(old, putUntil, allRoots);
    },
  });

/** Where a check of the roots stands. */
export interface RootPlace {
  readonly column: number;
  readonly after: string | null;
}

export interface RootsPage {
  /** A root that points to nothing, or cannot be read. */
  readonly refused: BlobRoot | undefined;
  /** Where to go on; undefined when all were seen. */
  readonly next: RootPlace | undefined;
}

/**
 * Looks at some roots, in one snapshot: a root and its blob became visible
 * together, so one without the other is damage and not a moment in between.
 */
export const checkRoots: Operation<
  { readonly place: RootPlace; readonly limit: number },
  RootsPage
> = plainOperation("checkRoots", {
  key: () => "",
  *one({ place, limit }: { place: RootPlace; limit: number }) {
    const roots = allRoots[place.column];
    if (roots === undefined) return { refused: undefined, next: undefined };
    const hashes = yield* roots.page(place.after, limit);
    const malformed = hashes.find((hash) => !isBlobHash(hash));
    const wrong = malformed ?? (yield* missingBlobs(hashes))[0];
    if (wrong !== undefined)
      return { refused: yield* roots.rootOf(wrong), next: undefined };
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

export interface GarbagePage {
  readonly examined: number;
  /** Old enough, and nothing referred to them when they were looked at. */
  readonly garbage: readonly string[];
  /** The last blob looked at; undefined at the end. */
  readonly last: number | undefined;
}

interface LookForGarbage {
  readonly after: number;
  readonly until: number;
  readonly putUntil: number;
  readonly limit: number;
}

/** Looks at some blobs without holding up anybody. */
export const lookForGarbage: Operation<LookForGarbage, GarbagePage> =
  plainOperation("lookForGarbage", {
    key: () => "",
    *one({ after, until, putUntil, limit }: LookForGarbage) {
      const page = yield* blobsAfter(after, limit);
      const seen = page.filter(({ key }) => key <= until);
      const old = seen
        .filter(({ put_at }) => put_at <= putUntil)
        .map(({ hash }) => hash);
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
