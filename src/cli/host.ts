import type { Clock } from "../model/time/clock.ts";

/** What the command line has of the process around it; tests give their own. */
export interface CliHost {
  readonly stdout: CliStream;
  readonly stderr: CliStream;
  /** All of standard input, for values too long for an argument. */
  readonly readInput: () => Promise<string>;
  /** Asks a person for a line; undefined when nobody sits there. */
  readonly ask?: ((question: string) => Promise<string>) | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly clock: Clock;
  /** Times are shown in it, such as `Europe/Vienna`. */
  readonly timeZone: string;
  /** Aborted when the command is to stop: the reason is a `StopReason`. */
  readonly stop: AbortSignal;
}

export interface CliStream {
  write(text: string): unknown;
  /** Whether a person looks at it: only then there are colours and redrawing. */
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
}

/** By Ctrl-C, by `kill`, or since nobody reads the output any longer. */
export type StopReason = "SIGINT" | "SIGTERM" | "EPIPE";

/** How wide a terminal is. One that nobody has sized, as under some CI systems, says 0. */
export function columnsOf({ columns }: { readonly columns?: number | undefined }): number {
  return columns === undefined || columns === 0 ? 80 : columns;
}
