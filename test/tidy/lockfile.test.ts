import { expect, test } from "vitest";
import { lockedDependencies } from "./lockfile.ts";
import { treeOf } from "./tree.ts";

test("a dependency without an entry in the lock is reported", () => {
  const tree = treeOf({
    "package-lock.json": JSON.stringify({
      packages: {
        "": { dependencies: { tool: "^1.0.0" } },
        "node_modules/tool": {
          dependencies: { part: "^2.0.0" },
          optionalDependencies: {
            "@tool/linux": "1.0.0",
            "@tool/mac": "1.0.0",
          },
        },
        "node_modules/tool/node_modules/part": {},
        "node_modules/@tool/linux": {},
      },
    }),
  });
  expect(lockedDependencies(tree)).toEqual([
    'package-lock.json has no entry for @tool/mac@1.0.0, which node_modules/tool depends on, so "npm ci" fails: use versions whose every platform is published, or add the entry with version, os and cpu.',
  ]);
});

test("a missing lock is reported", () => {
  expect(lockedDependencies(treeOf({}))).toHaveLength(1);
});
