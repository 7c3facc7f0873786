import type { ByteTools } from "./values/byte-tools.ts";
import type { Duration } from "./time/durations.ts";
import { corruptRow } from "./corrupt-row.ts";
import { HoldfastError } from "./errors.ts";
import { excerpt } from "./values/excerpt.ts";
import { spokenKind } from "./values/spoken-kind.ts";
import { malformedId } from "./ids/malformed-id.ts";

/** The kind of a blob's content. Names are open: an app adds its own. */
export interface BlobKind {
  readonly name: string;
  /** False for content that is already compressed or not worth compressing. */
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

/** The preference between short writes and few bytes on disk. */
export type BlobProfile = "lowLatency" | "balanced" | "compact";

/** The size in bytes from which compressible content is compressed. */
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
    `Unknown profile: ${typeof profile === "string" ? excerpt(profile) : spokenKind(profile)}. The profiles are: lowLatency, balanced, compact.`,
    { option: "profile" },
  );
}

type BlobEncoding = "identity" | "deflate";

/** The largest size of any blob. It keeps a damaged size from making a read take all memory. */
export const blobSizeMax = 268_435_456;

/** The largest blob that a store accepts by default. */
export const blobBytesMaxDefault = 16_777_216;

/** The default time for which an unreferenced blob is kept. */
export const blobGraceDefault: Duration = "1h";

/** @throws HoldfastError `OPTION_INVALID`, `VALUE_TOO_LARGE` */
export function checkedBytes(content: Uint8Array, bytesMax: number): Uint8Array {
  if (!(content instanceof Uint8Array))
    throw new HoldfastError(
      "OPTION_INVALID",
      `Expected bytes (a Uint8Array); got ${spokenKind(content)}. Convert text with new TextEncoder().encode(text).`,
    );
  if (content.length > bytesMax)
    throw new HoldfastError(
      "VALUE_TOO_LARGE",
      `${content.length} bytes exceed the limit of ${bytesMax}. Raise bytesMax, or store them elsewhere and keep a reference.`,
      { size: content.length, limit: bytesMax },
    );
  return content;
}

/** A blob ready to be stored. Its hash and size are taken before compression. */
export interface NewBlob {
  readonly hash: string;
  readonly kind: string;
  readonly encoding: BlobEncoding;
  readonly size: number;
  readonly content: Uint8Array;
  readonly at: number;
}

/** A blob as it was read, before it is verified. */
export interface StoredBlob {
  readonly hash: string;
  readonly kind: string;
  readonly encoding: string;
  readonly size: number;
  readonly content: Uint8Array;
}

type BlobTools = Pick<ByteTools, "sha256Hex" | "deflate" | "inflate">;

/**
 * Hashes the content and compresses it if that makes it smaller. The bytes are copied, so a later
 * change by the caller does not change the stored content.
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
 * Returns the verified bytes of a stored blob.
 * @throws HoldfastError `CORRUPT_ROW` unless they are exactly the bytes that were stored.
 */
export function verifiedBlob(tools: BlobTools, stored: StoredBlob): Uint8Array {
  const { hash, size, content } = stored;
  if (!Number.isSafeInteger(size) || size < 0 || size > blobSizeMax)
    throw corruptBlob(hash, "has an invalid size");
  const logical = decoded(tools, stored);
  if (logical === undefined)
    throw corruptBlob(hash, "has content that cannot be decompressed to its size");
  if (logical.length !== size)
    throw corruptBlob(hash, `has ${logical.length} bytes instead of ${size}`);
  if (tools.sha256Hex(logical) !== hash)
    throw corruptBlob(hash, "has content that does not match its hash");
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

/** Checks that a text has the form of a blob's hash. */
export function isBlobHash(text: string): boolean {
  return /^[0-9a-f]{64}$/.test(text);
}

/** @throws HoldfastError `ID_MALFORMED` */
export function parseBlobHash(text: unknown): string {
  if (typeof text === "string" && isBlobHash(text)) return text;
  throw malformedId("a hash of 64 characters 0-9 and a-f", text, "alphabet");
}
