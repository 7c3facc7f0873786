import { configDefaults, defineConfig } from "vitest/config";

const sqliteFiles = [
  "test/backends/sqlite-*.test.ts",
  "test/{crash,simulation,sqlite}/**/*.test.ts",
];
const postgresFiles = [
  "test/backends/postgres-*.test.ts",
  "test/postgres/**/*.test.ts",
];

/** Long rounds take minutes; short ones that take one are stuck. */
const timeoutMs =
  process.env["HOLDFAST_TEST_DEPTH"] === "deep" ? 1_800_000 : 60_000;

/**
 * Three projects, so that a run starts only what its files need: the Postgres
 * server belongs to the last one. Tests spawn and kill processes, hence forks;
 * two at a time, since that is what the smallest supported machine has.
 */
export default defineConfig({
  test: {
    pool: "forks",
    maxWorkers: 2,
    testTimeout: timeoutMs,
    hookTimeout: timeoutMs,
    projects: [
      {
        extends: true,
        test: {
          name: "unit",
          // Whatever the others do not take, so that no file is left out.
          include: ["src/**/*.test.ts", "test/**/*.test.ts"],
          exclude: [
            ...configDefaults.exclude,
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
          globalSetup: ["test/compile-children.ts"],
        },
      },
      {
        extends: true,
        test: {
          name: "postgres",
          include: postgresFiles,
          globalSetup: ["test/compile-children.ts", "test/global-setup.ts"],
        },
      },
    ],
  },
});
