import { parseBlobHash, verifiedBlob } from "../../model/blob.ts";
import type { Database, WaitOptions } from "../database.ts";
import { givenDatabase, optionsOf } from "../given.ts";
import { blobSurroundings } from "./environment.ts";
import type { BlobEnvironment, BlobPutOptions } from "./environment.ts";
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
   * Stores bytes; equal ones are stored once. Something should refer to them
   * soon: what nothing refers to is collected after the grace period.
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
}

/** Bytes as they are given: encrypt first what must not be readable. */
export function blobs(
  database: Database,
  environment?: BlobEnvironment,
): Blobs {
  const { prepare } = blobSurroundings(
    givenDatabase(database),
    optionsOf(environment),
  );
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
  };
}
