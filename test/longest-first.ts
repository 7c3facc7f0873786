import { BaseSequencer } from "vitest/node";
import type { TestSpecification } from "vitest/node";

/**
 * The longest files: first those that mostly wait, then longest first. Vitest would start larger
 * files before smaller ones, but a suite for a backend is a file of four lines: a long one that
 * starts last has one core work while the other waits.
 */
const longest = [
  "test/postgres/silence.test.ts",
  "test/postgres/crash-loop.test.ts",
  "test/crash/crash-loop.test.ts",
  "test/backends/postgres-runtime.test.ts",
  "test/backends/postgres-sessions.test.ts",
  "test/backends/postgres-executions.test.ts",
  "test/postgres/runtime-kill.test.ts",
  "test/crash/runtime-kill.test.ts",
  "test/postgres/outages.test.ts",
  "test/examples.test.ts",
  "test/backends/sqlite-memory-runtime.test.ts",
  "test/backends/sqlite-file-sessions.test.ts",
  "test/backends/sqlite-file-runtime.test.ts",
  "test/postgres/readme.test.ts",
  "test/crash/neighbours.test.ts",
  "test/backends/sqlite-file-executions.test.ts",
  "test/cli/demo.test.ts",
  "test/backends/sqlite-memory-sessions.test.ts",
  "test/snippets.test.ts",
  "test/crash/lingering.test.ts",
  "test/crash/kills.test.ts",
  "test/sqlite/session-files.test.ts",
  "test/cli/first-minutes.test.ts",
  "test/backends/sqlite-file-kernel.test.ts",
  "test/postgres/move/refusals.test.ts",
  "test/sqlite/export-rows.test.ts",
  "test/postgres/kills.test.ts",
  "test/backends/postgres-pages.test.ts",
  "test/crash/power-loss/kernel.test.ts",
  "test/cli/runs.test.ts",
  "test/backends/postgres-triggers.test.ts",
  "test/crash/power-loss/opening.test.ts",
  "test/postgres/lingering.test.ts",
  "test/backends/sqlite-memory-pages.test.ts",
  "test/postgres/waits.test.ts",
  "test/postgres/benchmarks.test.ts",
  "test/crash/power-loss/shim.test.ts",
  "test/backends/sqlite-file-pages.test.ts",
  "test/sqlite/backup.test.ts",
  "test/crash/out-of-memory.test.ts",
  "test/backends/postgres-processes.test.ts",
  "test/backends/sqlite-memory-executions.test.ts",
  "test/backends/postgres-kernel.test.ts",
  "test/sqlite/bundles.test.ts",
  "test/sqlite/late-calls.test.ts",
  "test/crash/backup.test.ts",
  "test/postgres/cli.test.ts",
];

/** Those of Postgres are the longest of all, if not all are in one. */
const projects = ["whole", "postgres", "sqlite", "tree", "lone"];

/**
 * One project after the other: a process that has loaded the modules takes
 * the next file only when that is of its own project, and ends otherwise.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const asUsual = await super.sort.call(this, files);
    return asUsual.toSorted(
      (one, other) =>
        projects.indexOf(one.project.name) - projects.indexOf(other.project.name) ||
        rank(one) - rank(other),
    );
  }
}

function rank({ moduleId }: TestSpecification): number {
  const found = longest.findIndex((name) => moduleId.endsWith(`/${name}`));
  return found === -1 ? longest.length : found;
}
