import type { Database } from "../../sql/database.ts";

/** What is hashed without a pause: about two milliseconds. */
export const bytesPerStep = 1_048_576;

/** The SHA-256 of bytes, however many, without holding up everybody else meanwhile. */
export async function hashed(
  database: Pick<Database, "bytes" | "pause">,
  bytes: Uint8Array,
): Promise<string> {
  const { bytes: tools } = database;
  if (bytes.length <= bytesPerStep) return tools.sha256Hex(bytes);
  const hash = tools.sha256();
  for (let at = 0; at < bytes.length; at += bytesPerStep) {
    hash.add(bytes.subarray(at, at + bytesPerStep));
    await database.pause();
  }
  return hash.hex();
}
