/** `npm test` runs short rounds, `npm run test:deep` long ones; nothing exists only in one. */
export const isDeep: boolean = process.env["HOLDFAST_TEST_DEPTH"] === "deep";

/** Long rounds take minutes. Short ones take seconds, but on a machine that is busy a minute did not do for some. */
export const timeoutMs: number = isDeep ? 1_800_000 : 180_000;

/**
 * Rounds of a test on a backend. What a property says of the stores, it says of all backends
 * alike, so most rounds are in memory, where they cost a third or less. Elsewhere a short run has
 * `least`, and a deep one a fifth.
 */
export function roundsOn(
  { survives }: { readonly survives: boolean },
  rounds: {
    readonly deep: number;
    readonly short: number;
    readonly least: number;
  },
): number {
  if (isDeep) return survives ? Math.max(rounds.short, Math.ceil(rounds.deep / 5)) : rounds.deep;
  return survives ? rounds.least : rounds.short;
}

/** Printed by the runner; set HOLDFAST_TEST_SEED to repeat a run. */
export const seed: number = Number(process.env["HOLDFAST_TEST_SEED"] ?? 1);

/** Numbers below 1 that repeat for a seed (mulberry32). */
export function seededRandom(start: number): () => number {
  let state = start >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
