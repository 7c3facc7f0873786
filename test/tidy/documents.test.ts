import { expect, test } from "vitest";
import {
  absentFromRecipes,
  brokenMap,
  conformanceIds,
  errorDocumentation,
  readmeSnippets,
} from "./documents.ts";
import { treeOf } from "./tree.ts";

test("codes and sections that do not match are reported", () => {
  const tree = treeOf({
    "src/model/errors.ts":
      'const errors = {\n  GOOD: "refused",\n  SILENT: "passing",\n  TWICE: "refused",\n};',
    "docs/errors.md": [
      "# Errors\n\n## How to read this page\n\nBy code.\n",
      "## GOOD\n\n**Cause.** The caller did this.\n\n**Remedy.** Do that instead, please.\n",
      "## TWICE\n\n**Cause.** The caller did this.\n\n**Remedy.** Do that instead, please.\n",
      "## TWICE\n\n**Cause.** The caller did this.\n\n**Remedy.** Never.\n",
      "## GONE\n\n**Cause.** The caller did this.\n\n**Remedy.** Do that instead, please.\n",
    ].join("\n"),
  });
  expect(errorDocumentation(tree)).toEqual([
    'docs/errors.md has 0 sections "## SILENT": every code of src/model/errors.ts needs exactly one.',
    'docs/errors.md has 2 sections "## TWICE": every code of src/model/errors.ts needs exactly one.',
    'docs/errors.md: "## TWICE" does not tell the remedy: add a sentence after "**Remedy.**".',
    'docs/errors.md: "## GONE" is no code of src/model/errors.ts: remove the section or restore the code.',
  ]);
});

test("ids that only the tests or only the page know are reported", () => {
  const tree = treeOf({
    "test/conformance/log.suite.ts":
      'describe("log", () => {\n  test("[E1] [E2] both", f);\n  test.each([1])(`[A10] each`, f);\n  const other = "[E9]";\n});',
    "docs/conformance.md":
      "# Conformance\n\n- [E1] An id in a list.\n- **E3** Another.\n\n| A10 | In a table. |\n",
  });
  expect(conformanceIds(tree)).toEqual([
    "[E2] is in a test title but not in docs/conformance.md: state what it promises there.",
    "docs/conformance.md lists E3 but no test title has [E3]: write the test.",
  ]);
});

test("README code that no example has is reported", () => {
  const block = (code: string): string => `\`\`\`ts\n${code}\n\`\`\`\n`;
  const tree = treeOf({
    "README.md": `# R\n\n${block("const a = 1;")}\n${block("const b = 2;")}`,
    "examples/a.ts": "const a = 1;\nconsole.log(a);\n",
  });
  expect(readmeSnippets(tree)).toEqual([
    'README.md: the block that begins "const b = 2;" is in no file of examples/: quote a running example word for word.',
  ]);
});

test("missing documents are reported", () => {
  const nothing = treeOf({});
  expect(errorDocumentation(nothing)).toHaveLength(1);
  expect(conformanceIds(nothing)).toHaveLength(1);
  expect(readmeSnippets(nothing)).toHaveLength(1);
  expect(absentFromRecipes(nothing)).toHaveLength(1);
});

test("a file that the map names and that is gone is reported", () => {
  const tree = treeOf({
    "ARCHITECTURE.md":
      "See `stores/list.ts`, `flusher.ts`, `gone.ts` and `test/conformance/<aggregate>/`.",
    "src/stores/list.ts": "",
    "src/backends/sqlite/flusher.ts": "",
  });
  expect(brokenMap(tree)).toEqual([
    "ARCHITECTURE.md names gone.ts, which is not there: name the file that has it now.",
  ]);
});

test("a file, a folder or a script that a recipe names and that is gone is reported", () => {
  const tree = treeOf({
    "CONTRIBUTING.md":
      "Edit `src/sql/a.sql` and `src/gone.ts`, then `npm test -- test/cli test/old/a.test.ts -t gone.ts`.\n" +
      "\n```sh\nnpm run check && npm run lost\n```\n\nA name such as `NNNN_name/sqlite.sql` or `count.ts` is no path.\n",
    "package.json": '{ "scripts": { "check": "" } }',
    "src/sql/a.sql": "",
    "test/cli/a.test.ts": "",
  });
  expect(absentFromRecipes(tree)).toEqual([
    "CONTRIBUTING.md names src/gone.ts, which is not there: name the file that has it now.",
    "CONTRIBUTING.md names test/old/a.test.ts, which is not there: name the file that has it now.",
    'CONTRIBUTING.md names "npm run lost", which package.json does not have.',
  ]);
});
