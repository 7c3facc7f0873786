import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { text } from "node:stream/consumers";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { isDeep, seed } from "../depth.ts";

const root = path.join(import.meta.dirname, "../..");

/** Installs the package from the registry and compiles what it needs: minutes, and no test may need a network. */
const needsRegistry = "product.install";

/** What docs/benchmarks.md lists, each in the first column of a table that tells what it measures. */
function documented(): readonly string[] {
  const page = readFileSync(path.join(root, "docs/benchmarks.md"), "utf8");
  const names = page.matchAll(/^\| `(\w+\.\w+)`/gm);
  return [...new Set([...names].map(([, name = ""]) => name))];
}

/** Starts benchmarks by their documented command, one tiny round each. */
async function tinyRounds(...names: readonly string[]) {
  const { HOLDFAST_TEST_CHILDREN: _, ...env } = process.env;
  const bench = spawn(
    process.execPath,
    ["--import", "./bench/typescript.mjs", "bench/main.ts", "--tiny", ...names],
    { cwd: root, env, stdio: ["ignore", "pipe", "pipe"] },
  );
  const [output, errors, [code]] = await Promise.all([
    text(bench.stdout),
    text(bench.stderr),
    once(bench, "exit"),
  ]);
  if (code !== 0) throw new Error(errors);
  return output
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

/**
 * A benchmark changes with what it measures, whose suites always run: a short
 * run takes a fifth of them in turn, by its seed, and a deep one all. All took
 * sixteen seconds of one core.
 */
function isInTurn(_: string, index: number): boolean {
  return isDeep || index % 5 === seed % 5;
}

/** Seconds of work for one core, and this process has seldom one to itself. */
const timeoutMs = 240_000;

describe("the benchmarks", () => {
  test(
    "run as they are documented, and say by name what they miss",
    { timeout: timeoutMs },
    async () => {
      const names = documented();
      expect(names).toContain("processes.death");
      expect(names).toContain(needsRegistry);
      const chosen = names.filter((name) => name !== needsRegistry).filter(isInTurn);
      const reports = await tinyRounds(...chosen);
      expect(new Set(reports.map(({ bench }) => bench))).toEqual(new Set(chosen));
      for (const { bench, value, skipped } of reports) {
        if (bench === "sessions.langgraph" && skipped !== undefined)
          expect(skipped).toContain("npm ci --prefix bench");
        else expect([bench, Number.isFinite(value)]).toEqual([bench, true]);
      }
    },
  );
});
