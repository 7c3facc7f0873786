import {
  executionBenchmarks,
  executionBenchmarksOnDemand,
} from "./executions/all.ts";
import { kernelBenchmarks } from "./kernel/all.ts";
import { processBenchmarks } from "./processes/all.ts";
import { sessionBenchmarks } from "./sessions/all.ts";

/** `npm run bench` runs all, `npm run bench -- kernel` a group, `-- kernel.lag` one. Each prints one JSON line. */
const groups: Readonly<Record<string, () => Promise<object>>> = {
  ...kernelBenchmarks,
  ...processBenchmarks,
  ...executionBenchmarks,
  ...sessionBenchmarks,
};
const everything = { ...groups, ...executionBenchmarksOnDemand };

const wanted = process.argv.slice(2);
const names = Object.keys(everything).filter(
  (name) =>
    wanted.includes(name) ||
    (name in groups &&
      (wanted.length === 0 ||
        wanted.some((prefix) => name.startsWith(`${prefix}.`)))),
);
if (names.length === 0) {
  console.error(
    `No benchmark is called ${wanted.join(" ")}. There are: ${Object.keys(everything).join(", ")}.`,
  );
  process.exitCode = 1;
}
for (const name of names) {
  process.stderr.write(`${name} …\n`);
  console.log(JSON.stringify({ bench: name, ...(await everything[name]?.()) }));
}
