import { parseBlobHash, verifiedBlob } from "../../model/blob.ts";
import { checkedText, optionsOf } from "../../model/shape.ts";
import type { Database, WaitOptions } from "../../sql/database.ts";
import { givenDatabase, waitNames } from "../given.ts";
import { checkedLimit, pageNames } from "../paging.ts";
import type { Page, PageOptions } from "../list.ts";
import { cursorInvalid, cursorPlace, cursorText } from "../cursor.ts";
import { blobSurroundings } from "./context.ts";
import type { BlobEnvironment, BlobPutOptions } from "./context.ts";
import { keepBlob, listKeeps, releaseBlob } from "./keep.ts";
import type { BlobKeep, BlobKeepRef, NewBlobKeep } from "./keep.ts";
import { storeBlob } from "./put.ts";
import { findBlob } from "./read.ts";

/** A blob whose bytes are those that were put: its hash was verified. */
export interface LoadedBlob {
  readonly hash: string;
  readonly kind: string;
  readonly size: number;
  readonly content: Uint8Array;
}

/** Bytes under their own hash. */
export interface Blobs {
  /**
   * Stores bytes; equal ones are stored once. Something must refer to them
   * within the grace period (1 hour by default), or `maintenance.collect()`
   * removes them. Only tables of Holdfast count as references: checkpoints
   * and frames of sessions, artifacts, and what `keep` keeps. A hash in a table
   * of the app does not: call `keep` for it.
   * @throws HoldfastError `VALUE_TOO_LARGE`, `NAME_INVALID` (its kind)
   */
  put(
    content: Uint8Array,
    options?: BlobPutOptions & WaitOptions,
  ): Promise<{ readonly hash: string; readonly size: number }>;
  /**
   * The bytes of a hash; undefined when there are none.
   * @throws HoldfastError `CORRUPT_ROW`, `ID_MALFORMED`
   */
  get(hash: string, options?: WaitOptions): Promise<LoadedBlob | undefined>;
  /**
   * Keeps a blob that only the app refers to, until `release` with the same
   * owner: a text of the app, such as the table and id of the row that has the
   * hash. May be repeated: false when that owner keeps it already.
   * @throws HoldfastError `BLOB_NOT_FOUND` when there is no such blob, `ID_MALFORMED`, `NAME_INVALID` (its owner)
   * @example
   * const { hash } = await store.put(pdf);
   * await store.keep(hash, "invoice/7");
   */
  keep(hash: string, owner: string, options?: WaitOptions): Promise<boolean>;
  /**
   * Ends what `keep` began; false when that owner does not keep it. The next
   * collection removes the blob if nothing else refers to it. Nothing else ends
   * a keep: release what a row kept in the transaction that deletes the row.
   * @throws HoldfastError `ID_MALFORMED`, `NAME_INVALID` (its owner)
   */
  release(hash: string, owner: string, options?: WaitOptions): Promise<boolean>;
  /**
   * What `keepBlob` and `releaseBlob` take, for a transaction of your own that
   * also writes the row of the app.
   * @throws HoldfastError `ID_MALFORMED`, `NAME_INVALID` (its owner)
   * @example
   * const keep = store.keeping(hash, "invoice/7");
   * await database.write("file invoice", function* () {
   *   yield* keepBlob(keep);
   *   yield* run(sql`INSERT INTO invoice (id, pdf) VALUES (7, ${hash})`);
   * });
   */
  keeping(hash: string, owner: string): NewBlobKeep;
  /**
   * A page of what is kept, by hash and then owner; of one blob or of one
   * owner when told.
   * @throws HoldfastError `CURSOR_INVALID`, `OPTION_INVALID`, `ID_MALFORMED`, `NAME_INVALID`
   */
  keeps(options?: BlobKeepsOptions): Promise<Page<BlobKeep>>;
}

export interface BlobKeepsOptions extends PageOptions {
  /** Only who keeps this blob. */
  readonly hash?: string;
  /** Only what this owner keeps. */
  readonly owner?: string;
}

/** Bytes as they are given: encrypt first what must not be readable. */
export function blobs(
  database: Database,
  environment?: BlobEnvironment,
): Blobs {
  const { prepare, clock } = blobSurroundings(
    givenDatabase(database),
    optionsOf(environment),
  );
  const keeping = (hash: string, owner: string): NewBlobKeep => ({
    ...checkedKeep(hash, owner),
    at: clock.now(),
  });
  return {
    async put(content, options) {
      const { kind, ...wait } = optionsOf(options);
      const blob = prepare(content, kind === undefined ? {} : { kind });
      await database.write(storeBlob, blob, wait);
      return { hash: blob.hash, size: blob.size };
    },
    async get(hash, options) {
      const stored = await database.read(
        findBlob,
        { hash: parseBlobHash(hash) },
        options,
      );
      if (stored === undefined) return undefined;
      const content = verifiedBlob(database.bytes, stored);
      return { hash, kind: stored.kind, size: stored.size, content };
    },
    keeping,
    keep: async (hash, owner, options) =>
      database.write(
        keepBlob,
        keeping(hash, owner),
        optionsOf(options, waitNames),
      ),
    release: async (hash, owner, options) =>
      database.write(
        releaseBlob,
        checkedKeep(hash, owner),
        optionsOf(options, waitNames),
      ),
    keeps: async (options) => keepsPage(database, options),
  };
}

async function keepsPage(
  database: Database,
  options: BlobKeepsOptions | undefined,
): Promise<Page<BlobKeep>> {
  const known = [...pageNames, "hash", "owner"] as const;
  const { after, limit, hash, owner, ...wait } = optionsOf(options, known);
  const filter = {
    hash: hash === undefined ? undefined : parseBlobHash(hash),
    owner: owner === undefined ? undefined : checkedOwner(owner),
  };
  const list = `blobKeeps:${JSON.stringify([filter.hash, filter.owner])}`;
  const input = {
    ...filter,
    after: after === undefined ? { hash: "", owner: "" } : placeOf(list, after),
    limit: checkedLimit(limit),
  };
  const { next, ...page } = await database.read(listKeeps, input, wait);
  return { ...page, next: next && cursorText(list, [next.hash, next.owner]) };
}

function placeOf(list: string, cursor: string): BlobKeepRef {
  const [hash, owner] = cursorPlace(list, cursor);
  if (typeof hash !== "string" || typeof owner !== "string")
    throw cursorInvalid("malformed");
  return { hash, owner };
}

function checkedKeep(hash: string, owner: string): BlobKeepRef {
  return { hash: parseBlobHash(hash), owner: checkedOwner(owner) };
}

function checkedOwner(owner: string): string {
  return checkedText("The owner of a blob", owner, 512);
}
