import { randomFillSync } from "node:crypto";
import type { Entropy } from "../model/entropy.ts";

/**
 * A pool of random bytes, refilled at once. Asking the system for 16 bytes takes 4 µs; taking them
 * from the pool takes 0.3 µs.
 */
const pool = new Uint8Array(4_096);
const fromPoolMax = 64;
let used = pool.length;

/** The operating system's cryptographic randomness, also fit for tokens. */
export const systemEntropy: Entropy = {
  bytes(length) {
    // Not randomBytes: small Buffers may share memory with each other.
    if (length > fromPoolMax) return randomFillSync(new Uint8Array(length));
    if (used + length > pool.length) {
      randomFillSync(pool);
      used = 0;
    }
    const taken = pool.slice(used, used + length);
    // Bytes that a caller has received are erased from the pool.
    pool.fill(0, used, used + length);
    used += length;
    return taken;
  },
};
