import { parseBlobHash, verifiedBlob, type StoredBlob } from "../../model/blob.ts";
import type { WaitOptions } from "../../sql/database.ts";
import { storeOperation, type Tx } from "../../sql/operation.ts";
import { onlyWait, type Call } from "../method.ts";
import { readBlob } from "./blob-row.ts";
import type { BlobContext } from "./context.ts";

/** A blob whose bytes match its hash. */
export interface LoadedBlob {
  readonly hash: string;
  readonly kind: string;
  readonly size: number;
  readonly content: Uint8Array;
}

interface FindBlob {
  readonly hash: string;
}

/** @throws HoldfastError `ID_MALFORMED`, `OPTION_INVALID` */
export function givenHash(_: BlobContext, hash: string, wait?: WaitOptions): Call<FindBlob> {
  return { input: { hash: parseBlobHash(hash) }, wait: onlyWait(wait) };
}

/** The bytes of a hash, not yet verified. */
export const findBlob = storeOperation("findBlob", {
  key: (input) => input.hash,
  *one(_: BlobContext, { hash }: FindBlob): Tx<StoredBlob | undefined> {
    return yield* readBlob(hash);
  },
});

/** @throws HoldfastError `CORRUPT_ROW` */
export function shownBlob(
  { database }: BlobContext,
  stored: StoredBlob | undefined,
): LoadedBlob | undefined {
  if (stored === undefined) return undefined;
  const { hash, kind, size } = stored;
  return { hash, kind, size, content: verifiedBlob(database.bytes, stored) };
}
