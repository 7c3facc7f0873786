import type { Clock } from "../../model/time/clock.ts";
import type { Entropy } from "../../model/entropy.ts";
import { hexOf } from "../../model/values/hex.ts";
import { checkedCount, checkedText, draftOf, optionsOf } from "../../model/shape.ts";
import type { Database } from "../../sql/database.ts";
import { storeContext, type StoreContext } from "../context.ts";
import type { AttachmentDescription } from "./attachment-row.ts";
import { checkedByteStore, type ByteStore } from "./byte-store.ts";
import { attachmentsInDatabase } from "./in-database.ts";

/**
 * Options of attachments. Other `StoreOptions` do not apply, since bytes are stored exactly as
 * given.
 */
export interface AttachmentOptions {
  readonly clock?: Clock;
  readonly entropy?: Entropy;
  /** The store of the bytes; defaults to the database. */
  readonly bytes?: ByteStore;
}

export interface AttachmentContext extends StoreContext {
  readonly bytes: ByteStore;
}

export function attachmentContext(
  database: Database,
  options: AttachmentOptions | undefined,
): AttachmentContext {
  const { bytes, ...given } = optionsOf(options, ["clock", "entropy", "bytes"]);
  return {
    ...storeContext(database, given),
    bytes: checkedByteStore(
      bytes === undefined ? attachmentsInDatabase(database) : bytes,
      database.durability,
    ),
  };
}

const tokenBytes = 12;

/** A unique name for a new copy. */
export function newName({ entropy }: AttachmentContext, id: string): string {
  return `${id}.${hexOf(entropy.bytes(tokenBytes))}`;
}

/** @throws HoldfastError `OPTION_INVALID`, `NAME_INVALID` */
export function checkedDescription(given: AttachmentDescription): AttachmentDescription {
  const { mediaType, width, height, label } = draftOf("description", given, [
    "mediaType",
    "width",
    "height",
    "label",
  ]);
  return {
    mediaType: checkedText("A media type", mediaType, 255),
    ...(width !== undefined && { width: checkedCount("width", width) }),
    ...(height !== undefined && {
      height: checkedCount("height", height),
    }),
    ...(label !== undefined && { label: checkedText("A label", label, 1_024) }),
  };
}
