import { randomFillSync } from "node:crypto";
import type { Entropy } from "../model/entropy.ts";

/** The operating system's cryptographic randomness: also fit for tokens. */
export const systemEntropy: Entropy = {
  // Not randomBytes: small Buffers may share memory with others.
  bytes: (length) => randomFillSync(new Uint8Array(length)),
};
