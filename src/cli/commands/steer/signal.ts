import type { Command } from "commander";
import { isOwnSignal } from "../../../model/ids/own-signal.ts";
import type { Executions } from "../../../stores/execution/executions.ts";
import type { Cli } from "../../cli.ts";
import type { CliContext } from "../../context.ts";
import { openAsks } from "../../../runtime/client/open-asks.ts";
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
        const others = await otherNames(context, executions, id, name);
        const { seq, existed } = await executions.signal(id, name, value, {
          ...(key !== undefined && { key }),
          signal: context.stop,
        });
        context.answer({ id, signal: name, seq, existed }, () =>
          existed
            ? `Signal ${name} had already been sent to ${id} with this key.`
            : `Sent signal ${name} to ${id}${options.value === undefined ? ", with the value true" : ""}.`,
        );
        if (others.length > 0 && !existed)
          context.note(
            `${id} waits for ${others.join(", ")}, not for ${name}. The signal is kept until its code receives it.`,
          );
      }),
    );
}

/** The most names that a warning has. */
const namesMax = 5;

/** The signals that a run waits for, if it does not wait for this one. */
async function otherNames(
  context: CliContext,
  executions: Executions,
  id: string,
  name: string,
): Promise<readonly string[]> {
  const run = await executions.get(id, { signal: context.stop });
  if (run.state.pending.kind === "finished") return [];
  const waits = await openAsks(executions, run, context.now());
  const names = waits.flatMap((wait) =>
    wait.kind === "signal" && !isOwnSignal(wait.signal) ? [wait.signal] : [],
  );
  return names.includes(name) ? [] : [...new Set(names)].slice(0, namesMax);
}
