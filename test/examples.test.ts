import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { compiled } from "./compile-children.ts";
import { isDeep, seed } from "./depth.ts";

const root = join(import.meta.dirname, "..");

/** Runs an example as a user would, from a folder. */
function runExample(
  name: string,
  folder: string,
  env: Record<string, string> = {},
  script: readonly string[] = [compiled(name, "examples")],
): string {
  return execFileSync(process.execPath, script, {
    cwd: folder,
    encoding: "utf8",
    env: { ...process.env, TMPDIR: folder, ...env },
  });
}

/** An empty folder that is gone afterwards. */
function inFolder(body: (folder: string) => void): void {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-example-"));
  try {
    body(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** What a run has left; tsx keeps what it compiled in the folder for temporary files. */
const leftIn = (folder: string): readonly string[] =>
  readdirSync(folder).filter(
    (name) => !/^(tsx-|node-compile-cache)/.test(name),
  );

/** Starts the demo with a folder for temporary files of its own, and waits until its writers work. */
async function startDemo(temporary: string) {
  const demo = spawn(
    process.execPath,
    [compiled("kernel-demo.ts", "examples")],
    {
      env: {
        ...process.env,
        HOLDFAST_DEMO_FACTS: "100000000",
        TMPDIR: temporary,
      },
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  const writers = await new Promise<readonly number[]>((resolve, reject) => {
    let said = "";
    demo.stdout.on("data", (chunk) => {
      said += String(chunk);
      const found = [...said.matchAll(/is process (\d+)/g)];
      if (found.length === 2) resolve(found.map(([, id]) => Number(id)));
    });
    demo.on("exit", () => reject(new Error(`The demo ended early: ${said}`)));
  });
  return { demo, writers };
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
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

  /** README's app: what it has written is there when it is run again. */
  const keeping = "quickstart.ts";

  /** What leaves nothing finds nothing the second time: a short run tries that with a third, in turn by its seed. */
  const timesOf = (name: string): number =>
    isDeep || names.indexOf(name) % 3 === seed % 3 ? 2 : 1;

  test.each(names.filter((name) => name !== keeping))(
    "%s prints what it promises as often as it is run, and leaves nothing",
    (name) =>
      inFolder((folder) => {
        for (let times = 0; times < timesOf(name); times += 1)
          expect(runExample(name, folder)).toBe(promisedOutput(name));
        expect(leftIn(folder)).toEqual([]);
      }),
  );

  test("the first one prints what it promises, and its result alone when it is run again", () =>
    inFolder((folder) => {
      const promised = promisedOutput(keeping) ?? "";
      expect(runExample(keeping, folder)).toBe(promised);
      const result = promised.slice(promised.indexOf("{"));
      expect(runExample(keeping, folder)).toBe(result);
      expect(leftIn(folder)).toEqual(["orders.db"]);
    }));

  test("one runs from its source, too", () =>
    inFolder((folder) => {
      const script = [
        "--import",
        import.meta.resolve("tsx"),
        join(root, "examples", keeping),
      ];
      const env = { TSX_TSCONFIG_PATH: join(root, "tsconfig.json") };
      expect(runExample(keeping, folder, env, script)).toBe(
        promisedOutput(keeping),
      );
    }));

  test("the demo kills a writer, sees it die, finds every acknowledged fact, and leaves nothing", () =>
    inFolder((folder) => {
      const env = { HOLDFAST_DEMO_FACTS: "2000" };
      const output = runExample("kernel-demo.ts", folder, env);
      expect(output).toMatch(/its death was proven [\d.]+ ms later/);
      expect(output).toMatch(/acknowledged facts {9}[\d,]{5,}\n/);
      expect(output).toContain("facts half there           0\n");
      expect(output).toContain("damage found               none\n");
      expect(output).toContain("Nothing acknowledged was lost.");
      expect(leftIn(folder)).toEqual([]);
    }));

  test.each(["SIGINT", "SIGTERM"] as const)(
    "the demo that gets %s takes its writers and its files with it",
    async (signal) => {
      const temporary = mkdtempSync(join(tmpdir(), "holdfast-example-"));
      try {
        const { demo, writers } = await startDemo(temporary);
        expect(writers.map(isAlive)).toEqual([true, true]);
        const ownFiles = (): readonly string[] =>
          readdirSync(temporary).filter((name) => /^(holdfast|hf)/.test(name));
        expect(ownFiles().length).toBeGreaterThan(0);
        const ended = once(demo, "exit");
        demo.kill(signal);
        expect(await ended).toEqual([null, signal]);
        expect(writers.map(isAlive)).toEqual([false, false]);
        expect(ownFiles()).toEqual([]);
      } finally {
        rmSync(temporary, { recursive: true, force: true });
      }
    },
  );
});
