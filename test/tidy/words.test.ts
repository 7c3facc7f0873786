import { expect, test } from "vitest";
import { treeOf } from "./tree.ts";
import { clausesForSummaries, translatedWords } from "./words.ts";

const plain = Array.from({ length: 19 }, (_, n) => `/** Locks run ${n}. */`).join("\n");

test("summaries that begin with a clause are reported once they are more than a twentieth", () => {
  const clause = "/** What is due is begun. */";
  const multiline = "/**\n * Whoever asks first sets it.\n * It stays.\n */";
  expect(clausesForSummaries(treeOf({ "src/a.ts": `${plain}\n${clause}` }))).toEqual([]);
  const problems = clausesForSummaries(treeOf({ "src/a.ts": `${plain}\n${clause}\n${multiline}` }));
  expect(problems).toHaveLength(2);
  expect(problems[0]).toContain('src/a.ts: "What is due is begun. */": ');
  expect(problems[1]).toContain("Whoever asks first sets it.");
});

test("summaries of tests, and words that only begin alike, are left alone", () => {
  expect(clausesForSummaries(treeOf({ "test/a.ts": "/** How it ends. */" }))).toEqual([]);
  expect(clausesForSummaries(treeOf({ "src/a.ts": "/** Whole seconds. */" }))).toEqual([]);
});

test.each([
  ["src/a.ts", "// It goes on where it was.", "goes on"],
  ["docs/a.md", "A run that one is done with", "done with"],
  ["README.md", "It makes no sense", "makes no sense"],
  ["src/sql/migrations/a/sqlite.sql", "-- Delays that nobody has answered.", "nobody"],
  ["src/a.js", 'throw new Error("a key is no text")', "is no text"],
  ["llms.txt", "locks that were given back", "given back"],
])("%s with %s is reported", (file, line, found) => {
  const problems = translatedWords(treeOf({ [file]: `first line\n${line}` }));
  expect(problems).toHaveLength(1);
  expect(problems[0]).toContain(`${file}:2: "${found}": write `);
});

test.each(["docs/adr/a.md", "src/a.test.ts", "test/a.ts", "src/a.generated.ts"])(
  "%s keeps its words",
  (file) => {
    expect(translatedWords(treeOf({ [file]: "done with" }))).toEqual([]);
  },
);

test("names that only contain such a word are accepted", () => {
  const text = 'import { unparkMended } from "./unpark-mended.ts"; const isGivenBack = given_back;';
  expect(translatedWords(treeOf({ "src/a.ts": text }))).toEqual([]);
});
