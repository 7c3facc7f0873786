import { isPage } from "./house.ts";
import { parse } from "./syntax.ts";
import type { Syntax } from "./syntax.ts";
import { isCode, isDoor, isGenerated, isTest } from "./tree.ts";
import type { Tree } from "./tree.ts";

const fileLinesMax = 400;
/** The page of an aggregate is an interface with all of its documentation, and one table. */
const pageLinesMax = 600;
const functionLinesMax = 70;

export function longFiles(tree: Tree): readonly string[] {
  const problems: string[] = [];
  for (const [file, text] of tree) {
    if (!isCode(file) || isGenerated(file) || isDoor(file)) continue;
    // A suite reads from top to bottom, however long it is.
    if (file.endsWith(".suite.ts")) continue;
    const lines = text.trimEnd().split("\n").length;
    const linesMax = isPage(file, text) ? pageLinesMax : fileLinesMax;
    if (lines > linesMax)
      problems.push(
        `${file} has ${lines} lines, at most ${linesMax} are allowed: give each idea in it a file.`,
      );
  }
  return problems;
}

export function longFunctions(tree: Tree): readonly string[] {
  const problems: string[] = [];
  for (const [file, text] of tree) {
    if (!isCode(file) || isGenerated(file)) continue;
    for (const node of parse(file, text).all()) {
      if (!functions.has(node.type)) continue;
      const lines = node.lastLine - node.firstLine + 1;
      if (lines <= functionLinesMax) continue;
      if (isTest(file) && holdsTests(node)) continue;
      problems.push(
        `${file}:${node.firstLine}: a function of ${lines} lines, at most ${functionLinesMax} are allowed: name its parts.`,
      );
    }
  }
  return problems;
}

/** A describe block is a chapter, not a function: its tests are measured. */
function holdsTests(node: Syntax): boolean {
  return /\b(describe|test)[.(]/.test(node.text);
}

const functions = new Set(["FunctionDeclaration", "FunctionExpression", "ArrowFunctionExpression"]);

/** Names that say nothing about what is inside. */
const emptyNames = ["util", "utils", "common", "helper", "helpers", "types", "manager"];

export function emptyFileNames(tree: Tree): readonly string[] {
  const problems: string[] = [];
  for (const file of tree.keys()) {
    if (!isCode(file)) continue;
    const parts = file.split("/");
    // test/types/ holds tests of types; below src/ folders are named too.
    const named = file.startsWith("src/") ? parts : parts.slice(-1);
    const words = named.flatMap((part) => part.split(/[.-]/));
    const empty = words.find((word) => emptyNames.includes(word));
    if (empty !== undefined)
      problems.push(`${file}: "${empty}" names a drawer: name the file after what it does.`);
  }
  return problems;
}
