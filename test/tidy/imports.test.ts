import { expect, test } from "vitest";
import { doorsAndBarrels, importDirections } from "./imports.ts";
import { treeOf } from "./tree.ts";

const mayImport = { model: [], sql: ["model"], page: ["model/api.ts"] };

test("an import against the direction is reported with the way out", () => {
  const tree = treeOf({
    "src/model/ids.ts": 'import { sql } from "../sql/statement.ts";',
    "src/sql/statement.ts": 'import { ids } from "../model/ids.ts";',
  });
  expect(importDirections(tree, mayImport)).toEqual([
    "src/model/ids.ts: model/ may import nothing else, not src/sql/statement.ts: move the code down, or pass it in from above.",
  ]);
});

test("types, re-exports and import() count as imports", () => {
  const tree = treeOf({
    "src/model/a.ts": 'import type { S } from "../sql/s.ts";',
    "src/model/b.ts": 'export { S } from "../sql/s.ts"; export const b = 1;',
    "src/model/c.ts": 'export const c = () => import("../sql/s.ts");',
    "src/model/d.ts": 'export type D = import("../sql/s.ts").S;',
  });
  expect(importDirections(tree, mayImport)).toHaveLength(4);
});

test("the model imports neither Node nor packages", () => {
  const tree = treeOf({
    "src/model/hash.ts": 'import { createHash } from "node:crypto";',
    "src/sql/hash.ts": 'import { createHash } from "node:crypto";',
  });
  expect(importDirections(tree, mayImport)).toEqual([
    'src/model/hash.ts: model/ is pure and imports only itself, not "node:crypto": pass what you need as an argument.',
  ]);
});

test("a rule may name a single file", () => {
  const tree = treeOf({
    "src/page/main.ts": 'import type { Api } from "../model/api.ts";',
    "src/page/other.ts": 'import type { Id } from "../model/ids.ts";',
  });
  expect(importDirections(tree, mayImport)).toEqual([
    "src/page/other.ts: page/ may import model/api.ts, not src/model/ids.ts: move the code down, or pass it in from above.",
  ]);
});

test("doors, tests and unknown folders are refused", () => {
  const tree = treeOf({
    "src/sql/a.ts": 'import { x } from "../index.ts";',
    "src/sql/b.ts": 'import { x } from "../../test/fixture.ts";',
    "src/extras/c.ts": "export const c = 1;",
  });
  expect(importDirections(tree, mayImport)).toEqual([
    "src/sql/a.ts: src/index.ts is a door, for users: import the module behind it.",
    "src/sql/b.ts: src/ is what users install and may not import test/fixture.ts: move the code into src/.",
    "src/extras/c.ts: the folder src/extras/ has no rule: add it to mayImport in test/tidy.test.ts, or use a folder of the layout.",
  ]);
});

test("a door with code of its own, or that exports everything, is reported", () => {
  const tree = treeOf({
    "src/index.ts": 'export { a } from "./model/a.ts";\nexport const version = 1;',
    "src/stores.ts": 'export * from "./sql/statement.ts";',
    "src/sqlite.ts": 'export { openSqlite } from "./backends/sqlite/open.ts";',
  });
  expect(doorsAndBarrels(tree)).toEqual([
    "src/index.ts:2: a door only re-exports by name: move this into a folder of src/.",
    "src/stores.ts:1: a door only re-exports by name: move this into a folder of src/.",
  ]);
});

test("a barrel inside a folder is reported", () => {
  const tree = treeOf({
    "src/model/index.ts": 'export { a } from "./a.ts";',
    "src/model/a.ts": "export const a = 1;",
  });
  expect(doorsAndBarrels(tree)).toEqual([
    "src/model/index.ts: only the doors re-export: import from the module itself and delete this file.",
  ]);
});
