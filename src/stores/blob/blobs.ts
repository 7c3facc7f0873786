import type { Database, WaitOptions } from "../../sql/database.ts";
import { lists, type Page } from "../list.ts";
import { reads, writes, type Method } from "../method.ts";
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

/** Bytes under their own hash. */
export interface Blobs {
  /**
   * Stores bytes; equal ones are stored once. Something must refer to them
   * within the grace period (1 hour by default), or `maintenance.collect()`
   * removes them. Only tables of Holdfast count as references: checkpoints
   * and frames of sessions, artifacts, and what `keep` keeps. A hash in a table
   * of the app does not: call `keep` for it.
   * @throws HoldfastError `VALUE_TOO_LARGE`, `NAME_INVALID` (its kind), `OPTION_INVALID`
   */
  readonly put: Method<
    [content: Uint8Array, options?: BlobPutOptions],
    { readonly hash: string; readonly size: number }
  >;
  /**
   * The bytes of a hash; undefined when there are none.
   * @throws HoldfastError `CORRUPT_ROW`, `ID_MALFORMED`
   */
  readonly get: Method<[hash: string, wait?: WaitOptions], LoadedBlob | undefined>;
  /**
   * Keeps a blob that only the app refers to, until `release` with the same
   * owner: a text of the app, such as the table and id of the row that has the
   * hash. May be repeated: false when that owner keeps it already.
   * @throws HoldfastError `BLOB_NOT_FOUND` when there is no such blob, `ID_MALFORMED`, `NAME_INVALID` (its owner)
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
   * Ends what `keep` began; false when that owner does not keep it. The next
   * collection removes the blob if nothing else refers to it. Nothing else ends
   * a keep: release what a row kept in the transaction that deletes the row.
   * @throws HoldfastError `ID_MALFORMED`, `NAME_INVALID` (its owner)
   */
  readonly release: Method<[hash: string, owner: string, wait?: WaitOptions], boolean>;
  /**
   * What is kept, by hash and then owner; of one blob or of one owner if the
   * options say so.
   * @throws HoldfastError `CURSOR_INVALID`, `OPTION_INVALID`, `ID_MALFORMED`, `NAME_INVALID`
   * @example
   * const { items } = await store.keeps({ owner: "invoice/7" });
   */
  readonly keeps: Method<[options?: BlobKeepsOptions], Page<BlobKeep>>;
}

/**
 * Bytes as they are given: encrypt first what must not be readable.
 *
 * @throws HoldfastError `OPTION_INVALID`
 */
export function blobs(database: Database, options?: BlobOptions): Blobs {
  const context = blobContext(database, options);
  return {
    put: writes(context, storeBlob, givenPut, shownPut),
    get: reads(context, findBlob, givenHash, shownBlob),
    keep: writes(context, keepBlob, givenKeep),
    release: writes(context, releaseBlob, givenRelease),
    keeps: lists(context, keepList),
  };
}
