import { existsSync, readdirSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { projectRoot } from "../../scripts/project.ts";
import { leftOutBy } from "../../scripts/turns.ts";

const seeds = Array.from({ length: 12 }, (_, index) => index + 1);
const deepOnly = ["test/postgres/benchmarks.test.ts"];

test("every file that takes turns is there, and has its turn in four seeds that follow each other", () => {
  const everLeftOut = new Set(seeds.flatMap(leftOutBy));
  expect([...everLeftOut].filter((file) => !existsSync(path.join(projectRoot, file)))).toEqual([]);
  for (const first of [1, 4, 7]) {
    const always = seeds.slice(first - 1, first + 3).map((seed) => new Set(leftOutBy(seed)));
    const never = [...everLeftOut].filter((file) => always.every((leftOut) => leftOut.has(file)));
    expect(never).toEqual(deepOnly);
  }
});

test("an area runs on a file, or in memory and on Postgres", () => {
  for (const seed of seeds) {
    const leftOut = leftOutBy(seed);
    for (const area of ["executions", "runtime", "sessions"]) {
      const [file, ...others] = ["sqlite-file", "sqlite-memory", "postgres"].map((place) =>
        leftOut.includes(`test/backends/${place}-${area}.test.ts`),
      );
      expect(others).toEqual([file !== true, file !== true]);
    }
  }
});

test("a whole test folder is never left out", () => {
  for (const seed of seeds.slice(0, 2)) {
    const leftOut = leftOutBy(seed);
    for (const folder of ["test/cli", "test/crash", "test/postgres", "test/sqlite"]) {
      const files = readdirSync(path.join(projectRoot, folder)).filter((name) =>
        name.endsWith(".test.ts"),
      );
      const left = files.filter((name) => leftOut.includes(`${folder}/${name}`));
      expect(left.length).toBeGreaterThan(files.length / 4);
      expect(left.length).toBeLessThan((files.length * 3) / 4);
    }
  }
});
