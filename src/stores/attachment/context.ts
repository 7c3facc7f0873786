import type { Clock } from "../../model/clock.ts";
import type { Entropy } from "../../model/entropy.ts";
import { hexOf } from "../../model/hex.ts";
import { checkedCount, checkedText, givenObject } from "../../model/shape.ts";
import type { Database } from "../../sql/database.ts";
import { checkedByteStore } from "./byte-store.ts";
import type { ByteStore } from "./byte-store.ts";
import { attachmentsInDatabase } from "./in-database.ts";
import type { AttachmentDescription } from "./manifest.ts";

export interface AttachmentEnvironment {
  readonly clock?: Clock;
  readonly entropy?: Entropy;
  /** Where bytes are kept: in the database unless told. */
  readonly bytes?: ByteStore;
}

export interface AttachmentSurroundings {
  readonly database: Database;
  readonly clock: Clock;
  readonly bytes: ByteStore;
  /** A name for a copy that nobody has had before. */
  readonly newName: (id: string) => string;
}

const tokenBytes = 12;

export function attachmentSurroundings(
  database: Database,
  given: AttachmentEnvironment,
): AttachmentSurroundings {
  const entropy = given.entropy ?? database.entropy;
  const { bytes = attachmentsInDatabase(database) } = given;
  return {
    database,
    clock: given.clock ?? database.clock,
    bytes: checkedByteStore(bytes),
    newName: (id) => `${id}.${hexOf(entropy.bytes(tokenBytes))}`,
  };
}

export function checkedDescription(
  given: AttachmentDescription,
): AttachmentDescription {
  const { mediaType, width, height, label } = givenObject("description", given);
  const pixels = { min: 0, max: Number.MAX_SAFE_INTEGER };
  return {
    mediaType: checkedText("A media type", mediaType, 255),
    ...(width !== undefined && { width: checkedCount("width", width, pixels) }),
    ...(height !== undefined && {
      height: checkedCount("height", height, pixels),
    }),
    ...(label !== undefined && { label: checkedText("A label", label, 1_024) }),
  };
}
