import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { projectRoot } from "./project.ts";

/**
 * Runs every `check:…` script of package.json and prints one line for each,
 * with its time; a failing one also prints what it said. Two run at a time:
 * each is mostly one thread, and small machines have two cores.
 */
const atOnceMax = 2;

interface Outcome {
  readonly passed: boolean;
  readonly seconds: number;
  readonly output: string;
}

const { scripts } = JSON.parse(readFileSync(path.join(projectRoot, "package.json"), "utf8")) as {
  scripts: Record<string, string>;
};
const waiting = Object.keys(scripts).filter((name) => name.startsWith("check:"));
const nameWidth = Math.max(...waiting.map((name) => name.length));

const startedAt = performance.now();
const outcomes: Outcome[] = [];
await Promise.all(Array.from({ length: atOnceMax }, work));

const failed = outcomes.filter((outcome) => !outcome.passed).length;
const total = secondsSince(startedAt).toFixed(1);
console.log(
  failed === 0
    ? `All ${outcomes.length} checks passed in ${total} s.`
    : `${failed} of ${outcomes.length} checks failed, in ${total} s.`,
);
process.exitCode = failed === 0 ? 0 : 1;

async function work(): Promise<void> {
  for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
    const outcome = await runScript(name);
    outcomes.push(outcome);
    const mark = outcome.passed ? "ok  " : "FAIL";
    console.log(`${mark} ${name.padEnd(nameWidth)} ${outcome.seconds.toFixed(1)} s`);
    if (!outcome.passed) console.log(`${outcome.output.trimEnd()}\n`);
  }
}

function runScript(name: string): Promise<Outcome> {
  return new Promise((resolve) => {
    const begun = performance.now();
    const child = spawn("npm", ["run", "--silent", name], {
      cwd: projectRoot,
      stdio: ["ignore", "pipe", "pipe"],
      shell: process.platform === "win32",
    });
    let output = "";
    child.stdout.on("data", (chunk) => (output += String(chunk)));
    child.stderr.on("data", (chunk) => (output += String(chunk)));
    child.on("error", (error) => (output += String(error)));
    child.on("close", (code) =>
      resolve({ passed: code === 0, seconds: secondsSince(begun), output }),
    );
  });
}

function secondsSince(begun: number): number {
  return (performance.now() - begun) / 1_000;
}
