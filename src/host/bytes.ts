import { createHash, createHmac } from "node:crypto";
import { deflateSync, inflateSync } from "node:zlib";
import type { ByteTools } from "../model/values/byte-tools.ts";
import { checksum, sha256Hex } from "./hash.ts";

export const byteTools: ByteTools = {
  sha256Hex,
  checksum,
  hmacSha256Hex: (key, message) => createHmac("sha256", key).update(message).digest("hex"),
  sha256() {
    const hash = createHash("sha256");
    return {
      add: (bytes) => void hash.update(bytes),
      hex: () => hash.digest("hex"),
    };
  },
  deflate: (bytes) => plain(deflateSync(bytes)),
  inflate(bytes, sizeMax) {
    try {
      // Node rejects a limit of 0. The length check below catches one byte too many.
      const inflated = inflateSync(bytes, {
        maxOutputLength: Math.max(1, sizeMax),
      });
      return inflated.length <= sizeMax ? plain(inflated) : undefined;
    } catch {
      return undefined;
    }
  },
};

/** Strips the methods of Buffer, whose `slice` shares memory. */
function plain(buffer: Buffer): Uint8Array {
  return new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength);
}
