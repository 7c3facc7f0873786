import { kernelBenchmarks } from "./kernel/all.ts";
import { processBenchmarks } from "./processes/all.ts";

/** `npm run bench` runs all, `npm run bench -- kernel` a group, `-- kernel.lag` one. Each prints one JSON line. */
const groups: Readonly<Record<string, () => Promise<object>>> = {
  ...kernelBenchmarks,
  ...processBenchmarks,
};

const wanted = process.argv.slice(2);
const names = Object.keys(groups).filter(
  (name) =>
    wanted.length === 0 ||
    wanted.some((prefix) => name === prefix || name.startsWith(`${prefix}.`)),
);
if (names.length === 0) {
  console.error(
    `No benchmark is called ${wanted.join(" ")}. There are: ${Object.keys(groups).join(", ")}.`,
  );
  process.exitCode = 1;
}
for (const name of names) {
  process.stderr.write(`${name} …\n`);
  console.log(JSON.stringify({ bench: name, ...(await groups[name]?.()) }));
}
