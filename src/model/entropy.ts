import { HoldfastError } from "./errors.ts";
import { splitmix64 } from "./execution/splitmix.ts";

/** A source of randomness. */
export interface Entropy {
  /** Returns a fresh array of random bytes, which the caller may keep and change. */
  bytes(length: number): Uint8Array;
}

/**
 * Returns reproducible randomness. The same seed gives the same bytes on every machine and in every
 * release, because replays draw from it (the tests pin the bytes). Never use it for tokens or keys.
 */
export function seededEntropy(seed: number | bigint): Entropy {
  if (typeof seed !== "bigint" && !Number.isSafeInteger(seed)) {
    const got = typeof seed === "number" ? String(seed) : typeof seed;
    throw new HoldfastError(
      "OPTION_INVALID",
      `A seed must be a whole number below 2^53, or a bigint of up to 64 bits; got ${got}.`,
      { option: "seed", got },
    );
  }
  const nextWord = sfc32(BigInt(seed));
  return {
    // Every call starts on a fresh word, so one caller's bytes do not depend on the alignment of
    // another's.
    bytes(length) {
      const bytes = new Uint8Array(length);
      for (let at = 0; at < length; at += 4) {
        const word = nextWord();
        for (let byte = 0; byte < 4 && at + byte < length; byte += 1) {
          bytes[at + byte] = word >>> (8 * byte);
        }
      }
      return bytes;
    },
  };
}

/**
 * The generator sfc32 ("small fast counting"). It has 128 bits of state and passes PractRand. It
 * needs only 32-bit arithmetic, which JavaScript does without BigInt.
 */
function sfc32(seed: bigint): () => number {
  const [first = 0n, second = 0n] = splitmix64(seed, 2);
  let a = Number(first & 0xffff_ffffn) | 0;
  let b = Number(first >> 32n) | 0;
  let c = Number(second & 0xffff_ffffn) | 0;
  let counter = 1;
  const next = (): number => {
    const word = (a + b + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + word) | 0;
    return word;
  };
  // The number of rounds that its author recommends before the first output.
  for (let round = 0; round < 12; round += 1) next();
  return next;
}
