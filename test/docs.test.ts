import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { blocks, pages, typeScript } from "./docs-pages.ts";

const root = path.join(import.meta.dirname, "..");

describe("code of the documents", () => {
  test("is found on every page that has some", () => {
    const names = typeScript.map(({ name }) => name.replace(/-line-\d+$/, ""));
    expect(new Set(names)).toEqual(
      new Set(
        [...pages]
          .filter(([, text]) => text.includes("```ts"))
          .map(([page]) => page.replace(/\.\w+$/, "").replaceAll("/", "-")),
      ),
    );
    expect(names).toContain("docs-workflows");
  });

  test("is TypeScript, SQL or JSON, which are tried, or what only a machine of its own could try", () => {
    const others = ["json", "sh", "text", "ini", "dockerfile"];
    expect(blocks.filter(({ language }) => !["ts", "sql", ...others].includes(language))).toEqual(
      [],
    );
    for (const { language, code } of blocks)
      if (language === "json") expect(() => JSON.parse(code) as unknown).not.toThrow();
  });
});

describe("links of the documents", () => {
  /** Pages that are not in the package are linked by their address. */
  const repository = /^https:\/\/github\.com\/holdfast-dev\/holdfast\/(?:blob|tree)\/main\//;
  const links = [...pages].flatMap(([page, text]) =>
    [...text.matchAll(/\]\(([^)#]*)(?:#([^)]+))?\)/g)]
      .filter(([, target = ""]) => repository.test(target) || !/^https?:/.test(target))
      .map(([, target = "", heading]) => ({
        page,
        target: repository.test(target)
          ? target.replace(repository, "")
          : path.join(path.dirname(page), target === "" ? path.basename(page) : target),
        heading,
      })),
  );

  test("lead to files", () => {
    expect(links.length).toBeGreaterThan(50);
    expect(links.filter(({ target }) => !existsSync(path.join(root, target)))).toEqual([]);
  });

  test("lead to headings", () => {
    const missing = links.filter(({ target, heading }) => {
      if (heading === undefined) return false;
      const text = readFileSync(path.join(root, target), "utf8");
      return !headingsOf(text).includes(heading);
    });
    expect(missing).toEqual([]);
  });

  test("reach every page of docs from README or llms.txt", () => {
    const told = new Set(
      links
        .filter(({ page }) => ["README.md", "llms.txt"].includes(page))
        .map(({ target }) => target),
    );
    expect([...pages.keys()].filter((page) => page.startsWith("docs/") && !told.has(page))).toEqual(
      [],
    );
  });
});

/** As GitHub names them. */
function headingsOf(text: string): readonly string[] {
  return [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
      .trim()
      .replaceAll(/\s/g, "-"),
  );
}
