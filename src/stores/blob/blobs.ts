import type { Database, WaitOptions } from "../../sql/database.ts";
import { lists, type Page } from "../list.ts";
import { nothingToLock, readsLocking, writes, type Method } from "../method.ts";
import { blobContext, type BlobOptions, type BlobPutOptions } from "./context.ts";
import {
  givenKeep,
  givenRelease,
  keepBlob,
  keepList,
  releaseBlob,
  type BlobKeep,
  type BlobKeepsOptions,
} from "./keep.ts";
import { givenPut, shownPut, storeBlob } from "./put.ts";
import { findBlob, givenHash, shownBlob, type LoadedBlob } from "./read.ts";

/** Bytes, stored under their own hash. */
export interface Blobs {
  /**
   * Stores bytes; equal bytes are stored once. A reference must exist within the grace period (1
   * hour by default), or `maintenance.collect()` removes them. Only tables of Holdfast count as
   * references: checkpoints and frames of sessions, artifacts, and entries of `keep`. A hash in a
   * table of the app does not: call `keep` for it.
   * @throws HoldfastError `VALUE_TOO_LARGE`, `NAME_INVALID` (its kind), `OPTION_INVALID`
   */
  readonly put: Method<
    [content: Uint8Array, options?: BlobPutOptions],
    { readonly hash: string; readonly size: number }
  >;
  /**
   * Returns the bytes of a hash; undefined when it is unknown.
   * @throws HoldfastError `CORRUPT_ROW`, `ID_MALFORMED`
   */
  readonly get: Method<[hash: string, wait?: WaitOptions], LoadedBlob | undefined>;
  /**
   * Keeps a blob that only the app refers to, until `release` with the same owner. The owner is a
   * text of the app, such as the table and id of the row that has the hash. May be repeated; false
   * when that owner keeps it already.
   * @throws HoldfastError `BLOB_NOT_FOUND` for an unknown blob, `ID_MALFORMED`, `NAME_INVALID` (its owner)
   * @example
   * const { hash } = await store.put(pdf);
   * const keep = store.keep.prepare(hash, "invoice/7");
   * await database.write("file invoice", function* () {
   *   yield* keep();
   *   yield* run(sql`INSERT INTO invoice (id, pdf) VALUES (7, ${hash})`);
   * });
   */
  readonly keep: Method<[hash: string, owner: string, wait?: WaitOptions], boolean>;
  /**
   * Ends a keep; false when that owner does not keep the blob. The next collection removes the blob
   * if nothing else refers to it. Nothing else ends a keep: release a row's blobs in the
   * transaction that deletes the row.
   * @throws HoldfastError `ID_MALFORMED`, `NAME_INVALID` (its owner)
   */
  readonly release: Method<[hash: string, owner: string, wait?: WaitOptions], boolean>;
  /**
   * Entries of `keep`, by hash and then owner. The options choose one blob or one owner.
   * @throws HoldfastError `CURSOR_INVALID`, `OPTION_INVALID`, `ID_MALFORMED`, `NAME_INVALID`
   * @example
   * const { items } = await store.keeps({ owner: "invoice/7" });
   */
  readonly keeps: Method<[options?: BlobKeepsOptions], Page<BlobKeep>>;
}

/**
 * Blobs are stored exactly as given: encrypt confidential bytes first.
 *
 * @throws HoldfastError `OPTION_INVALID`
 */
export function blobs(database: Database, options?: BlobOptions): Blobs {
  const context = blobContext(database, options);
  return {
    put: writes(context, storeBlob, givenPut, shownPut),
    // The content of a hash never changes.
    get: readsLocking(nothingToLock)(context, findBlob, givenHash, shownBlob),
    keep: writes(context, keepBlob, givenKeep),
    release: writes(context, releaseBlob, givenRelease),
    keeps: lists(context, keepList),
  };
}
