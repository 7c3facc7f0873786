import type { NewBlob } from "../../model/blob.ts";
import { run, storeOperation, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { optionsAndWait, type Call } from "../method.ts";
import { putBlobs } from "./blob-row.ts";
import { newBlob, type BlobContext, type BlobPutOptions } from "./context.ts";

/** The key of stored bytes. */
export interface PutBlob {
  readonly hash: string;
  /** The size before compression. */
  readonly size: number;
}

/** @throws HoldfastError `OPTION_INVALID`, `VALUE_TOO_LARGE`, `NAME_INVALID` (its kind) */
export function givenPut(
  context: BlobContext,
  content: Uint8Array,
  given?: BlobPutOptions,
): Call<NewBlob> {
  const { options, wait } = optionsAndWait(given, ["kind"]);
  return { input: newBlob(context, content, options.kind), wait };
}

/**
 * A standalone blob, as callers put it before anything refers to it. Its grace period starts again.
 * If another clock has recorded a later put, that time stays.
 */
export const storeBlob = storeOperation("storeBlob", {
  snapshotSafe: true,
  key: (input) => input.hash,
  *one(_: BlobContext, input: NewBlob): Tx<void> {
    yield* putBlobs([input]);
    yield* run(sql`
      INSERT INTO holdfast_blob_put (hash, at) VALUES (${input.hash}, ${input.at})
      ON CONFLICT (hash) DO UPDATE SET at = excluded.at WHERE holdfast_blob_put.at < excluded.at`);
  },
});

export function shownPut(_: BlobContext, __: void, { hash, size }: NewBlob): PutBlob {
  return { hash, size };
}
