/** Suites of the stores: above the kernel they run the same code on a file as in memory. */
export const stores: readonly string[] = [
  "executions",
  "sessions",
  "processes",
  "effects",
  "awaits",
  "triggers",
  "pages",
];

/**
 * Sets of test files that take turns: a short run has one set of each row, by its seed: six seeds
 * that follow each other have all of them. A deep run has all. The whole run fails when a checklist id was not
 * proven, so no id may depend on a turn.
 */
const turns: readonly (readonly (readonly string[])[])[] = [
  ...stores.map((name) => [
    [`test/backends/sqlite-memory-${name}.test.ts`],
    [`test/backends/sqlite-file-${name}.test.ts`],
  ]),
  // The runtime, too, reaches a file only through the kernel.
  [["test/backends/sqlite-memory-runtime.test.ts"], ["test/backends/sqlite-file-runtime.test.ts"]],
  // One suite on both databases, with processes that are killed or must live on.
  ...["crash-loop", "kills", "lingering", "runtime-kill"].map((name) => [
    [`test/crash/${name}.test.ts`],
    [`test/postgres/${name}.test.ts`],
  ]),
  // Programs from end to end: each starts many processes, or builds and installs the package.
  [
    ["test/cli/demo.test.ts", "test/sqlite/bundles.test.ts"],
    ["test/cli/first-minutes.test.ts", "test/install.test.ts"],
    ["test/examples.test.ts", "test/snippets.test.ts", "test/postgres/readme.test.ts"],
  ],
  [
    ["test/crash/out-of-memory.test.ts"],
    ["test/crash/backup.test.ts"],
    ["test/sqlite/backup.test.ts"],
  ],
  [
    ["test/crash/power-loss/shim.test.ts"],
    ["test/crash/power-loss/kernel.test.ts", "test/crash/power-loss/opening.test.ts"],
  ],
];

/** Benchmarks are started with tiny rounds. They change with what they measure, whose suites always run. */
const deepOnly: readonly string[] = ["test/postgres/benchmarks.test.ts"];

/** The test files that a short run of this seed leaves to other seeds and to deep runs. */
export function leftOutBy(seed: number): readonly string[] {
  const others = turns.flatMap((sets, row) =>
    sets.filter((_, index) => index !== (row + seed) % sets.length),
  );
  return [...deepOnly, ...others.flat()];
}
