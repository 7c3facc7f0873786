import { expect, test } from "vitest";
import { emptyFileNames, longFiles, longFunctions } from "./sizes.ts";
import { treeOf } from "./tree.ts";

const lines = (count: number): string => "let x;\n".repeat(count);

test("a file of more than 400 lines is reported unless it is generated, a door or a suite; a page has 600", () => {
  const page = "export interface AwaitEvents {\n";
  const tree = treeOf({
    "test/conformance/queue/claims.suite.ts": lines(900),
    "src/stores/effect/await-events.ts": page + lines(599),
    "src/stores/effect/sized.ts": page + lines(599),
    "src/model/long.ts": lines(401),
    "src/model/full.ts": lines(400),
    "src/sql/migrations.generated.ts": lines(900),
    "src/stores.ts": lines(900),
  });
  expect(longFiles(tree)).toEqual([
    "src/stores/effect/sized.ts has 600 lines, at most 400 are allowed: give each idea in it a file.",
    "src/model/long.ts has 401 lines, at most 400 are allowed: give each idea in it a file.",
  ]);
});

test("a function of more than 70 lines is reported, whatever its form", () => {
  const body = lines(69);
  const tree = treeOf({
    "src/a.ts": `function a() {\n${body}}`,
    "src/b.ts": `\nconst b = () => {\n${body}};`,
    "src/c.ts": `class C { m() {\n${body}} }`,
    "src/d.ts": `function d() {\n${lines(68)}}`,
  });
  expect(longFunctions(tree)).toEqual([
    "src/a.ts:1: a function of 71 lines, at most 70 are allowed: name its parts.",
    "src/b.ts:2: a function of 71 lines, at most 70 are allowed: name its parts.",
    "src/c.ts:1: a function of 71 lines, at most 70 are allowed: name its parts.",
  ]);
});

test("a describe block may be long, a test may not", () => {
  const tree = treeOf({
    "test/a.test.ts": `describe("a", () => {\ntest("b", () => {\n${lines(80)}});\n});`,
  });
  expect(longFunctions(tree)).toEqual([
    "test/a.test.ts:2: a function of 82 lines, at most 70 are allowed: name its parts.",
  ]);
});

test("file names that say nothing are reported", () => {
  const tree = treeOf({
    "src/model/utils.ts": "",
    "src/common/id.ts": "",
    "src/runtime/session-manager.ts": "",
    "test/helpers.test.ts": "",
    "test/types/start.test.ts": "",
    "src/model/ids.ts": "",
  });
  expect(emptyFileNames(tree)).toEqual([
    'src/model/utils.ts: "utils" names a drawer: name the file after what it does.',
    'src/common/id.ts: "common" names a drawer: name the file after what it does.',
    'src/runtime/session-manager.ts: "manager" names a drawer: name the file after what it does.',
    'test/helpers.test.ts: "helpers" names a drawer: name the file after what it does.',
  ]);
});
