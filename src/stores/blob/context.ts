import {
  blobBytesMaxDefault,
  blobKinds,
  blobSizeMax,
  checkedBytes,
  checkedProfile,
  prepareBlob,
  type BlobKind,
  type BlobProfile,
  type NewBlob,
} from "../../model/blob.ts";
import type { Clock } from "../../model/time/clock.ts";
import { checkedCount, checkedText, draftOf, givenFlag, optionsOf } from "../../model/shape.ts";
import type { Database, WaitOptions } from "../../sql/database.ts";
import { storeContext, type StoreContext } from "../context.ts";

/** Options of blobs. Other `StoreOptions` do not apply, since bytes are stored exactly as given. */
export interface BlobOptions {
  readonly clock?: Clock;
  /**
   * The compression: never (`lowLatency`), from 4,096 bytes on (`balanced`) or from 1,024 on
   * (`compact`). Defaults to `balanced`, in memory to `lowLatency`.
   */
  readonly profile?: BlobProfile;
  /** The size limit in bytes; larger blobs are refused. Defaults to 16 MiB. */
  readonly bytesMax?: number;
}

export interface BlobPutOptions extends WaitOptions {
  /** The kind of the bytes; defaults to `generic`, which is not compressed. */
  readonly kind?: BlobKind;
}

export interface BlobContext extends StoreContext {
  readonly profile: BlobProfile;
  readonly bytesMax: number;
}

export function blobContext(database: Database, options: BlobOptions | undefined): BlobContext {
  const given = optionsOf(options, ["clock", "profile", "bytesMax"]);
  const { clock, bytesMax = blobBytesMaxDefault } = given;
  const context = storeContext(database, clock === undefined ? {} : { clock });
  const isInMemory = database.durability === "memory";
  const { profile = isInMemory ? "lowLatency" : "balanced" } = given;
  return {
    ...context,
    profile: checkedProfile(profile),
    bytesMax: checkedCount("bytesMax", bytesMax, {
      min: 1,
      max: blobSizeMax,
    }),
  };
}

/**
 * Makes a blob from a caller's bytes: hashed, compressed where it pays, and stamped with the
 * current time.
 *
 * @throws HoldfastError `OPTION_INVALID`, `VALUE_TOO_LARGE`, `NAME_INVALID`
 */
export function newBlob(
  { database, clock, profile, bytesMax }: BlobContext,
  content: Uint8Array,
  kind: BlobKind = blobKinds.generic,
): NewBlob {
  return prepareBlob(database.bytes, {
    content: checkedBytes(content, bytesMax),
    kind: checkedKind(kind),
    profile,
    at: clock.now(),
  });
}

function checkedKind(given: BlobKind): BlobKind {
  const { name, isCompressible } = draftOf("kind", given, ["name", "isCompressible"]);
  return {
    name: checkedText("The kind of a blob", name, 64),
    isCompressible: givenFlag("kind.isCompressible", isCompressible) ?? false,
  };
}
