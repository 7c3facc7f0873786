/** `--tiny` asks only whether the benchmarks run: its figures mean nothing. */
const isTiny = process.argv.includes("--tiny");

/** How much of something a benchmark takes, and how little will do to see it run. */
export function size(usual: number, tiny: number): number {
  return isTiny ? tiny : usual;
}
