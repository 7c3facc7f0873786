import type { StoredBlob } from "../../model/blob.ts";
import { textsOf } from "../../sql/dialect.ts";
import { row, rows, plainOperation } from "../../sql/operation.ts";
import type { Operation, Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";

/** A blob as it is stored. Give it to `verifiedBlob` before believing it. */
export function* readBlob(hash: string): Tx<StoredBlob | undefined> {
  return yield* row<StoredBlob>(sql`
    SELECT hash, kind, encoding, size, content FROM holdfast_blob WHERE hash = ${hash}`);
}

/** Several at once, for reads that need many; absent ones are missing from the answer. */
export function* readBlobs(
  hashes: readonly string[],
): Tx<readonly StoredBlob[]> {
  return yield* rows<StoredBlob>(sql`
    SELECT hash, kind, encoding, size, content FROM holdfast_blob
    WHERE hash IN ${textsOf(hashes)} ORDER BY hash`);
}

/** Those of some hashes that no blob has. */
export function* missingBlobs(
  hashes: readonly string[],
): Tx<readonly string[]> {
  const found = yield* rows<{ readonly hash: string }>(sql`
    SELECT hash FROM holdfast_blob WHERE hash IN ${textsOf(hashes)}`);
  const there = new Set(found.map(({ hash }) => hash));
  return hashes.filter((hash) => !there.has(hash));
}

/** Those of some hashes that a blob has. */
export function* blobsThere(
  hashes: readonly string[],
): Tx<ReadonlySet<string>> {
  if (hashes.length === 0) return new Set();
  const missing = new Set(yield* missingBlobs(hashes));
  return new Set(hashes.filter((hash) => !missing.has(hash)));
}

/** How many bytes a blob has. */
export function* sizesOfBlobs(
  hashes: readonly string[],
): Tx<
  readonly { readonly kind: string; readonly size: number; stored: number }[]
> {
  return yield* rows<{ kind: string; size: number; stored: number }>(sql`
    SELECT kind, size, length(content) AS stored FROM holdfast_blob WHERE hash IN ${textsOf(hashes)}`);
}

export const findBlob: Operation<
  { readonly hash: string },
  StoredBlob | undefined
> = plainOperation("findBlob", {
  key: (input: { readonly hash: string }) => input.hash,
  *one({ hash }) {
    return yield* readBlob(hash);
  },
});
