import path from "node:path";
import { parse } from "./syntax.ts";
import type { Syntax } from "./syntax.ts";
import { isCode, isTest } from "./tree.ts";
import type { Tree } from "./tree.ts";

/**
 * Through these files one aggregate may reach into another: its page, its
 * rows, the parts of transactions that it offers, what it announces, and what
 * a check of its tables is made of.
 */
const openFiles = /(-row|^parts|^topics|^session-name|^table-checks(-beside)?|^context)$/;

/**
 * Folders that may import each other. The end of an execution ends the process that stands for it,
 * in one transaction. A client starts schedules, which start runs through it, and a handle exports
 * the history that a replay reads.
 */
const allowedPairs: ReadonlySet<string> = new Set([
  "stores/execution stores/process",
  "runtime/client runtime/schedules",
  "runtime/client runtime/history",
]);

/** `stores/queue` of src/stores/queue/claim.ts; undefined for files directly in src/stores. */
function partOf(file: string): string | undefined {
  const [, floor, folder, ...rest] = file.split("/");
  const isDivided = floor === "stores" || floor === "runtime";
  return isDivided && rest.length > 0 ? `${floor}/${folder}` : undefined;
}

interface PartImport {
  readonly file: string;
  readonly target: string;
  readonly from: string;
  readonly to: string;
}

function* importsBetweenParts(tree: Tree): Generator<PartImport, void> {
  for (const [file, text] of tree) {
    const from = partOf(file);
    if (from === undefined || !isCode(file) || isTest(file)) continue;
    for (const node of parse(file, text).children("body")) {
      const specifier = node.child("source")?.value("value");
      if (typeof specifier !== "string" || !specifier.startsWith(".")) continue;
      const target = path.posix.join(path.posix.dirname(file), specifier);
      const to = partOf(target);
      if (to !== undefined && to !== from) yield { file, target, from, to };
    }
  }
}

/** One aggregate sees of another its page and its rows, not how it works. */
export function closedDoors(tree: Tree): readonly string[] {
  const problems: string[] = [];
  for (const { file, target, from } of importsBetweenParts(tree)) {
    if (!from.startsWith("stores/")) continue;
    const name = path.posix.basename(target, ".ts");
    if (openFiles.test(name) || isPage(target, tree.get(target) ?? "")) continue;
    problems.push(
      `${file} imports ${target}: reach into another aggregate through its page, its row file or its parts.ts.`,
    );
  }
  return problems;
}

/** No two folders of a floor import each other: then neither could be read without the other. */
export function mutualImports(tree: Tree): readonly string[] {
  const pairs = new Map<string, string>();
  for (const { file, from, to } of importsBetweenParts(tree)) pairs.set(`${from} ${to}`, file);
  const problems: string[] = [];
  for (const [pair, file] of pairs) {
    const [from, to] = pair.split(" ");
    const back = pairs.get(`${to} ${from}`);
    if (back === undefined || String(from) > String(to)) continue;
    if (allowedPairs.has(pair) || allowedPairs.has(`${to} ${from}`)) continue;
    problems.push(
      `src/${from} and src/${to} import each other (${file}, ${back}): move what both need to one of them, or below both.`,
    );
  }
  return problems;
}

/** src/stores/queue/queue.ts, which exports `interface Queue {`. */
export function isPage(file: string, text: string): boolean {
  const name = /^src\/stores\/.*\/([a-z-]+)\.ts$/.exec(file)?.[1];
  if (name === undefined) return false;
  const type = name.replaceAll(/(?:^|-)([a-z])/g, (_, letter: string) => letter.toUpperCase());
  return new RegExp(`export interface ${type}\\b[^;]*\\{`).test(text);
}

const writing = /\b(INSERT INTO|UPDATE|DELETE FROM)\s/;

/**
 * A predicate asks and a participle is a value: neither `isConsumed` nor
 * `recorded` may write. Those that act are named by a verb.
 */
export function writingAnswers(tree: Tree): readonly string[] {
  const problems: string[] = [];
  for (const [file, text] of tree) {
    if (!file.startsWith("src/") || !isCode(file) || isTest(file)) continue;
    for (const node of parse(file, text).all()) {
      const name = node.child("id")?.value("name");
      if (node.type !== "FunctionDeclaration" || typeof name !== "string") continue;
      const kind = kindOf(name);
      if (kind === undefined || !writes(node)) continue;
      problems.push(
        `${file}:${node.firstLine}: ${name} is named like a ${kind} and writes: name it by a verb.`,
      );
    }
  }
  return problems;
}

function kindOf(name: string): "predicate" | "value" | undefined {
  if (/^(is|has)[A-Z]/.test(name)) return "predicate";
  return /^[a-z]+ed([A-Z]|$)/.test(name) && !/^(need|seed|feed|embed)/.test(name)
    ? "value"
    : undefined;
}

function writes(body: Syntax): boolean {
  for (const node of body.all())
    if (
      node.type === "TaggedTemplateExpression" &&
      node.child("tag")?.text === "sql" &&
      writing.test(node.text)
    )
      return true;
  return false;
}

const shortFileLines = 30;

/** A short file whose one function only calls another one is a detour. */
export function forwardingFiles(tree: Tree): readonly string[] {
  const problems: string[] = [];
  for (const [file, text] of tree) {
    if (!file.startsWith("src/stores/") || isTest(file)) continue;
    if (text.trimEnd().split("\n").length >= shortFileLines) continue;
    const own = parse(file, text)
      .children("body")
      .filter(({ type }) => type !== "ImportDeclaration");
    if (own.length === 1 && own.every(isForwarding))
      problems.push(`${file} only forwards: call what is behind it, and delete the file.`);
  }
  return problems;
}

function isForwarding(statement: Syntax): boolean {
  const declared = statement.child("declaration");
  if (declared?.type !== "FunctionDeclaration") return false;
  const lines = declared.child("body")?.children("body") ?? [];
  const [only] = lines;
  if (lines.length !== 1 || only === undefined) return false;
  const called =
    only.type === "ReturnStatement" ? only.child("argument") : only.child("expression");
  return called?.type === "CallExpression";
}
