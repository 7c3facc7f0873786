export { manualClock } from "./model/clock.ts";
export type { ManualClock } from "./model/clock.ts";
export { seededEntropy } from "./model/entropy.ts";
export type { Entropy } from "./model/entropy.ts";
