import { readdirSync } from "node:fs";
import path from "node:path";
import { projectRoot } from "./project.ts";

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

/** What takes turns on the databases, so ordered that both turns cost about the same. */
const areas = [
  "executions",
  "runtime",
  "sessions",
  "processes",
  "effects",
  "triggers",
  "awaits",
  "pages",
];

/** Test files that run at the same turn. */
type Set = readonly string[];

/** Sets of which a short run has one, by its seed. */
const named: readonly (readonly Set[])[] = [
  ...areas.map((name) => [
    [`test/backends/sqlite-file-${name}.test.ts`],
    [`test/backends/sqlite-memory-${name}.test.ts`, `test/backends/postgres-${name}.test.ts`],
  ]),
  // One suite on both databases, with processes that are killed or must live on.
  ...["kills", "lingering"].map((name) => [
    [`test/crash/${name}.test.ts`],
    [`test/postgres/${name}.test.ts`],
  ]),
  ["crash-loop", "runtime-kill"].flatMap((name) => [
    [`test/crash/${name}.test.ts`],
    [`test/postgres/${name}.test.ts`],
  ]),
  // Programs from end to end: each starts many processes, or builds and installs the package.
  [
    ["test/cli/demo.test.ts", "test/sqlite/drivers.test.ts"],
    ["test/cli/first-minutes.test.ts", "test/install.test.ts"],
    ["test/examples.test.ts", "test/sqlite/bundles.test.ts"],
    ["test/snippets.test.ts", "test/postgres/readme.test.ts"],
  ],
  [
    ["test/crash/out-of-memory.test.ts"],
    ["test/crash/backup.test.ts"],
    ["test/sqlite/backup.test.ts"],
  ],
  [
    ["test/crash/power-loss/kernel.test.ts", "test/crash/power-loss/opening.test.ts"],
    ["test/crash/power-loss/shim.test.ts"],
  ],
  // Each takes long, and in the order of names both would have the same turn.
  [["test/crash/neighbours.test.ts"], ["test/postgres/silence.test.ts"]],
];

/** Folders of what one surface or one database has for itself: a short run has every second file. */
const halved = ["test/cli", "test/crash", "test/postgres", "test/sqlite"];

/** Files of these folders that always run: set forms equal their `one`, and an id that only one file proves. */
const always: readonly string[] = [
  "test/sqlite/flushes.test.ts",
  "test/postgres/execution-fold.test.ts",
  "test/postgres/execution-set-forms.property.test.ts",
  "test/postgres/set-forms.property.test.ts",
];

/** Benchmarks are started with tiny rounds. They change with what they measure. */
const deepOnly: readonly string[] = ["test/postgres/benchmarks.test.ts"];

/**
 * Each row has the sets that take turns with each other: four seeds that follow each other have
 * all of them, and so has a deep run. The whole run fails when a checklist id was not proven, so
 * no id may depend on a turn.
 */
const rows: readonly (readonly Set[])[] = [
  ...named,
  ...halved.flatMap(testsIn).flatMap((file) => (isTakenCareOf(file) ? [] : [[[file], []]])),
];

function testsIn(folder: string): readonly string[] {
  const files = readdirSync(path.join(projectRoot, folder), { recursive: true, encoding: "utf8" });
  return files
    .filter((file) => file.endsWith(".test.ts"))
    .map((file) => `${folder}/${file.replaceAll("\\", "/")}`)
    .toSorted();
}

function isTakenCareOf(file: string): boolean {
  return [...always, ...deepOnly, ...named.flat(2)].includes(file);
}

/** The test files that a short run of this seed leaves to other seeds and to deep runs. */
export function leftOutBy(seed: number): readonly string[] {
  const others = rows.flatMap((sets, row) =>
    sets.filter((_, index) => index !== (row + seed) % sets.length),
  );
  return [...deepOnly, ...others.flat()];
}
