/**
 * The operations on bytes that stores need. They are passed in, because neither model/ nor stores/
 * can import them.
 */
export interface ByteTools {
  /** Returns SHA-256 in lower-case hexadecimal. */
  sha256Hex(bytes: Uint8Array): string;
  /** Returns the first 16 bytes of SHA-256 over a text, in base64url. */
  checksum(text: string): string;
  /** Returns HMAC with SHA-256, in lower-case hexadecimal. */
  hmacSha256Hex(key: Uint8Array, message: Uint8Array): string;
  /** Starts a hash for bytes that arrive in pieces. */
  sha256(): ByteHash;
  /** Compresses to the zlib format, at its default level. */
  deflate(bytes: Uint8Array): Uint8Array;
  /**
   * Decompresses. Returns undefined for bytes in another format, or for a result of more than
   * `sizeMax` bytes.
   */
  inflate(bytes: Uint8Array, sizeMax: number): Uint8Array | undefined;
}

interface ByteHash {
  add(bytes: Uint8Array): void;
  /** Returns the hash in lower-case hexadecimal. No bytes may be added afterwards. */
  hex(): string;
}
