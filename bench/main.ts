import { executionBenchmarks, executionBenchmarksOnDemand } from "./executions/all.ts";
import { effectBenchmarks } from "./effects/all.ts";
import { kernelBenchmarks } from "./kernel/all.ts";
import { processBenchmarks } from "./processes/all.ts";
import { productBenchmarks } from "./product/all.ts";
import { registryBenchmarks } from "./registry/all.ts";
import { runtimeBenchmarks } from "./runtime/all.ts";
import { sessionBenchmarks } from "./sessions/all.ts";
import { setup as compileChildren, teardown as removeChildren } from "../test/compile-children.ts";

/** `npm run bench` runs all, `npm run bench -- kernel` a group, `-- kernel.lag` one. Each prints one JSON line. With `--tiny` each does next to nothing. */
const groups: Readonly<Record<string, () => Promise<object>>> = {
  ...kernelBenchmarks,
  ...processBenchmarks,
  ...registryBenchmarks,
  ...executionBenchmarks,
  ...sessionBenchmarks,
  ...effectBenchmarks,
  ...runtimeBenchmarks,
  ...productBenchmarks,
};
const everything = { ...groups, ...executionBenchmarksOnDemand };

/** What a group is measured with: effects and processes are background work together, and importing is part of a first run. */
const company: Readonly<Record<string, readonly string[]>> = {
  effects: ["processes.append"],
  product: ["kernel.import"],
};

const wanted = process.argv
  .slice(2)
  .filter((argument) => argument !== "--tiny")
  .flatMap((name) => [name, ...(company[name] ?? [])]);
const names = Object.keys(everything).filter(
  (name) =>
    wanted.includes(name) ||
    (name in groups &&
      (wanted.length === 0 || wanted.some((prefix) => name.startsWith(`${prefix}.`)))),
);
if (names.length === 0) {
  console.error(
    `Unknown benchmark ${wanted.join(" ")}. The benchmarks are: ${Object.keys(everything).join(", ")}.`,
  );
  process.exit(1);
}
// Some start processes of the tests, which run compiled.
await compileChildren();
try {
  for (const name of names) {
    process.stderr.write(`${name} …\n`);
    const figures = await everything[name]?.();
    console.log(JSON.stringify({ bench: name, ...figures }));
  }
} finally {
  removeChildren();
}
