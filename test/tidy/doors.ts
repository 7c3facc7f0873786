import path from "node:path";
import { parse } from "./syntax.ts";
import type { Syntax } from "./syntax.ts";
import { isDoor } from "./tree.ts";
import type { Tree } from "./tree.ts";

/** A name of a file: `src/model/clock.ts#Clock`. */
type Place = string;

/** Made to be used through others: what tells ids apart, and what a body yields. */
const opaque: ReadonlySet<Place> = new Set([
  "src/model/ids/brand.ts#Branded",
  "src/sql/operation.ts#Request",
]);

/**
 * A type that a user can see in a signature can also be imported by its name.
 * A helper that its own module keeps to itself is looked through.
 */
export function unexportedTypes(tree: Tree): readonly string[] {
  const doors = [...tree.keys()].filter(isDoor);
  const handedOut = new Map<Place, string>();
  for (const door of doors)
    for (const place of reExports(door, parse(door, tree.get(door) ?? "")))
      handedOut.set(originOf(tree, place), door);
  const problems = new Set<string>();
  for (const [place, door] of handedOut)
    for (const seen of seenIn(tree, place, new Set()))
      if (!handedOut.has(seen.place) && !opaque.has(seen.place))
        problems.add(
          `${door}: ${nameOf(place)} shows the type ${nameOf(seen.place)} of ${fileOf(seen.place)}: export that too.`,
        );
  return [...problems];
}

function reExports(file: string, program: Syntax): readonly Place[] {
  return program.children("body").flatMap((statement) => {
    const from = statement.child("source")?.value("value");
    if (statement.type !== "ExportNamedDeclaration" || typeof from !== "string")
      return [];
    return statement
      .children("specifiers")
      .map((one) => placeOf(file, from, identifier(one.child("local"))));
  });
}

/** Where a name is declared, through files that only hand it on. */
function originOf(tree: Tree, place: Place): Place {
  const file = fileOf(place);
  const text = tree.get(file);
  if (text === undefined) return place;
  const name = `#${nameOf(place)}`;
  const next = reExports(file, parse(file, text)).find((one) =>
    one.endsWith(name),
  );
  return next === undefined ? place : originOf(tree, next);
}

function placeOf(file: string, specifier: string, name: string): Place {
  return `${path.posix.join(path.posix.dirname(file), specifier)}#${name}`;
}

const fileOf = (place: Place): string => place.slice(0, place.indexOf("#"));
const nameOf = (place: Place): string => place.slice(place.indexOf("#") + 1);

function identifier(node: Syntax | undefined): string {
  const name = node?.value("name");
  return typeof name === "string" ? name : "";
}

interface Seen {
  readonly place: Place;
}

/** The types that a declaration shows and that another module could import. */
function* seenIn(
  tree: Tree,
  place: Place,
  looked: Set<Place>,
): Generator<Seen, void> {
  if (looked.has(place)) return;
  looked.add(place);
  const file = fileOf(place);
  const text = tree.get(file);
  if (text === undefined) return;
  const program = parse(file, text);
  const found = declarationOf(program, nameOf(place));
  if (found === undefined) return;
  const imported = importsOf(file, program);
  for (const name of typeNamesIn(found.declaration)) {
    const elsewhere = imported.get(name);
    if (elsewhere !== undefined) {
      if (tree.has(fileOf(elsewhere)))
        yield { place: originOf(tree, elsewhere) };
      continue;
    }
    const local = declarationOf(program, name);
    if (local === undefined) continue;
    if (local.isExported) yield { place: `${file}#${name}` };
    else yield* seenIn(tree, `${file}#${name}`, looked);
  }
}

function importsOf(file: string, program: Syntax): ReadonlyMap<string, Place> {
  const imported = new Map<string, Place>();
  for (const statement of program.children("body")) {
    const from = statement.child("source")?.value("value");
    if (statement.type !== "ImportDeclaration" || typeof from !== "string")
      continue;
    for (const one of statement.children("specifiers"))
      imported.set(
        identifier(one.child("local")),
        placeOf(file, from, identifier(one.child("imported"))),
      );
  }
  return imported;
}

interface Declaration {
  readonly declaration: Syntax;
  readonly isExported: boolean;
}

function declarationOf(program: Syntax, name: string): Declaration | undefined {
  for (const statement of program.children("body")) {
    const isExported = statement.type === "ExportNamedDeclaration";
    const declaration = isExported ? statement.child("declaration") : statement;
    if (declaration === undefined) continue;
    const names = [declaration, ...declaration.children("declarations")].map(
      (one) => identifier(one.child("id")),
    );
    if (names.includes(name)) return { declaration, isExported };
  }
  return undefined;
}

/** What is inside a body or an initial value is nobody's business. */
const hidden: ReadonlySet<string> = new Set([
  "BlockStatement",
  "FunctionBody",
  "ClassBody",
  "ArrowFunctionExpression",
  "FunctionExpression",
  "CallExpression",
]);

function* typeNamesIn(node: Syntax): Generator<string, void> {
  if (hidden.has(node.type)) return;
  if (node.type === "TSTypeReference") yield identifier(node.child("typeName"));
  if (node.type === "TSInterfaceHeritage" || node.type === "TSClassImplements")
    yield identifier(node.child("expression"));
  for (const child of node.below()) yield* typeNamesIn(child);
}
