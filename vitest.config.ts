import { configDefaults, defineConfig } from "vitest/config";
import { LongestFirst } from "./test/longest-first.ts";

/** They look at the timers of their process, which must be their own. */
const loneFiles = [
  "src/backends/sqlite/neighbours/peers.test.ts",
  "src/host/timers.test.ts",
];
const sqliteFiles = [
  "test/backends/sqlite-*.test.ts",
  "test/{crash,simulation,sqlite}/**/*.test.ts",
  "test/examples.test.ts",
];
const postgresFiles = [
  "test/backends/postgres-*.test.ts",
  "test/postgres/**/*.test.ts",
];

/** Long rounds take minutes; short ones that take one are stuck. */
const timeoutMs =
  process.env["HOLDFAST_TEST_DEPTH"] === "deep" ? 1_800_000 : 60_000;

/**
 * Four projects, so that a run starts only what its files need: the Postgres
 * server belongs to the last one. Tests spawn and kill processes, hence forks;
 * three at a time, for two cores: many wait rather than compute. Most
 * files share the modules of their process: loading them anew took up to a
 * second for each.
 */
export default defineConfig({
  test: {
    pool: "forks",
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
    testTimeout: timeoutMs,
    hookTimeout: timeoutMs,
    projects: [
      {
        extends: true,
        test: {
          name: "lone",
          include: loneFiles,
        },
      },
      {
        extends: true,
        test: {
          name: "tree",
          // Whatever the others do not take, so that no file is left out.
          include: ["{src,test}/**/*.test.ts"],
          isolate: false,
          exclude: [
            ...configDefaults.exclude,
            ...loneFiles,
            ...sqliteFiles,
            ...postgresFiles,
          ],
        },
      },
      {
        extends: true,
        test: {
          name: "sqlite",
          include: sqliteFiles,
          isolate: false,
          globalSetup: ["test/compile-children.ts"],
        },
      },
      {
        extends: true,
        test: {
          name: "postgres",
          include: postgresFiles,
          isolate: false,
          globalSetup: ["test/compile-children.ts", "test/global-setup.ts"],
        },
      },
    ],
  },
});
