import { execute } from "./execute.ts";
import { replay } from "./replay.ts";

export const effectBenchmarks: Readonly<Record<string, () => Promise<object>>> = {
  "effects.execute": execute,
  "effects.replay": replay,
};
