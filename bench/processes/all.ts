import { death } from "./death.ts";
import { sustained } from "./sustained.ts";
import { throughput } from "./throughput.ts";
import { wake } from "./wake.ts";

export const processBenchmarks: Readonly<Record<string, () => Promise<object>>> = {
  "processes.throughput": throughput,
  "processes.death": death,
  "processes.wake": wake,
  "processes.sustained": sustained,
};
