import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { openHoldfast, workflow } from "../src/index.ts";
import { withFolder } from "./sqlite/place.ts";

const root = path.join(import.meta.dirname, "..");

/** Everything that a user is told, by its path from the root. */
const pages = new Map(
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
interface Block {
  /** Tells where it stands. */
  readonly name: string;
  readonly language: string;
  readonly code: string;
}

const blocks = [...pages].flatMap(([page, text]) =>
  [...text.matchAll(/^```(\w*)\n([^]*?)^```$/gm)].map(
    ({ 1: language = "", 2: code = "", index }): Block => {
      const line = text.slice(0, index).split("\n").length;
      const stem = page.replace(/\.\w+$/, "").replaceAll("/", "-");
      return { name: `${stem}-line-${line}`, language, code };
    },
  ),
);

const typeScript = blocks.filter(({ language }) => language === "ts");

function inFolder(body: (place: string) => void): void {
  const place = mkdtempSync(path.join(tmpdir(), "holdfast-docs-"));
  try {
    body(place);
  } finally {
    rmSync(place, { recursive: true });
  }
}

const isTest = (code: string): boolean => code.includes('from "node:test"');

function runWithTsx(place: string, args: readonly string[]) {
  return spawnSync(process.execPath, ["--import", import.meta.resolve("tsx"), ...args], {
    cwd: place,
    encoding: "utf8",
    env: {
      ...process.env,
      TSX_TSCONFIG_PATH: path.join(root, "tsconfig.json"),
      // What a page reads from the environment has its default.
      DATABASE_URL: undefined,
    },
  });
}

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

  test("compiles as an app's would", () =>
    inFolder((place) => {
      for (const { name, code } of typeScript) writeFileSync(path.join(place, `${name}.ts`), code);
      const config = {
        extends: path.join(root, "tsconfig.json"),
        compilerOptions: {
          paths: {
            holdfast: [path.join(root, "src/index.ts")],
            "holdfast/*": [path.join(root, "src/*.ts")],
          },
          typeRoots: [path.join(root, "node_modules/@types")],
        },
        include: [`${place}/*.ts`],
      };
      writeFileSync(path.join(place, "tsconfig.json"), JSON.stringify(config));
      writeFileSync(path.join(place, "package.json"), '{ "type": "module" }');
      const compiler = path.join(root, "node_modules/typescript/bin/tsc");
      const { stdout } = spawnSync(process.execPath, [compiler, "-p", place], {
        encoding: "utf8",
      });
      expect(stdout).toBe("");
    }));

  test("that is a test passes", () =>
    inFolder((place) => {
      const tests = typeScript.filter(({ code }) => isTest(code));
      for (const { name, code } of tests) writeFileSync(path.join(place, `${name}.test.mts`), code);
      const files = tests.map(({ name }) => `${name}.test.mts`);
      const { stdout } = runWithTsx(place, ["--test", ...files]);
      expect(stdout).toMatch(/^(#|ℹ) pass 1$/m);
      expect(stdout).toMatch(/^(#|ℹ) fail 0$/m);
    }));

  test("that opens and closes a database runs to its end, without a word on its errors", () =>
    inFolder((place) => {
      const runnable = typeScript.filter(
        ({ code }) =>
          /await (open(Holdfast|Sqlite)|testHoldfast)\(/.test(code) &&
          code.includes(".close()") &&
          !isTest(code),
      );
      for (const { name, code } of runnable) writeFileSync(path.join(place, `${name}.mts`), code);
      // One after the other, in one process: starting one takes longer than most of them.
      const all = runnable.map(({ name }) => `await import("./${name}.mts");\n`).join("");
      writeFileSync(path.join(place, "all.mts"), `${all}console.log("done");\n`);
      const { stdout, stderr } = runWithTsx(place, ["all.mts"]);
      expect(stderr).toBe("");
      expect(stdout).toContain("Hello, Ada!");
      expect(stdout).toContain("Do not forget, Ada!");
      expect(stdout).toContain("blocked 2026-01-02T00:00:00.000Z\nnot paid\n");
      expect(stdout).toContain("{ receipt: '500 at attempt 3' }\n3\n");
      expect(stdout.trim().split("\n").at(-1)).toBe("done");
    }));

  test("that is SQL finds a run in its tables", () =>
    withFolder(async (folder) => {
      const holdfast = await openHoldfast(folder.file());
      const fulfil = workflow("fulfil", async (ctx) => {
        await ctx.step("label", () => 1);
        await ctx.sleep("5ms");
      });
      await holdfast.work([fulfil]);
      const run = await holdfast.start(fulfil, undefined, { id: "order-42" });
      await run.result();
      await holdfast.close();
      const statements = blocks
        .filter(({ language }) => language === "sql")
        .flatMap(({ code }) => code.replaceAll(/^--.*\n/gm, "").split(";\n"))
        .map((statement) => statement.trim())
        .filter((statement) => statement !== "");
      expect(statements.length).toBeGreaterThan(4);
      // What cannot go on by itself is the one thing that is not there.
      for (const statement of statements)
        expect([statement, folder.shell([statement]).length > 0]).toEqual([
          statement,
          !statement.includes("lifecycle <> 'active'"),
        ]);
    }));
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
