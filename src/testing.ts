export { manualClock } from "./model/clock.ts";
export type { ManualClock } from "./model/clock.ts";
export { seededEntropy } from "./model/entropy.ts";
