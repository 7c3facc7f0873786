import { spawnSync } from "node:child_process";
import {
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, test } from "vitest";

const root = path.join(import.meta.dirname, "..");
const folder = path.join(root, "docs");

/** The TypeScript of a page, by the place where it stands. */
const blocks = new Map<string, string>();
for (const page of readdirSync(folder))
  if (page.endsWith(".md")) {
    const text = readFileSync(path.join(folder, page), "utf8");
    for (const { 1: code = "", index } of text.matchAll(
      /^```ts\n([^]*?)^```$/gm,
    )) {
      const line = text.slice(0, index).split("\n").length;
      blocks.set(`${page.replace(".md", "")}-line-${line}.ts`, code);
    }
  }

test("every page with code is read", () => {
  expect([...blocks.keys()]).toContainEqual(
    expect.stringMatching(/^workflows-line-/),
  );
});

function inFolder(body: (place: string) => void): void {
  const place = mkdtempSync(path.join(tmpdir(), "holdfast-docs-"));
  try {
    body(place);
  } finally {
    rmSync(place, { recursive: true });
  }
}

test("code of the documents compiles as an app's would", () =>
  inFolder((place) => {
    for (const [name, code] of blocks)
      writeFileSync(path.join(place, name), code);
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

test("code of the documents that opens a database runs to its end, without a word on its errors", () =>
  inFolder((place) => {
    const runnable = [...blocks].filter(([, code]) =>
      /await open(Holdfast|Sqlite)\(/.test(code),
    );
    for (const [name, code] of runnable)
      writeFileSync(path.join(place, name.replace(/ts$/, "mts")), code);
    // One after the other, in one process: starting one takes longer than most of them.
    const all = runnable
      .map(([name]) => `await import("./${name.replace(/ts$/, "mts")}");\n`)
      .join("");
    writeFileSync(path.join(place, "all.mts"), `${all}console.log("done");\n`);
    const { stdout, stderr } = spawnSync(
      process.execPath,
      ["--import", import.meta.resolve("tsx"), "all.mts"],
      {
        cwd: place,
        encoding: "utf8",
        env: {
          ...process.env,
          TSX_TSCONFIG_PATH: path.join(root, "tsconfig.json"),
        },
      },
    );
    expect(stderr).toBe("");
    expect(stdout).toContain("Hello, Ada!");
    expect(stdout.trim().split("\n").at(-1)).toBe("done");
  }));
