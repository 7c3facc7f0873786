import path from "node:path";
import { parse } from "./syntax.ts";
import type { Syntax } from "./syntax.ts";
import { isCode, isTest } from "./tree.ts";
import type { Tree } from "./tree.ts";

/** Which folders (or single files) of src/ each folder of src/ may import. */
export type ImportRules = Readonly<Record<string, readonly string[]>>;

/** Folders import downwards only; model/ imports nothing at all. */
export function importDirections(tree: Tree, mayImport: ImportRules): readonly string[] {
  const problems: string[] = [];
  for (const [file, text] of tree) {
    if (!file.startsWith("src/") || !isCode(file) || isTest(file)) continue;
    const room = roomOf(file);
    if (room === undefined) continue;
    const allowed = mayImport[room];
    if (allowed === undefined) {
      problems.push(
        `${file}: the folder src/${room}/ has no rule: add it to mayImport in test/tidy.test.ts, or use a folder of the layout.`,
      );
      continue;
    }
    for (const specifier of specifiersOf(parse(file, text))) {
      const problem = judge(file, room, allowed, specifier);
      if (problem !== undefined) problems.push(`${file}: ${problem}`);
    }
  }
  return problems;
}

function judge(
  file: string,
  room: string,
  allowed: readonly string[],
  specifier: string,
): string | undefined {
  if (!specifier.startsWith(".")) {
    return room === "model"
      ? `model/ is pure and imports only itself, not "${specifier}": pass what you need as an argument.`
      : undefined;
  }
  const target = path.posix.join(path.posix.dirname(file), specifier);
  const targetRoom = roomOf(target);
  if (!target.startsWith("src/"))
    return `src/ is what users install and may not import ${target}: move the code into src/.`;
  if (targetRoom === undefined)
    return `${target} is a door, for users: import the module behind it.`;
  if (targetRoom === room || allowed.includes(targetRoom)) return undefined;
  if (allowed.includes(target.slice("src/".length))) return undefined;
  const list = allowed.length === 0 ? "nothing else" : allowed.join(", ");
  return `${room}/ may import ${list}, not ${target}: move the code down, or pass it in from above.`;
}

/** The doors only re-export, and nothing else does. */
export function doorsAndBarrels(tree: Tree): readonly string[] {
  const problems: string[] = [];
  for (const [file, text] of tree) {
    if (!file.startsWith("src/") || !isCode(file) || isTest(file)) continue;
    const statements = parse(file, text).children("body");
    const isDoor = roomOf(file) === undefined;
    const own = statements.find((statement) => !isReExport(statement));
    if (isDoor && own !== undefined)
      problems.push(
        `${file}:${own.firstLine}: a door only re-exports by name: move this into a folder of src/.`,
      );
    if (!isDoor && own === undefined && statements.length > 0)
      problems.push(
        `${file}: only the doors re-export: import from the module itself and delete this file.`,
      );
  }
  return problems;
}

function isReExport(statement: Syntax): boolean {
  return statement.type === "ExportNamedDeclaration" && statement.child("source") !== undefined;
}

/** `model` of src/model/ids.ts; undefined for the doors, which have no room. */
function roomOf(file: string): string | undefined {
  const parts = file.split("/");
  return parts.length > 2 ? parts[1] : undefined;
}

/** What a file names in imports and re-exports, types and import() included. */
function* specifiersOf(program: Syntax): Generator<string, void> {
  for (const node of program.all()) {
    if (!importing.has(node.type)) continue;
    const specifier = node.child("source")?.value("value");
    if (typeof specifier === "string") yield specifier;
  }
}

const importing = new Set([
  "ImportDeclaration",
  "ExportNamedDeclaration",
  "ExportAllDeclaration",
  "ImportExpression",
  "TSImportType",
]);
