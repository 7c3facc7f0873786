import path from "node:path";
import { parse } from "./syntax.ts";
import type { Syntax } from "./syntax.ts";
import { isCode } from "./tree.ts";
import type { Tree } from "./tree.ts";

/**
 * Calls of operations, and of functions that return Tx, which nobody drives.
 * Such a call only makes a generator: it compiles and does nothing.
 */
export function undelegatedOperations(tree: Tree): readonly string[] {
  const pieces = new Map<string, ReadonlySet<string>>();
  for (const [file, text] of tree)
    if (isCode(file)) pieces.set(file, declaredPieces(parse(file, text)));
  const everyPiece = new Set([...pieces.values()].flatMap((set) => [...set]));
  const problems: string[] = [];
  for (const [file, own] of pieces) {
    const program = parse(file, tree.get(file) ?? "");
    const offeredBy = (from: string): ReadonlySet<string> | undefined => {
      const target = path.posix.join(path.posix.dirname(file), from);
      const isDoor = /^holdfast\b/.test(from) || /^src\/[^/]+$/.test(target);
      return isDoor ? everyPiece : pieces.get(target);
    };
    const known = new Set([...own, ...importedPieces(program, offeredBy)]);
    if (known.size === 0) continue;
    for (const node of program.all()) {
      if (node.type !== "CallExpression") continue;
      const name = pieceCalled(node.child("callee"));
      if (known.has(name) && !isDriven(node))
        problems.push(
          `${file}:${node.firstLine}: ${name}(…) does nothing by itself: write "yield* ${name}(…)", give it to database.write or database.read, or drive it (drive…(${name}(…))).`,
        );
    }
  }
  return problems;
}

/** `append` of `append(input)`, and `append(…)` of `append(context)(input)`. */
function pieceCalled(callee: Syntax | undefined): string {
  if (callee?.type === "Identifier") return callee.text;
  const inner = callee?.child("callee");
  return callee?.type === "CallExpression" && inner?.type === "Identifier"
    ? `${inner.text}(…)`
    : "";
}

/** `const append = operation(…)`, `const append = storeOperation(…)`, which is given a context first, and `function* locked(…): Tx<…>`. */
function declaredPieces(program: Syntax): ReadonlySet<string> {
  const names = new Set<string>();
  for (const node of program.all()) {
    const maker =
      node.type === "VariableDeclarator" ? node.child("init")?.child("callee")?.text : undefined;
    const isOperation = maker === "operation" || maker === "plainOperation";
    const isBody =
      node.type === "FunctionDeclaration" && /^:\s*Tx</.test(node.child("returnType")?.text ?? "");
    const name = node.child("id")?.value("name");
    if (typeof name !== "string") continue;
    if (isOperation || isBody) names.add(name);
    if (maker === "storeOperation") names.add(`${name}(…)`);
  }
  return names;
}

function* importedPieces(
  program: Syntax,
  offeredBy: (from: string) => ReadonlySet<string> | undefined,
): Generator<string, void> {
  for (const statement of program.children("body")) {
    if (statement.type !== "ImportDeclaration") continue;
    const offered = offeredBy(String(statement.child("source")?.value("value")));
    for (const node of statement.children("specifiers")) {
      const local = node.child("local")?.text;
      const imported = node.child("imported")?.text ?? "";
      if (local === undefined) continue;
      if (offered?.has(imported)) yield local;
      if (offered?.has(`${imported}(…)`)) yield `${local}(…)`;
    }
  }
}

/** True where the generator that a call makes goes to somebody who drives it. */
function isDriven(call: Syntax): boolean {
  const parent = call.parent;
  switch (parent?.type) {
    case "YieldExpression":
      return parent.value("delegate") === true;
    case "MemberExpression": // By hand: append(a).next().
    case "TSAsExpression": // On purpose: a cast is needed to misuse it.
      return true;
    case "ConditionalExpression":
    case "LogicalExpression":
      return isDriven(parent);
    case "CallExpression":
      return parent.child("callee")?.text.startsWith("drive") === true;
    case "ArrowFunctionExpression":
      // `() => append(a)` is a body; `forEach((a) => append(a))` is a loss.
      return parent.children("params").length === 0 || parent.parent?.type !== "CallExpression";
    case "ReturnStatement":
      return enclosingFunction(parent)?.value("generator") === false;
    default:
      return false;
  }
}

function enclosingFunction(node: Syntax): Syntax | undefined {
  let outer = node.parent;
  while (outer !== undefined && !/Function/.test(outer.type)) outer = outer.parent;
  return outer;
}
