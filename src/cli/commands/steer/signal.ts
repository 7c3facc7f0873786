import type { Command } from "commander";
import type { Cli } from "../../cli.ts";
import { givenValue } from "./given-value.ts";

interface SignalOptions {
  readonly value?: string;
  readonly key?: string;
}

/** `holdfast signal <id> <name>`: sends a message to a run. */
export function addSignal(program: Command, cli: Cli): void {
  program
    .command("signal")
    .description("sends a signal to a run, which is kept until the run asks for it")
    .argument("<id>", "of the run")
    .argument("<name>", "of the signal")
    .option("--value <json>", "what is sent (default: true); - reads it from standard input")
    .option("--key <key>", "sending twice under one key is sending once")
    .action(
      cli.action(async (context, options: SignalOptions, id: string, name: string) => {
        const { key } = options;
        const value = await givenValue(context, options.value, true);
        const { executions } = await context.openForWriting();
        const { seq, existed } = await executions.signal(id, name, value, {
          ...(key !== undefined && { key }),
          signal: context.stop,
        });
        context.answer({ id, signal: name, seq, existed }, () =>
          existed
            ? `Signal ${name} was sent to ${id} before under this key.`
            : `Sent signal ${name} to ${id}.`,
        );
      }),
    );
}
