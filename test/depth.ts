/** `npm test` runs short rounds, `npm run test:deep` long ones; nothing exists only in one. */
export const isDeep: boolean = process.env["HOLDFAST_TEST_DEPTH"] === "deep";

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
