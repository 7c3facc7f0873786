import type { Entropy } from "../entropy.ts";
import { hexOf } from "../values/hex.ts";

const tokenBytes = 16;

/** A text that nobody can guess: who shows it was given it. */
export function newToken(entropy: Entropy): string {
  return hexOf(entropy.bytes(tokenBytes));
}

/**
 * Whether two tokens are the same. It takes the same time wherever they
 * differ, so that nobody learns a token piece by piece; only a different
 * length shows, and tokens have one length.
 */
export function isSameToken(a: string, b: string): boolean {
  if (a.length !== b.length) return false;
  let difference = 0;
  for (let at = 0; at < a.length; at += 1) difference |= a.charCodeAt(at) ^ b.charCodeAt(at);
  return difference === 0;
}
