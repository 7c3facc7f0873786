/** What stores need done with bytes; an argument because neither model/ nor stores/ has it. */
export interface ByteTools {
  /** SHA-256 in lower-case hexadecimal. */
  sha256Hex(bytes: Uint8Array): string;
  /** HMAC with SHA-256, in lower-case hexadecimal. */
  hmacSha256Hex(key: Uint8Array, message: Uint8Array): string;
  /** The hash for bytes that come piece by piece. */
  sha256(): ByteHash;
  /** The zlib format, at its usual level. */
  deflate(bytes: Uint8Array): Uint8Array;
  /** Undefined when the bytes are no such thing, or would become more than `sizeMax`. */
  inflate(bytes: Uint8Array, sizeMax: number): Uint8Array | undefined;
}

interface ByteHash {
  add(bytes: Uint8Array): void;
  /** In lower-case hexadecimal; nothing is added afterwards. */
  hex(): string;
}
