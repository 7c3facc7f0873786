import { row, rows, plainOperation } from "../../sql/operation.ts";
import type { Operation, Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";

/** A blob on a walk through all of them, in the order in which they came. */
export interface ScannedBlob {
  readonly key: number;
  readonly hash: string;
  readonly put_at: number;
}

/** The next blobs of a walk. Their content is not read. */
export function* blobsAfter(
  after: number,
  limit: number,
): Tx<readonly ScannedBlob[]> {
  return yield* rows<ScannedBlob>(sql`
    SELECT key, hash, put_at FROM holdfast_blob WHERE key > ${after} ORDER BY key LIMIT ${limit}`);
}

/** Where a walk ends that does not care for what comes while it goes on. */
export const newestBlob: Operation<object, number> = plainOperation(
  "newestBlob",
  {
    key: () => "",
    *one() {
      const found = yield* row<{ readonly key: number }>(sql`
      SELECT key FROM holdfast_blob ORDER BY key DESC LIMIT 1`);
      return found?.key ?? 0;
    },
  },
);

/** What the blobs of one kind take. */
export interface BlobSizes {
  readonly kind: string;
  readonly blobs: number;
  /** Before compression. */
  readonly size: number;
  /** As stored. */
  readonly stored: number;
}

export interface SizesPage {
  readonly sizes: readonly BlobSizes[];
  /** The last blob of the page; undefined when there was none. */
  readonly last: number | undefined;
}

interface SizesAfter {
  readonly after: number;
  readonly limit: number;
}

/** The sizes of the next blobs of a walk, by kind. */
export const blobSizesAfter: Operation<SizesAfter, SizesPage> = plainOperation(
  "blobSizesAfter",
  {
    key: () => "",
    *one({ after, limit }: SizesAfter) {
      const found = yield* rows<BlobSizes & { readonly last: number }>(sql`
        SELECT kind, count(*) AS blobs, sum(size) AS size, sum(stored) AS stored, max(key) AS last
        FROM (SELECT key, kind, size, length(content) AS stored FROM holdfast_blob
          WHERE key > ${after} ORDER BY key LIMIT ${limit}) AS page
        GROUP BY kind ORDER BY kind`);
      const last = Math.max(0, ...found.map((page) => page.last));
      return {
        sizes: found.map(({ kind, blobs, size, stored }) => ({
          kind,
          blobs,
          size,
          stored,
        })),
        last: found.length === 0 ? undefined : last,
      };
    },
  },
);
