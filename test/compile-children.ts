import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import path from "node:path";

const root = path.join(import.meta.dirname, "..");
const cache = path.join(root, ".cache/children");
const variable = "HOLDFAST_TEST_CHILDREN";

/**
 * Compiles src/ and test/ once for the processes that tests start. Compiling
 * takes two seconds, and saves each of hundreds of processes the half second
 * that it would take to load TypeScript.
 */
export function setup(): void {
  if (process.env[variable] !== undefined) return;
  removeLeftovers();
  const output = path.join(cache, String(process.pid));
  execFileSync(
    process.execPath,
    [
      path.join(root, "node_modules/typescript/bin/tsc"),
      "-p",
      path.join(root, "tsconfig.children.json"),
      "--outDir",
      output,
    ],
    { stdio: "inherit" },
  );
  // Entries of threads and processes are plain JavaScript already.
  for (const file of readdirSync(path.join(root, "src"), {
    recursive: true,
    encoding: "utf8",
  })) {
    if (!file.endsWith(".js")) continue;
    const place = path.join(output, "src", file);
    mkdirSync(path.dirname(place), { recursive: true });
    copyFileSync(path.join(root, "src", file), place);
  }
  process.env[variable] = output;
}

export function teardown(): void {
  const output = process.env[variable];
  delete process.env[variable];
  if (output !== undefined) rmSync(output, { recursive: true, force: true });
}

/** Of runs that were killed. */
function removeLeftovers(): void {
  mkdirSync(cache, { recursive: true });
  for (const name of readdirSync(cache))
    if (!isAlive(Number(name)))
      rmSync(path.join(cache, name), { recursive: true, force: true });
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** Where a script of test/ is as JavaScript: `compiled("crash/note-writer.ts")`. */
export function compiled(script: string): string {
  const output = process.env[variable];
  if (output === undefined)
    throw new Error(
      "Only the projects that start processes have them compiled.",
    );
  return path.join(output, "test", script.replace(/\.ts$/, ".js"));
}
