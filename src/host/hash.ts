import { hash } from "node:crypto";

/** SHA-256 in lower-case hexadecimal; text is hashed as UTF-8. */
export function sha256Hex(data: string | Uint8Array): string {
  return hash("sha256", data, "hex");
}
