import { isBlobHash } from "../../model/blob.ts";
import { textsOf } from "../../sql/dialect.ts";
import { row, rows, run, plainOperation } from "../../sql/operation.ts";
import type { Operation } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import type { Damaged } from "../damage.ts";
import { holdBlobs } from "./put.ts";
import type { BlobRoots } from "./roots.ts";

/** A blob, and who in the app keeps it. */
export interface BlobKeepRef {
  readonly hash: string;
  readonly owner: string;
}

/** What `keepBlob` takes; `keeping` of `blobs` makes it, checked. */
export interface NewBlobKeep extends BlobKeepRef {
  readonly at: number;
}

/** A keep as lists show it. */
export interface BlobKeep extends BlobKeepRef {
  readonly keptAt: number;
}

export function keepKey({ hash, owner }: BlobKeepRef): string {
  return `${hash}/${owner}`;
}

/**
 * Keeps a blob for an owner: a root, like an artifact. Put it beside the
 * statement that writes the app's own row. False when that owner keeps it
 * already; nothing is changed then.
 *
 * @throws HoldfastError `BLOB_NOT_FOUND`
 * @example
 * const keep = store.keeping(hash, "invoice-7");
 * await database.write("file invoice", function* () {
 *   yield* keepBlob(keep);
 *   yield* run(sql`INSERT INTO invoice (id, pdf) VALUES ('invoice-7', ${hash})`);
 * });
 */
export const keepBlob: Operation<NewBlobKeep, boolean> = plainOperation(
  "keepBlob",
  {
    snapshotSafe: true,
    key: keepKey,
    *one({ hash, owner, at }: NewBlobKeep) {
      yield* holdBlobs([hash]);
      const kept = yield* run(sql`
      INSERT INTO holdfast_blob_keep (hash, owner, kept_at) VALUES (${hash}, ${owner}, ${at})
      ON CONFLICT (hash, owner) DO NOTHING`);
      return kept > 0;
    },
  },
);

/**
 * Ends what `keepBlob` began; false when that owner did not keep it. The blob
 * stays until a collection finds that nothing else refers to it.
 */
export const releaseBlob: Operation<BlobKeepRef, boolean> = plainOperation(
  "releaseBlob",
  {
    snapshotSafe: true,
    key: keepKey,
    *one({ hash, owner }: BlobKeepRef) {
      const released = yield* run(sql`
        DELETE FROM holdfast_blob_keep WHERE hash = ${hash} AND owner = ${owner}`);
      return released > 0;
    },
  },
);

export interface ListKeeps {
  readonly hash: string | undefined;
  readonly owner: string | undefined;
  /** The last of the page before; texts without characters to begin with. */
  readonly after: BlobKeepRef;
  readonly limit: number;
}

export interface KeepsPage {
  readonly items: readonly BlobKeep[];
  readonly damaged: readonly Damaged[];
  readonly next: BlobKeepRef | undefined;
}

/** Keeps by hash and owner; of one owner, or of one blob, by the other. */
export const listKeeps: Operation<ListKeeps, KeepsPage> = plainOperation(
  "listBlobKeeps",
  {
    key: () => "",
    *one({ hash, owner, after, limit }: ListKeeps) {
      const byHash = hash === undefined ? sql`` : sql`AND hash = ${hash}`;
      const byOwner = owner === undefined ? sql`` : sql`AND owner = ${owner}`;
      const found = yield* rows<BlobKeep>(sql`
        SELECT hash, owner, kept_at AS "keptAt" FROM holdfast_blob_keep
        WHERE (hash, owner) > (${after.hash}, ${after.owner}) ${byHash} ${byOwner}
        ORDER BY hash, owner LIMIT ${limit + 1}`);
      const page = found.slice(0, limit);
      return {
        items: page.filter((keep) => isBlobHash(keep.hash)),
        damaged: page
          .filter((keep) => !isBlobHash(keep.hash))
          .map((keep) => ({ table: "holdfast_blob_keep", key: keepKey(keep) })),
        next: found.length > limit ? page.at(-1) : undefined,
      };
    },
  },
);

/** What the app keeps. */
export const keepRoots: BlobRoots = {
  *usedOf(hashes) {
    const found = yield* rows<{ readonly hash: string }>(sql`
      SELECT DISTINCT hash FROM holdfast_blob_keep WHERE hash IN ${textsOf(hashes)}`);
    return found.map(({ hash }) => hash);
  },
  *page(after, limit) {
    const found = yield* rows<{ readonly hash: string }>(
      after === null
        ? sql`SELECT DISTINCT hash FROM holdfast_blob_keep ORDER BY hash LIMIT ${limit}`
        : sql`SELECT DISTINCT hash FROM holdfast_blob_keep WHERE hash > ${after} ORDER BY hash LIMIT ${limit}`,
    );
    return found.map(({ hash }) => hash);
  },
  *rootOf(hash) {
    const found = yield* row<BlobKeepRef>(sql`
      SELECT hash, owner FROM holdfast_blob_keep WHERE hash = ${hash} ORDER BY owner LIMIT 1`);
    return {
      table: "holdfast_blob_keep",
      key: found === undefined ? hash : keepKey(found),
    };
  },
};
