import path from "node:path";
import type { Tree } from "./tree.ts";

/** What npm packs whatever `files` says. */
const always = ["package.json", "README.md", "LICENSE"];

/** The files of the tree that are in the package. Those of dist/ are built, and not in the tree. */
function shippedFiles(tree: Tree): ReadonlySet<string> {
  const { files } = JSON.parse(tree.get("package.json") ?? "{}") as { files?: readonly string[] };
  const isIn = (file: string, entry: string): boolean =>
    file === entry || file.startsWith(`${entry}/`);
  const shipped = [...tree.keys()].filter((file) =>
    (files ?? []).reduce(
      (found, entry) =>
        entry.startsWith("!") ? found && !isIn(file, entry.slice(1)) : found || isIn(file, entry),
      always.includes(file),
    ),
  );
  return new Set(shipped);
}

/**
 * Links of a page in the package lead to files in the package. Everything else
 * is named with its address in the repository, where it must be too.
 */
export function shippedLinks(tree: Tree): readonly string[] {
  const shipped = shippedFiles(tree);
  const { homepage = "" } = JSON.parse(tree.get("package.json") ?? "{}") as { homepage?: string };
  const repository = homepage.replace(/#.*$/, "");
  const problems: string[] = [];
  for (const page of shipped) {
    if (!/\.(md|txt)$/.test(page)) continue;
    for (const [, target = ""] of (tree.get(page) ?? "").matchAll(/\]\(([^)#\s]+)/g)) {
      const [, file] = /^\/(?:blob|tree)\/main\/(.+)$/.exec(target.slice(repository.length)) ?? [];
      if (target.startsWith(repository) && file !== undefined) {
        if (!hasPath(tree.keys(), file))
          problems.push(`${page} links to ${target}, but the repository has no ${file}.`);
      } else if (!/^\w+:/.test(target)) {
        const place = path.posix.join(path.posix.dirname(page), target);
        if (!hasPath(shipped, place))
          problems.push(
            `${page} links to ${place}, which the package lacks: link to ${repository}/blob/main/${place}, or add it to "files" in package.json.`,
          );
      }
    }
  }
  return problems;
}

/** True for a file and for a folder that has one. */
function hasPath(files: Iterable<string>, wanted: string): boolean {
  const place = wanted.replace(/\/$/, "");
  return [...files].some((file) => file === place || file.startsWith(`${place}/`));
}
