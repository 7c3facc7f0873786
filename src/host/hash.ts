import { hash } from "node:crypto";

/** SHA-256 in lower-case hexadecimal; text is hashed as UTF-8. */
export function sha256Hex(data: string | Uint8Array): string {
  return hash("sha256", data, "hex");
}

const checksumCharacters = Math.ceil((16 * 8) / 6);

/** The first 16 bytes of SHA-256 over a text as UTF-8, in base64url. */
export function checksum(text: string): string {
  return hash("sha256", text, "base64url").slice(0, checksumCharacters);
}
