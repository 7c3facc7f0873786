import type { Clock } from "../../model/clock.ts";
import {
  blobKinds,
  blobSizeMax,
  isBlobProfile,
  prepareBlob,
} from "../../model/blob.ts";
import type { BlobKind, BlobProfile, NewBlob } from "../../model/blob.ts";
import type { Duration } from "../../model/durations.ts";
import { HoldfastError } from "../../model/errors.ts";
import { excerpt } from "../../model/excerpt.ts";
import {
  checkedCount,
  checkedText,
  givenFlag,
  givenObject,
} from "../../model/shape.ts";
import type { Database } from "../../sql/database.ts";

/** What stores of bytes take from their surroundings. */
export interface BlobEnvironment {
  readonly clock?: Clock;
  /**
   * When to compress: never (`lowLatency`), from 4,096 bytes on (`balanced`,
   * unless told) or from 1,024 on (`compact`). In memory: never, unless told.
   */
  readonly profile?: BlobProfile;
  /** Larger blobs are refused: 16 MiB unless told. */
  readonly bytesMax?: number;
}

/** How long a blob that nothing refers to yet is left alone. */
export const graceUnlessTold: Duration = "1h";

export interface BlobPutOptions {
  /** What the bytes are: `generic` unless told, which is not compressed. */
  readonly kind?: BlobKind;
}

/** Makes the bytes that a caller gave ready to be stored. */
type Prepare = (content: Uint8Array, options?: BlobPutOptions) => NewBlob;

export interface BlobSurroundings {
  readonly database: Database;
  readonly clock: Clock;
  readonly prepare: Prepare;
}

export function blobSurroundings(
  database: Database,
  given: BlobEnvironment,
): BlobSurroundings {
  const clock = given.clock ?? database.clock;
  const bytesMax = checkedCount("bytesMax", given.bytesMax ?? 16_777_216, {
    min: 1,
    max: blobSizeMax,
  });
  const profile = checkedProfile(
    given.profile ??
      (database.durability === "memory" ? "lowLatency" : "balanced"),
  );
  return {
    database,
    clock,
    prepare: (content, { kind = blobKinds.generic } = {}) =>
      prepareBlob(database.bytes, {
        content: checkedBytes(content, bytesMax),
        kind: checkedKind(kind),
        profile,
        at: clock.now(),
      }),
  };
}

function checkedKind(given: BlobKind): BlobKind {
  const { name, isCompressible } = givenObject("kind", given);
  return {
    name: checkedText("The kind of a blob", name, 64),
    isCompressible: givenFlag("kind.isCompressible", isCompressible) ?? false,
  };
}

/** @throws HoldfastError `OPTION_INVALID`, `VALUE_TOO_LARGE` */
export function checkedBytes(
  content: Uint8Array,
  bytesMax: number,
): Uint8Array {
  if (!(content instanceof Uint8Array))
    throw new HoldfastError(
      "OPTION_INVALID",
      `Expected bytes, a Uint8Array; got ${typeof content}. Text becomes bytes with new TextEncoder().encode(text).`,
    );
  if (content.length > bytesMax)
    throw new HoldfastError(
      "VALUE_TOO_LARGE",
      `${content.length} bytes are more than the ${bytesMax} that may be stored here. Raise bytesMax, or store them elsewhere and keep a reference.`,
      { size: content.length, limit: bytesMax },
    );
  return content;
}

/** @throws HoldfastError `OPTION_INVALID` */
export function checkedProfile(profile: BlobProfile): BlobProfile {
  if (isBlobProfile(profile)) return profile;
  throw new HoldfastError(
    "OPTION_INVALID",
    `There is no profile ${typeof profile === "string" ? excerpt(profile) : "of that kind"}. There are: lowLatency, balanced, compact.`,
    { option: "profile" },
  );
}
