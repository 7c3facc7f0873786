import type { ByteTools } from "./byte-tools.ts";
import { bytesOfHex } from "./hex.ts";

const blockBytes = 64;

/**
 * HMAC with SHA-256 (RFC 2104), in lower-case hexadecimal. Written out because
 * model/ is given a hash and nothing else; keys are at most a block long.
 */
export function hmacSha256Hex(
  { sha256Hex }: Pick<ByteTools, "sha256Hex">,
  key: Uint8Array,
  message: Uint8Array,
): string {
  const padded = (mask: number): Uint8Array => {
    const block = new Uint8Array(blockBytes).fill(mask);
    key.forEach((byte, at) => (block[at] = byte ^ mask));
    return block;
  };
  const inner = sha256Hex(joined(padded(0x36), message));
  return sha256Hex(joined(padded(0x5c), bytesOfHex(inner)));
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(first.length + second.length);
  bytes.set(first);
  bytes.set(second, first.length);
  return bytes;
}
