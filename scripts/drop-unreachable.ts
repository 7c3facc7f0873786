import { existsSync, readFileSync, readdirSync, rmSync, rmdirSync } from "node:fs";
import path from "node:path";

/** The specifiers of a declaration's imports and exports, also of `import("…")` types. */
const specifiers = /\b(?:from|import)\s*\(?\s*"(\.[^"]+)"/g;

/**
 * Removes the declarations that no entry leads to: users can import only the
 * entries, so nothing else can ever be looked up.
 */
export function dropUnreachable(folder: string, entries: readonly string[]): void {
  const reached = new Set<string>();
  const waiting = entries.map((entry) => path.join(folder, entry));
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    if (reached.has(file)) continue;
    reached.add(file);
    for (const [, specifier = ""] of readFileSync(file, "utf8").matchAll(specifiers)) {
      const target = path.join(path.dirname(file), specifier.replace(/\.[jt]s$/, ".d.ts"));
      if (!existsSync(target)) throw new Error(`${file} imports "${specifier}", which is missing.`);
      waiting.push(target);
    }
  }
  for (const file of readdirSync(folder, { recursive: true, encoding: "utf8" }))
    if (file.endsWith(".d.ts") && !reached.has(path.join(folder, file)))
      rmSync(path.join(folder, file));
  removeEmptyFolders(folder);
}

function removeEmptyFolders(folder: string): void {
  for (const entry of readdirSync(folder, { withFileTypes: true }))
    if (entry.isDirectory()) removeEmptyFolders(path.join(folder, entry.name));
  if (readdirSync(folder).length === 0) rmdirSync(folder);
}
