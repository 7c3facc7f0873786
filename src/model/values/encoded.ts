import type { Branded } from "../ids/brand.ts";

/** The text that a value codec wrote for a payload column. Only the codec can read it. */
export type Encoded = Branded<"Encoded">;

/** A value as its column holds it, with a checksum that reveals a change on the disk. */
export interface CheckedText {
  readonly text: Encoded;
  /** The first 16 bytes of SHA-256 in base64url. */
  readonly checksum: string;
}

/** A value as its column holds it, with the hash of the value. */
export interface HashedText {
  readonly text: Encoded;
  readonly hash: string;
}
