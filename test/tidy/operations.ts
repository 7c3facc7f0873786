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
  const problems: string[] = [];
  for (const [file, own] of pieces) {
    const program = parse(file, tree.get(file) ?? "");
    const known = new Set([...own, ...importedPieces(file, program, pieces)]);
    for (const node of program.all()) {
      const callee = node.child("callee");
      if (node.type !== "CallExpression" || callee?.type !== "Identifier")
        continue;
      const name = callee.text;
      if (known.has(name) && !isDriven(node))
        problems.push(
          `${file}:${node.firstLine}: ${name}(…) does nothing by itself: write "yield* ${name}(…)", give it to database.write or database.read, or drive it (drive…(${name}(…))).`,
        );
    }
  }
  return problems;
}

/** `const append = operation(…)` and `function* locked(…): Tx<…>`. */
function declaredPieces(program: Syntax): ReadonlySet<string> {
  const names = new Set<string>();
  for (const node of program.all()) {
    const isOperation =
      node.type === "VariableDeclarator" &&
      /^(operation|storeOperation)$/.test(
        node.child("init")?.child("callee")?.text ?? "",
      );
    const isBody =
      node.type === "FunctionDeclaration" &&
      /^:\s*Tx</.test(node.child("returnType")?.text ?? "");
    const name = node.child("id")?.value("name");
    if ((isOperation || isBody) && typeof name === "string") names.add(name);
  }
  return names;
}

function* importedPieces(
  file: string,
  program: Syntax,
  pieces: ReadonlyMap<string, ReadonlySet<string>>,
): Generator<string, void> {
  const everyPiece = new Set([...pieces.values()].flatMap((set) => [...set]));
  for (const node of program.all()) {
    if (node.type !== "ImportSpecifier") continue;
    const from = String(node.parent?.child("source")?.value("value"));
    const target = path.posix.join(path.posix.dirname(file), from);
    const isDoor = /^holdfast\b/.test(from) || /^src\/[^/]+$/.test(target);
    const offered = isDoor ? everyPiece : pieces.get(target);
    const local = node.child("local")?.text;
    if (offered?.has(node.child("imported")?.text ?? "") && local !== undefined)
      yield local;
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
      return (
        parent.children("params").length === 0 ||
        parent.parent?.type !== "CallExpression"
      );
    case "ReturnStatement":
      return enclosingFunction(parent)?.value("generator") === false;
    default:
      return false;
  }
}

function enclosingFunction(node: Syntax): Syntax | undefined {
  let outer = node.parent;
  while (outer !== undefined && !/Function/.test(outer.type))
    outer = outer.parent;
  return outer;
}
