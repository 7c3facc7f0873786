import { expect, test } from "vitest";
import { embeddedThreads } from "./threads.ts";
import { treeOf } from "./tree.ts";

const file = "src/backends/sqlite/threads.generated.ts";
const text = (name: string, value: string): string =>
  `export const ${name}: string =\n  ${JSON.stringify(value)};\n`;

test("a text that is not what its entry says is reported", () => {
  const tree = treeOf({ [file]: text("flushThread", "old") });
  expect(embeddedThreads(tree, text("flushThread", "new"))).toEqual([
    `${file} is not what the entries say: run "npm run threads".`,
  ]);
});

test("a text that is too long for a command line is reported", () => {
  const rendered = text("flushThread", "a") + text("heavyProcess", "x".repeat(16_000));
  expect(embeddedThreads(treeOf({ [file]: rendered }), rendered)).toEqual([
    `${file}: heavyProcess has 16002 characters, at most 16000 are allowed: let it import less.`,
  ]);
});
