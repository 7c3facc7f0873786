import { concurrent } from "./concurrent.ts";
import { importing } from "./import.ts";
import { lag } from "./lag.ts";
import { open } from "./open.ts";
import { postgres } from "./postgres.ts";
import { sequential } from "./sequential.ts";

export const kernelBenchmarks: Readonly<Record<string, () => Promise<object>>> = {
  "kernel.concurrent": concurrent,
  "kernel.sequential": sequential,
  "kernel.lag": lag,
  "kernel.import": importing,
  "kernel.open": open,
  "kernel.postgres": postgres,
};
