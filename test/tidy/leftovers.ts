import { isCode } from "./tree.ts";
import type { Tree } from "./tree.ts";

interface Leftover {
  readonly pattern: RegExp;
  readonly codeOnly: boolean;
  readonly fix: string;
}

const leftovers: readonly Leftover[] = [
  {
    pattern: /\b(TODO|FIXME|XXX)\b/,
    codeOnly: false,
    fix: "do it now, or file an issue",
  },
  {
    pattern: /\b(test|it|describe)(\.\w+)*\.(only|skip|todo)\b/,
    codeOnly: true,
    fix: "run every test, or delete the one you do not need",
  },
  {
    pattern: /(?<![\w.}-])\/(work\/|root\b)/,
    codeOnly: false,
    fix: "name paths from the root of the project",
  },
  {
    pattern: /\/\/[\w.-]*registry[\w-]*\.|\bregistry\.(npm|yarn)|"resolved": "\w+:/,
    codeOnly: false,
    fix: "registries are the installer's business: keep omit-lockfile-registry-resolved in .npmrc",
  },
];

/** What was meant for a while and would stay forever. */
export function leftBehind(tree: Tree): readonly string[] {
  const problems: string[] = [];
  for (const [file, text] of tree) {
    // This folder quotes what it forbids.
    if (file.startsWith("test/tidy/")) continue;
    for (const { pattern, codeOnly, fix } of leftovers) {
      if (codeOnly && !isCode(file)) continue;
      text.split("\n").forEach((line, index) => {
        const found = pattern.exec(line)?.[0];
        if (found !== undefined) problems.push(`${file}:${index + 1}: "${found}": ${fix}.`);
      });
    }
  }
  return problems;
}
