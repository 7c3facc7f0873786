import type { Command } from "commander";
import { isHoldfastError } from "../model/errors.ts";
import { inCommands } from "./advice.ts";
import { CliContext } from "./context.ts";
import { exitCodeOf, exitCodes, type ExitCode } from "./exit-codes.ts";
import { failureText } from "./failure.ts";
import type { CliHost, StopReason } from "./host.ts";
import type { GlobalOptions } from "./database/target.ts";
import { styleOf } from "./text/style.ts";

/**
 * The body of a command. It gets the command's options, then its arguments. It
 * may return an exit code; without one the command succeeded.
 */
export type CommandBody<O, A extends readonly unknown[]> = (
  context: CliContext,
  options: O & GlobalOptions,
  ...args: A
) => Promise<ExitCode | void>;

/** A command adds itself to the program. */
export type AddCommand = (program: Command, cli: Cli) => void;

/** One run of the command line: turns bodies into commander's actions, and keeps the exit code. */
export class Cli {
  readonly host: CliHost;
  exitCode: ExitCode = exitCodes.ok;

  constructor(host: CliHost) {
    this.host = host;
  }

  /** Makes an action for commander's `.action`. It never rejects. */
  action<O, A extends readonly unknown[]>(
    body: CommandBody<O, A>,
  ): (...given: unknown[]) => Promise<void> {
    return async (...given) => {
      // Commander gives the arguments, then the options, then the command.
      const command = given.at(-1) as Command;
      const args = given.slice(0, -2) as unknown as A;
      const options = command.optsWithGlobals<O & GlobalOptions>();
      const context = new CliContext(this.host, options);
      try {
        this.exitCode = (await body(context, options, ...args)) ?? exitCodes.ok;
        await context.close();
      } catch (error) {
        this.fail(inCommands(error, context.dbOption), options);
        await context.close().catch(() => undefined);
      }
      this.exitCode = stoppedCode(this.host.stop) ?? this.exitCode;
    };
  }

  /** Prints a failure. A stopped command has not failed. */
  fail(error: unknown, { json, debug }: GlobalOptions): void {
    this.exitCode = exitCodeOf(error);
    const isStopped = this.host.stop.aborted && isHoldfastError(error) && error.code === "ABORTED";
    if (isStopped) return;
    const { stderr } = this.host;
    const text = failureText(error, {
      isJson: json === true,
      isDebug: debug === true,
      style: styleOf(stderr, this.host),
    });
    stderr.write(`${text}\n`);
  }
}

function stoppedCode({ aborted, reason }: AbortSignal): ExitCode | undefined {
  if (!aborted) return undefined;
  switch (reason as StopReason) {
    case "SIGINT":
      return exitCodes.interrupted;
    case "SIGTERM":
      return exitCodes.terminated;
    case "EPIPE":
      return exitCodes.ok;
  }
}
