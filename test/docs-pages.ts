import { readFileSync, readdirSync } from "node:fs";
import path from "node:path";

const root = path.join(import.meta.dirname, "..");

/** Everything that a user is told, by its path from the root. */
export const pages: ReadonlyMap<string, string> = new Map(
  [
    "README.md",
    "llms.txt",
    "skills/holdfast/SKILL.md",
    ...readdirSync(path.join(root, "docs"))
      .filter((name) => name.endsWith(".md"))
      .map((name) => `docs/${name}`),
  ].map((page) => [page, readFileSync(path.join(root, page), "utf8")]),
);

/** A piece of code in a page. */
export interface Block {
  /** Tells where it stands. */
  readonly name: string;
  readonly language: string;
  readonly code: string;
}

export const blocks: readonly Block[] = [...pages].flatMap(([page, text]) =>
  [...text.matchAll(/^```(\w*)\n([^]*?)^```$/gm)].map(
    ({ 1: language = "", 2: code = "", index }): Block => {
      const line = text.slice(0, index).split("\n").length;
      const stem = page.replace(/\.\w+$/, "").replaceAll("/", "-");
      return { name: `${stem}-line-${line}`, language, code };
    },
  ),
);

export const typeScript: readonly Block[] = blocks.filter(({ language }) => language === "ts");
