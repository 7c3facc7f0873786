import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

/** Text files by their path from the root. Rules see nothing else. */
export type Tree = ReadonlyMap<string, string>;

const root = fileURLToPath(new URL("../../", import.meta.url));

/** Every text file that git tracks or would track. */
export function readTree(): Tree {
  const listed = execFileSync(
    "git",
    ["ls-files", "-z", "--cached", "--others", "--exclude-standard"],
    { cwd: root, encoding: "utf8" },
  );
  const tree = new Map<string, string>();
  for (const file of new Set(listed.split("\0"))) {
    const location = path.join(root, file);
    if (file === "" || !existsSync(location)) continue;
    const text = readFileSync(location, "utf8");
    if (!text.includes("\0")) tree.set(file, text);
  }
  return tree;
}

/** A tree of examples: what the rules' own tests are written with. */
export function treeOf(files: Readonly<Record<string, string>>): Tree {
  return new Map(Object.entries(files));
}

export function isCode(file: string): boolean {
  return /\.(ts|js|mjs)$/.test(file);
}

export function isTest(file: string): boolean {
  return file.startsWith("test/") || file.endsWith(".test.ts");
}

/** A list of names, one per subpath of the package: it holds no ideas. */
export function isDoor(file: string): boolean {
  return /^src\/[^/]+\.ts$/.test(file);
}

export function isGenerated(file: string): boolean {
  return file.endsWith(".generated.ts");
}
