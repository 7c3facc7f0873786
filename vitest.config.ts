import { configDefaults, defineConfig } from "vitest/config";
import type { TestProjectInlineConfiguration } from "vitest/config";
import { timeoutMs } from "./test/depth.ts";
import { LongestFirst } from "./test/longest-first.ts";

/** They change or look at clocks, timers or modules of their process, which must be their own. */
const loneFiles = [
  "src/backends/postgres/{announcer,dispatcher,pool,server-clock}.test.ts",
  "src/backends/postgres/silence/*.test.ts",
  "src/backends/sqlite/neighbours/peers.test.ts",
  "src/backends/sqlite/thread-start.test.ts",
  "src/host/clock.test.ts",
  "src/host/timers.test.ts",
  "src/runtime/worker/unhandled-rejections.test.ts",
];
const allFiles = ["{src,test}/**/*.test.ts"];
const sqliteFiles = [
  "test/backends/sqlite-*.test.ts",
  "test/{crash,simulation,sqlite}/**/*.test.ts",
  "test/examples.test.ts",
];
const postgresFiles = ["test/backends/postgres-*.test.ts", "test/postgres/**/*.test.ts"];

/** Said by `npm test` when it runs all files. */
const isWhole = process.env["HOLDFAST_TEST_WHOLE"] === "yes";

/** Files that a short run leaves to the next seed. */
const leftOut = (process.env["HOLDFAST_TEST_LEFT_OUT"] ?? "").split(",").filter(Boolean);

const setUps = ["test/compile-children.ts", "test/global-setup.ts"];

const parts: TestProjectInlineConfiguration[] = [
  {
    extends: true,
    test: {
      name: "tree",
      // Whatever the others do not take, so that no file is left out.
      include: allFiles,
      isolate: false,
      exclude: [...configDefaults.exclude, ...loneFiles, ...sqliteFiles, ...postgresFiles],
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
      globalSetup: setUps,
    },
  },
];

const whole: TestProjectInlineConfiguration = {
  extends: true,
  test: {
    name: "whole",
    include: allFiles,
    exclude: [...configDefaults.exclude, ...loneFiles, ...leftOut],
    isolate: false,
    globalSetup: setUps,
  },
};

/**
 * Projects, so that a run of some files starts only what they need: the
 * Postgres server belongs to the last one. A run of all has one instead, since
 * each compiles the modules for itself and has processes of its own to load
 * them, which took a minute. Tests spawn and kill processes, hence forks;
 * three at a time, for two cores: many wait rather than compute. Most
 * files share the modules of their process: loading them anew took up to a
 * second for each.
 */
export default defineConfig({
  test: {
    pool: "forks",
    // Room for what is new: the collector took a twelfth of the time.
    execArgv: ["--max-semi-space-size=32"],
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
      ...(isWhole ? [whole] : parts),
    ],
  },
});
