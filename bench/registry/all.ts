import { append } from "./append.ts";

export const registryBenchmarks: Readonly<Record<string, () => Promise<object>>> = {
  "processes.append": append,
};
