import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";

/** Processes of ours that still run: they go when this one does. */
const started = new Set<ChildProcess>();
let isListening = false;

/**
 * Starts this program again with other arguments, as a process that can be
 * killed, with a channel for messages. What it prints comes by its pipes.
 */
export function startOwnProcess(
  args: readonly string[],
  where: {
    readonly cwd?: string;
    readonly env?: Readonly<Record<string, string | undefined>>;
  } = {},
): ChildProcess {
  const [, script = ""] = process.argv;
  // A debugger of this process has its port already.
  const options = process.execArgv.filter((option) => !/^--(inspect|debug)/.test(option));
  const child = spawn(process.execPath, [...options, script, ...args], {
    ...where,
    stdio: ["ignore", "pipe", "pipe", "ipc"],
  });
  started.add(child);
  child.once("close", () => started.delete(child));
  if (!isListening) {
    isListening = true;
    process.on("exit", () => {
      for (const each of started) each.kill("SIGKILL");
    });
  }
  return child;
}

/** In such a process: resolves when the one that started it is gone, however early that was. */
export async function untilAbandoned(): Promise<void> {
  if (process.connected) await once(process, "disconnect");
}

/** How to call this program from the shell that it was called from. */
export function ownCommand(): string {
  const [, script = ""] = process.argv;
  return script.endsWith(".ts") ? "npx tsx src/cli/main.ts" : "npx holdfast";
}
