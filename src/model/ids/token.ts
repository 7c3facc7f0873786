import type { Entropy } from "../entropy.ts";
import { hexOf } from "../values/hex.ts";

const tokenBytes = 16;

/** Returns an unguessable text. A caller that presents it must have received it. */
export function newToken(entropy: Entropy): string {
  return hexOf(entropy.bytes(tokenBytes));
}

/**
 * Compares two tokens in constant time, so that no caller learns a token piece by piece. Only a
 * different length shows, and all tokens have the same length.
 */
export function isSameToken(a: string, b: string): boolean {
  if (a.length !== b.length) return false;
  let difference = 0;
  for (let at = 0; at < a.length; at += 1) difference |= a.charCodeAt(at) ^ b.charCodeAt(at);
  return difference === 0;
}
