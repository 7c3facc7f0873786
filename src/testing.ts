export type {} from "./kernel.ts";
export { manualClock } from "./model/time/clock.ts";
export type { ManualClock } from "./model/time/clock.ts";
export { seededEntropy } from "./model/entropy.ts";
