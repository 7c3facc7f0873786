import { existsSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { projectRoot } from "../../scripts/project.ts";
import { leftOutBy } from "../../scripts/turns.ts";

const seeds = Array.from({ length: 12 }, (_, index) => index + 1);
const deepOnly = ["test/postgres/benchmarks.test.ts"];

test("every file that takes turns is there, and has its turn in six seeds that follow each other", () => {
  const everLeftOut = new Set(seeds.flatMap(leftOutBy));
  expect([...everLeftOut].filter((file) => !existsSync(path.join(projectRoot, file)))).toEqual([]);
  for (const first of [1, 4, 7]) {
    const always = seeds.slice(first - 1, first + 5).map((seed) => new Set(leftOutBy(seed)));
    const never = [...everLeftOut].filter((file) => always.every((leftOut) => leftOut.has(file)));
    expect(never).toEqual(deepOnly);
  }
});

test("a store suite is left out in memory or on a file, not both and not neither", () => {
  for (const seed of seeds) {
    const leftOut = leftOutBy(seed);
    const halves = ["memory", "file"].map((place) =>
      leftOut.includes(`test/backends/sqlite-${place}-sessions.test.ts`),
    );
    expect(halves.filter(Boolean)).toHaveLength(1);
  }
});
