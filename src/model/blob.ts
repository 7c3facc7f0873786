import type { ByteTools } from "./values/byte-tools.ts";
import type { Duration } from "./time/durations.ts";
import { corruptRow } from "./corrupt-row.ts";
import { HoldfastError } from "./errors.ts";
import { excerpt } from "./values/excerpt.ts";
import { malformedId } from "./ids/malformed-id.ts";

/** What a blob holds. Names are open: a host adds its own. */
export interface BlobKind {
  readonly name: string;
  /** False for what is compressed already, or not worth the time. */
  readonly isCompressible: boolean;
}

/** The kinds that Holdfast itself stores. */
export const blobKinds: {
  readonly generic: BlobKind;
  readonly checkpointComponent: BlobKind;
  readonly executionState: BlobKind;
  readonly module: BlobKind;
  readonly processEnvironment: BlobKind;
} = {
  generic: { name: "generic", isCompressible: false },
  checkpointComponent: { name: "checkpoint-component", isCompressible: true },
  executionState: { name: "execution-state", isCompressible: true },
  module: { name: "module", isCompressible: true },
  processEnvironment: { name: "process-environment", isCompressible: true },
};

/** What matters more: the time of a write, or the bytes on disk. */
export type BlobProfile = "lowLatency" | "balanced" | "compact";

/** From how many bytes on compressible content is compressed. */
const compressFrom: Readonly<Record<BlobProfile, number>> = {
  lowLatency: Number.POSITIVE_INFINITY,
  balanced: 4_096,
  compact: 1_024,
};

export function isBlobProfile(text: unknown): text is BlobProfile {
  return typeof text === "string" && Object.hasOwn(compressFrom, text);
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

type BlobEncoding = "identity" | "deflate";

/** No blob is larger, so a damaged size cannot make a read take all memory. */
export const blobSizeMax = 268_435_456;

/** The largest one that a store takes by default. */
export const blobBytesMaxDefault = 16_777_216;

/** How long a blob that nothing refers to yet is left alone by default. */
export const blobGraceDefault: Duration = "1h";

/** @throws HoldfastError `OPTION_INVALID`, `VALUE_TOO_LARGE` */
export function checkedBytes(content: Uint8Array, bytesMax: number): Uint8Array {
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

/** A blob ready to be stored: hash and size are those of the bytes before compression. */
export interface NewBlob {
  readonly hash: string;
  readonly kind: string;
  readonly encoding: BlobEncoding;
  readonly size: number;
  readonly content: Uint8Array;
  readonly at: number;
}

/** A blob as it was found; nothing of it is trusted yet. */
export interface StoredBlob {
  readonly hash: string;
  readonly kind: string;
  readonly encoding: string;
  readonly size: number;
  readonly content: Uint8Array;
}

type BlobTools = Pick<ByteTools, "sha256Hex" | "deflate" | "inflate">;

/**
 * Hashes and, where it pays, compresses. The bytes are copied, so changing
 * them afterwards does not change what is stored under their hash.
 */
export function prepareBlob(
  tools: BlobTools,
  blob: {
    readonly content: Uint8Array;
    readonly kind: BlobKind;
    readonly profile: BlobProfile;
    readonly at: number;
  },
): NewBlob {
  const { kind, profile, at } = blob;
  const logical = new Uint8Array(blob.content);
  const named = {
    hash: tools.sha256Hex(logical),
    kind: kind.name,
    size: logical.length,
    at,
  };
  if (kind.isCompressible && logical.length >= compressFrom[profile]) {
    const content = tools.deflate(logical);
    if (content.length < logical.length) return { ...named, encoding: "deflate", content };
  }
  return { ...named, encoding: "identity", content: logical };
}

/**
 * The bytes of a stored blob.
 * @throws HoldfastError `CORRUPT_ROW` unless they are exactly those that were put.
 */
export function verifiedBlob(tools: BlobTools, stored: StoredBlob): Uint8Array {
  const { hash, size, content } = stored;
  if (!Number.isSafeInteger(size) || size < 0 || size > blobSizeMax)
    throw corruptBlob(hash, "has a size that no blob has");
  const logical = decoded(tools, stored);
  if (logical === undefined)
    throw corruptBlob(hash, "has content that cannot be decompressed to its size");
  if (logical.length !== size)
    throw corruptBlob(hash, `has ${logical.length} bytes instead of ${size}`);
  if (tools.sha256Hex(logical) !== hash) throw corruptBlob(hash, "has content of another hash");
  return logical === content ? new Uint8Array(content) : logical;
}

function decoded(
  tools: BlobTools,
  { hash, encoding, size, content }: StoredBlob,
): Uint8Array | undefined {
  switch (encoding) {
    case "identity":
      return content;
    case "deflate":
      return tools.inflate(content, size);
    default:
      throw corruptBlob(hash, "has an unknown encoding");
  }
}

function corruptBlob(hash: string, why: string): HoldfastError {
  return corruptRow("holdfast_blob", hash, why);
}

/** Whether a text could be the hash of a blob. */
export function isBlobHash(text: string): boolean {
  return /^[0-9a-f]{64}$/.test(text);
}

/** @throws HoldfastError `ID_MALFORMED` */
export function parseBlobHash(text: unknown): string {
  if (typeof text === "string" && isBlobHash(text)) return text;
  throw malformedId("a hash of 64 characters 0-9 and a-f", text, "alphabet");
}
