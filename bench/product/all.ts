import { install } from "./install.ts";
import { size } from "./size.ts";

export const productBenchmarks: Readonly<Record<string, () => Promise<object>>> = {
  "product.install": install,
  "product.size": size,
};
