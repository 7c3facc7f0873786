import type { Clock } from "../model/time/clock.ts";

/** The process around the command line; tests pass their own. */
export interface CliHost {
  readonly stdout: CliStream;
  readonly stderr: CliStream;
  /** Reads all of standard input, for values too long for an argument. */
  readonly readInput: () => Promise<string>;
  /** Asks a person for a line; undefined without a terminal. */
  readonly ask?: ((question: string) => Promise<string>) | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly clock: Clock;
  /** The time zone of printed times, such as `Europe/Vienna`. */
  readonly timeZone: string;
  /** Aborted to stop the command; the reason is a `StopReason`. */
  readonly stop: AbortSignal;
}

export interface CliStream {
  write(text: string): unknown;
  /** True for a terminal, the only place for colours and redrawing. */
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
}

/** The cause of a stop: Ctrl-C, `kill`, or a closed output pipe. */
export type StopReason = "SIGINT" | "SIGTERM" | "EPIPE";

/** The width of a terminal. A terminal without a size, as under some CI systems, reports 0. */
export function columnsOf({ columns }: { readonly columns?: number | undefined }): number {
  return columns === undefined || columns === 0 ? 80 : columns;
}
