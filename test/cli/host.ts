import { tmpdir } from "node:os";
import { systemClock } from "../../src/host/clock.ts";
import type { CliHost, StopReason } from "../../src/cli/host.ts";
import { runCli } from "../../src/cli/program.ts";

export interface HostOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly isTerminal?: boolean;
  readonly columns?: number;
  readonly input?: string;
  /** What a person types when asked; nobody sits there without it. */
  readonly typed?: string;
  readonly clock?: CliHost["clock"];
  /** It is told to stop before it begins. */
  readonly stoppedBy?: StopReason;
  /** Told each piece of output: to stop a command that goes on. */
  readonly onOutput?: (text: string, stop: (reason: StopReason) => void) => void;
}

export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  /** Standard output as JSON. */
  readonly json: () => unknown;
}

export interface HostFixture {
  readonly host: CliHost;
  readonly said: { stdout: string; stderr: string };
  readonly stop: (reason: StopReason) => void;
}

/** What a command has instead of a process. */
export function hostOf(options: HostOptions = {}): HostFixture {
  const stopping = new AbortController();
  const stop = (reason: StopReason): void => stopping.abort(reason);
  if (options.stoppedBy !== undefined) stop(options.stoppedBy);
  const said = { stdout: "", stderr: "" };
  const { isTerminal: isTTY = false, columns = 80 } = options;
  const host: CliHost = {
    stdout: {
      write(text) {
        said.stdout += text;
        options.onOutput?.(text, stop);
      },
      isTTY,
      columns,
    },
    stderr: { write: (text) => (said.stderr += text), isTTY, columns },
    readInput: () => Promise.resolve(options.input ?? ""),
    ask:
      options.typed === undefined
        ? undefined
        : (question) => {
            said.stderr += question;
            return Promise.resolve(options.typed ?? "");
          },
    env: options.env ?? {},
    cwd: options.cwd ?? tmpdir(),
    clock: options.clock ?? systemClock,
    timeZone: "UTC",
    stop: stopping.signal,
  };
  return { host, said, stop };
}

/** Runs a command in this process, as `holdfast …args` would. */
export async function holdfastCli(
  args: readonly string[],
  options: HostOptions = {},
): Promise<Ran> {
  const { host, said } = hostOf(options);
  const code = await runCli(args, host);
  const json = (): unknown => JSON.parse(said.stdout) as unknown;
  return { code, ...said, json };
}
