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
  const lines = createInterface({ input: child.stdout });
  const begun = once(lines, "line");
  lines.on("line", (fact) => acknowledged.push(fact));
  await begun;
  return { process: child, acknowledged, ended };
}
