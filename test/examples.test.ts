import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";

const root = join(import.meta.dirname, "..");

/** Runs an example as a user would, in an empty folder. */
function runExample(name: string, env: Record<string, string> = {}): string {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-example-"));
  try {
    return execFileSync(
      process.execPath,
      ["--import", import.meta.resolve("tsx"), join(root, "examples", name)],
      {
        cwd: folder,
        encoding: "utf8",
        env: {
          ...process.env,
          TSX_TSCONFIG_PATH: join(root, "tsconfig.json"),
          ...env,
        },
      },
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The comment block after `// Output:` at the end of an example. */
function promisedOutput(name: string): string | undefined {
  const [, output] = readFileSync(join(root, "examples", name), "utf8").split(
    "\n// Output:\n",
  );
  return output?.replaceAll(/^\/\/ ?/gm, "");
}

describe("examples", () => {
  const names = readdirSync(join(root, "examples")).filter(
    (name) => promisedOutput(name) !== undefined,
  );

  test("there is one to run", () => expect(names).toContain("quickstart.ts"));

  test.each(names)("%s prints what it promises", (name) => {
    expect(runExample(name)).toBe(promisedOutput(name));
  });

  test("the demo kills a writer, sees it die, and finds every acknowledged fact", () => {
    const output = runExample("kernel-demo.ts", {
      HOLDFAST_DEMO_FACTS: "2000",
    });
    expect(output).toMatch(/its death was proven [\d.]+ ms later/);
    expect(output).toMatch(/acknowledged facts {9}[\d,]{5,}\n/);
    expect(output).toContain("facts half there           0\n");
    expect(output).toContain("damage found               none\n");
    expect(output).toContain("Nothing acknowledged was lost.");
  });
});
