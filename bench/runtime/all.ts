import { steps } from "./steps.ts";

export const runtimeBenchmarks: Readonly<
  Record<string, () => Promise<object>>
> = {
  "runtime.steps": steps,
};
