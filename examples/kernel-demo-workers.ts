import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

export interface Writer {
  readonly process: ChildProcess;
  /** The facts it was told are durable, in order. */
  readonly acknowledged: readonly string[];
  readonly ended: Promise<unknown>;
}

const writers = new Map<ChildProcess, Promise<unknown>>();

/** Starts kernel-demo-writer.ts on the file and collects what it says. */
export async function startWriter(path: string, name: string): Promise<Writer> {
  const script = new URL("./kernel-demo-writer.ts", import.meta.url);
  const child = spawn(
    process.execPath,
    [...process.execArgv, fileURLToPath(script), path, name],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  const acknowledged: string[] = [];
  const ended = once(child, "close");
  writers.set(child, ended);
  const lines = createInterface({ input: child.stdout });
  const begun = once(lines, "line");
  lines.on("line", (fact) => acknowledged.push(fact));
  await begun;
  return { process: child, acknowledged, ended };
}

/** Ends those that still run, and waits until they are gone. */
export async function endWriters(): Promise<void> {
  for (const child of writers.keys()) child.kill("SIGKILL");
  await Promise.all(writers.values());
}

/** On Ctrl-C: tidies up and then ends as the signal would have it. A second one does not wait. */
export function onInterrupt(tidyUp: () => Promise<void>): void {
  for (const signal of ["SIGINT", "SIGTERM"] as const)
    process.once(signal, () => {
      tidyUp()
        .catch(console.error)
        .finally(() => process.kill(process.pid, signal));
    });
}
