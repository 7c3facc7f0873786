import { threadsFile } from "../../scripts/render-threads.ts";
import type { Tree } from "./tree.ts";

/** A process gets its text on its command line, which Windows limits to 32,767 characters. */
const textCharsMax = 16_000;

/** What our threads run is in the tree as their entries and what those import say. */
export function embeddedThreads(tree: Tree, rendered: string): readonly string[] {
  const problems: string[] = [];
  if (tree.get(threadsFile) !== rendered)
    problems.push(`${threadsFile} is not what the entries say: run "npm run threads".`);
  for (const [, name, text = ""] of rendered.matchAll(
    /^export const (\w+): string =\n {2}(.*);$/gm,
  ))
    if (text.length > textCharsMax)
      problems.push(
        `${threadsFile}: ${name} has ${text.length} characters, at most ${textCharsMax} are allowed: let it import less.`,
      );
  return problems;
}
