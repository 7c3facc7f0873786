import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";

/** Running child processes, which end with this process. */
const started = new Set<ChildProcess>();
let isListening = false;

/**
 * Starts this program with other arguments as a child process, with a channel
 * for messages. Its output arrives through pipes.
 */
export function startOwnProcess(
  args: readonly string[],
  where: {
    readonly cwd?: string;
    readonly env?: Readonly<Record<string, string | undefined>>;
  } = {},
): ChildProcess {
  const [, script = ""] = process.argv;
  // A debugger of this process already uses its port.
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

/** Resolves in a child process when its parent has ended, even if it ended earlier. */
export async function untilAbandoned(): Promise<void> {
  if (process.connected) await once(process, "disconnect");
}

/** The command that starts this program from the user's shell. */
export function ownCommand(): string {
  const [, script = ""] = process.argv;
  return script.endsWith(".ts") ? "npx tsx src/cli/main.ts" : "npx holdfast";
}
