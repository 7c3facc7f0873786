import path from "node:path";
import { parse } from "./syntax.ts";
import { isDoor } from "./tree.ts";
import type { Tree } from "./tree.ts";

/**
 * The doors together hand out so many names and no more: each is one that a
 * user must know of, and that we must keep. `npm run check:package` holds the
 * other side: what a method answers has a name, or needs none.
 */
export function tooManyNames(tree: Tree, namesMax: number): readonly string[] {
  const counts = [...tree.keys()]
    .filter(isDoor)
    .map((door) => ({ door, names: namesOf(door, tree.get(door) ?? "") }));
  const total = counts.reduce((sum, { names }) => sum + names, 0);
  if (total <= namesMax) return [];
  const each = counts.map(({ door, names }) => `${path.basename(door, ".ts")} ${names}`).join(", ");
  return [
    `The doors hand out ${total} names (${each}), ${namesMax} at most: let a page write down small answers where they stand, leave out options and parts that nobody names, or raise the number and say why (docs/adr, "doors hand out what is written down").`,
  ];
}

function namesOf(door: string, text: string): number {
  return parse(door, text)
    .children("body")
    .reduce((sum, each) => sum + each.children("specifiers").length, 0);
}
