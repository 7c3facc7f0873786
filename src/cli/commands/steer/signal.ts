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
    .description("sends a signal to a run; it is kept until the run receives it")
    .argument("<id>", "the id of the run")
    .argument("<name>", "the name of the signal")
    .option(
      "--value <json>",
      "the value of the signal (default: true); - reads it from standard input",
    )
    .option("--key <key>", "sending twice with one key sends one signal")
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
            ? `Signal ${name} had already been sent to ${id} with this key.`
            : `Sent signal ${name} to ${id}.`,
        );
      }),
    );
}
