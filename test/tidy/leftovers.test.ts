import { expect, test } from "vitest";
import { leftBehind } from "./leftovers.ts";
import { treeOf } from "./tree.ts";

test.each([
  ["src/a.ts", "// TODO later", "TODO"],
  ["docs/a.md", "FIXME", "FIXME"],
  ["test/a.test.ts", 'test.only("a", f);', "test.only"],
  ["test/a.test.ts", 'describe.concurrent.skip("a", f);', "describe.concurrent.skip"],
  ["test/a.test.ts", 'test.todo("a");', "test.todo"],
  [".ci/run", "cd /work/main", "/work/"],
  ["docs/a.md", "see /root/.npmrc", "/root"],
  ["a.json", '"https://registry.example.org/a.tgz"', "//registry."],
  ["package-lock.json", '"resolved": "https://example.org/x.tgz"', '"resolved": "https:'],
])("%s with %s is reported", (file, line, found) => {
  const problems = leftBehind(treeOf({ [file]: `first line\n${line}` }));
  expect(problems).toHaveLength(1);
  expect(problems[0]).toContain(`${file}:2: "${found}": `);
});

test.each([
  "registry.get(key)",
  '"resolved": "test/drivers"',
  "`${folder}/root`",
  "network/work/done",
  "test.skipIf(windows)('a', f)",
  "items.skip(3)",
])("%s is allowed", (line) => {
  expect(leftBehind(treeOf({ "src/a.ts": line }))).toEqual([]);
});
