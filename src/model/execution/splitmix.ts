const wordMax = 0xffff_ffff_ffff_ffffn;
const stride = 0x9e37_79b9_7f4a_7c15n;

/**
 * Spreads every bit of a 64-bit word over all of it (the finaliser of the
 * SplitMix64 generator), so that neighbouring inputs become unrelated outputs.
 */
export function mix64(word: bigint): bigint {
  let z = word & wordMax;
  z = ((z ^ (z >> 30n)) * 0xbf58_476d_1ce4_e5b9n) & wordMax;
  z = ((z ^ (z >> 27n)) * 0x94d0_49bb_1331_11ebn) & wordMax;
  return z ^ (z >> 31n);
}

/** The first `count` words of the SplitMix64 sequence that starts at `seed`. */
export function splitmix64(seed: bigint, count: number): bigint[] {
  return Array.from({ length: count }, (_, index) => mix64(seed + stride * BigInt(index + 1)));
}
