import { parse, rootName } from "./syntax.ts";
import { isCode, isTest } from "./tree.ts";
import type { Tree } from "./tree.ts";

const errorPage = "docs/errors.md";
const errorSource = "src/model/errors.ts";
const conformancePage = "docs/conformance.md";

/** Every error code has one section that says why and what to do. */
export function errorDocumentation(tree: Tree): readonly string[] {
  const page = tree.get(errorPage);
  if (page === undefined)
    return [`${errorPage} is missing: give each error code a "## CODE" section.`];
  const codes = new Set(
    [
      ...(tree.get(errorSource) ?? "").matchAll(
        /^ {2}([A-Z][A-Z0-9_]*): "(?:refused|failed|passing)",/gm,
      ),
    ].map((match) => match[1] ?? ""),
  );
  const sections = page
    .split(/^## /m)
    .slice(1)
    .map((section) => ({ heading: section.split("\n")[0] ?? "", section }))
    .filter(({ heading }) => /^[A-Z0-9_]+$/.test(heading));
  const problems: string[] = [];
  for (const code of codes) {
    const count = sections.filter(({ heading }) => heading === code).length;
    if (count !== 1)
      problems.push(
        `${errorPage} has ${count} sections "## ${code}": every code of ${errorSource} needs exactly one.`,
      );
  }
  for (const { heading, section } of sections) {
    if (!codes.has(heading))
      problems.push(
        `${errorPage}: "## ${heading}" is no code of ${errorSource}: remove the section or restore the code.`,
      );
    for (const word of ["Cause", "Remedy"])
      if (!new RegExp(`\\b${word}\\b\\W+(\\w+\\W+){3}`).test(section))
        problems.push(
          `${errorPage}: "## ${heading}" does not tell the ${word.toLowerCase()}: add a sentence after "**${word}.**".`,
        );
  }
  return problems;
}

/** The ids in test titles ("[E1] …") are those the page lists. */
export function conformanceIds(tree: Tree): readonly string[] {
  const page = tree.get(conformancePage);
  if (page === undefined) return [`${conformancePage} is missing: state every id in one sentence.`];
  const listed = new Set(
    [...page.matchAll(/^(?:[-*|#]+\s*)?\W*([A-Z]{1,3}\d+)\b/gm)].map((match) => match[1] ?? ""),
  );
  const proven = new Set(testTitles(tree).flatMap(idsIn));
  return [
    ...[...proven]
      .filter((id) => !listed.has(id))
      .map(
        (id) =>
          `[${id}] is in a test title but not in ${conformancePage}: state what it promises there.`,
      ),
    ...[...listed]
      .filter((id) => !proven.has(id))
      .map((id) => `${conformancePage} lists ${id} but no test title has [${id}]: write the test.`),
  ];
}

function idsIn(title: string): readonly string[] {
  return [...title.matchAll(/\[([A-Z]{1,3}\d+)\]/g)].map((match) => match[1] ?? "");
}

function testTitles(tree: Tree): readonly string[] {
  const titles: string[] = [];
  for (const [file, text] of tree) {
    if (!isCode(file) || !isTest(file) || file.startsWith("test/tidy/")) continue;
    for (const node of parse(file, text).all()) {
      const name = node.type === "CallExpression" ? rootName(node) : undefined;
      if (name === undefined || !["test", "it", "describe"].includes(name)) continue;
      titles.push(node.children("arguments")[0]?.text ?? "");
    }
  }
  return titles;
}

/** A wrong README is a failing test: its code is quoted from examples/. */
export function readmeSnippets(tree: Tree): readonly string[] {
  const readme = tree.get("README.md");
  if (readme === undefined)
    return ["README.md is missing: open with one sentence and an example that runs."];
  const examples = [...tree]
    .filter(([file]) => file.startsWith("examples/") && isCode(file))
    .map(([, text]) => text);
  return [...readme.matchAll(/^```ts\n(.*?)^```$/gms)]
    .map((match) => match[1] ?? "")
    .filter((snippet) => !examples.some((text) => text.includes(snippet)))
    .map(
      (snippet) =>
        `README.md: the block that begins "${snippet.split("\n")[0]}" is in no file of examples/: quote a running example word for word.`,
    );
}

const mapPage = "ARCHITECTURE.md";

/** A map that names a file which is gone leads astray: files in backquotes are found by the end of their path. */
export function brokenMap(tree: Tree): readonly string[] {
  const named = (tree.get(mapPage) ?? "").matchAll(/`([a-z0-9.-]+(?:\/[a-z0-9.-]+)*\.(?:ts|js))`/g);
  const files = [...tree.keys()];
  return [...new Set([...named].map((match) => match[1] ?? ""))]
    .filter((name) => !files.some((file) => `/${file}`.endsWith(`/${name}`)))
    .map((name) => `${mapPage} names ${name}, which is not there: name the file that has it now.`);
}

const recipePage = "CONTRIBUTING.md";

/** Paths and scripts of the recipes exist: paths are written from the root, in backquotes or commands. */
export function absentFromRecipes(tree: Tree): readonly string[] {
  const page = tree.get(recipePage);
  if (page === undefined)
    return [`${recipePage} is missing: give each recipe its files and the command that proves it.`];
  const quoted = [...page.matchAll(/^```\w*\n(.*?)^```$|`([^`\n]+)`/gms)]
    .map(([, block, span]) => block ?? span ?? "")
    .join("\n");
  const paths = quoted.match(/(?<=^|\s)(?:src|test|docs|scripts|bench|examples)\/[\w./-]+/gm) ?? [];
  const files = [...tree.keys()];
  const { scripts = {} } = JSON.parse(tree.get("package.json") ?? "{}") as {
    readonly scripts?: Readonly<Record<string, string>>;
  };
  const commands = [...quoted.matchAll(/npm run ([\w:-]+)/g)].map((match) => match[1] ?? "");
  return [
    ...[...new Set(paths)]
      .map((path) => path.replace(/\/$/, ""))
      .filter((path) => !files.some((file) => file === path || file.startsWith(`${path}/`)))
      .map(
        (path) => `${recipePage} names ${path}, which is not there: name the file that has it now.`,
      ),
    ...[...new Set(commands)]
      .filter((name) => !Object.hasOwn(scripts, name))
      .map((name) => `${recipePage} names "npm run ${name}", which package.json does not have.`),
  ];
}
