import type { ByteTools } from "./byte-tools.ts";
import { HoldfastError } from "./errors.ts";
import { malformedId } from "./malformed-id.ts";

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

export type BlobEncoding = "identity" | "deflate";

/** No blob is larger, so a damaged size cannot make a read take all memory. */
export const blobSizeMax = 268_435_456;

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
    if (content.length < logical.length)
      return { ...named, encoding: "deflate", content };
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
    throw corruptBlob(hash, "its size is no size of a blob");
  const logical = decoded(tools, stored);
  if (logical === undefined)
    throw corruptBlob(hash, "its content cannot be decompressed to its size");
  if (logical.length !== size)
    throw corruptBlob(
      hash,
      `${logical.length} bytes are there instead of ${size}`,
    );
  if (tools.sha256Hex(logical) !== hash)
    throw corruptBlob(hash, "its content has another hash");
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
      throw corruptBlob(hash, "its encoding is unknown");
  }
}

function corruptBlob(hash: string, why: string): HoldfastError {
  return corruptRow("holdfast_blob", hash, why);
}

/** The error for a row that no operation of ours could have left like this. */
export function corruptRow(
  table: string,
  key: string,
  why: string,
): HoldfastError {
  return new HoldfastError(
    "CORRUPT_ROW",
    `Row "${key}" of ${table} is damaged: ${why}. Restore it from a backup; nothing was read from it.`,
    { table, key },
  );
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
