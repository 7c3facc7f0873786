import { isBlobHash, parseBlobHash } from "../../model/blob.ts";
import { corruptRow } from "../../model/corrupt-row.ts";
import { checkedText } from "../../model/shape.ts";
import type { WaitOptions } from "../../sql/database.ts";
import { rows, run, storeOperation, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import {
  list,
  pageOf,
  sliced,
  type List,
  type PageOptions,
  type Slice,
  type SliceBounds,
} from "../list.ts";
import { onlyWait, type Call } from "../method.ts";
import { holdBlobs } from "./blob-row.ts";
import type { BlobContext } from "./context.ts";
import { keepKey, type BlobKeepRef } from "./root-row.ts";

/** A kept blob, its owner in the app, and the start of the keep. */
export interface BlobKeep {
  readonly hash: string;
  readonly owner: string;
  readonly keptAt: number;
}

interface KeepBlob extends BlobKeepRef {
  readonly at: number;
}

/** @throws HoldfastError `ID_MALFORMED`, `NAME_INVALID` (its owner), `OPTION_INVALID` */
export function givenKeep(
  { clock }: BlobContext,
  hash: string,
  owner: string,
  wait?: WaitOptions,
): Call<KeepBlob> {
  const input = { ...checkedKeep(hash, owner), at: clock.now() };
  return { input, wait: onlyWait(wait) };
}

/**
 * Keeps a blob for an owner, which makes a root, like an artifact. False when that owner keeps it
 * already; nothing changes then.
 *
 * @throws HoldfastError `BLOB_NOT_FOUND`
 */
export const keepBlob = storeOperation("keepBlob", {
  snapshotSafe: true,
  key: keepKey,
  *one(_: BlobContext, { hash, owner, at }: KeepBlob): Tx<boolean> {
    yield* holdBlobs([hash]);
    const kept = yield* run(sql`
      INSERT INTO holdfast_blob_keep (hash, owner, kept_at) VALUES (${hash}, ${owner}, ${at})
      ON CONFLICT (hash, owner) DO NOTHING`);
    return kept > 0;
  },
});

/** @throws HoldfastError `ID_MALFORMED`, `NAME_INVALID` (its owner), `OPTION_INVALID` */
export function givenRelease(
  _: BlobContext,
  hash: string,
  owner: string,
  wait?: WaitOptions,
): Call<BlobKeepRef> {
  return { input: checkedKeep(hash, owner), wait: onlyWait(wait) };
}

/**
 * Ends a keep; false when that owner does not keep the blob. The blob stays until a collection
 * finds that nothing else refers to it.
 */
export const releaseBlob = storeOperation("releaseBlob", {
  snapshotSafe: true,
  key: keepKey,
  *one(_: BlobContext, { hash, owner }: BlobKeepRef): Tx<boolean> {
    const released = yield* run(sql`
      DELETE FROM holdfast_blob_keep WHERE hash = ${hash} AND owner = ${owner}`);
    return released > 0;
  },
});

export interface BlobKeepsOptions extends PageOptions {
  /** Only keeps of this blob. */
  readonly hash?: string;
  /** Only keeps of this owner. */
  readonly owner?: string;
}

interface KeepFilter {
  readonly hash: string | undefined;
  readonly owner: string | undefined;
}

/** Keeps, by hash and owner. A list of one owner or of one blob is ordered by the other column. */
export const keepList: List<BlobContext, [options?: BlobKeepsOptions], BlobKeep> = list(
  "listBlobKeeps",
  {
    table: "holdfast_blob_keep",
    given(_: BlobContext, options?: BlobKeepsOptions) {
      const { filter, page } = pageOf(options, ["hash", "owner"]);
      const { hash, owner } = filter;
      return {
        filter: {
          hash: hash === undefined ? undefined : parseBlobHash(hash),
          owner: owner === undefined ? undefined : checkedOwner(owner),
        },
        page,
      };
    },
    slice: keepSlice,
    keyOf: keepKey,
    itemOf(_, keep: BlobKeep) {
      if (isBlobHash(keep.hash)) return keep;
      throw corruptRow("holdfast_blob_keep", keepKey(keep), "keeps an invalid hash");
    },
  },
);

function* keepSlice(
  _: BlobContext,
  { hash, owner }: KeepFilter,
  bounds: SliceBounds,
): Tx<Slice<BlobKeep>> {
  const byHash = hash === undefined ? sql`` : sql`AND hash = ${hash}`;
  const byOwner = owner === undefined ? sql`` : sql`AND owner = ${owner}`;
  return yield* sliced(
    bounds,
    (keep: BlobKeep) => [keep.hash, keep.owner],
    function* (after, count) {
      const [lastHash, lastOwner] = after ?? ["", ""];
      return yield* rows<BlobKeep>(sql`
        SELECT hash, owner, kept_at AS "keptAt" FROM holdfast_blob_keep
        WHERE (hash, owner) > (${lastHash ?? ""}, ${lastOwner ?? ""}) ${byHash} ${byOwner}
        ORDER BY hash, owner LIMIT ${count}`);
    },
  );
}

function checkedKeep(hash: string, owner: string): BlobKeepRef {
  return { hash: parseBlobHash(hash), owner: checkedOwner(owner) };
}

function checkedOwner(owner: string): string {
  return checkedText("The owner of a blob", owner, 512);
}
