import type { Command } from "commander";
import type { Cli } from "../../cli.ts";
import { wholeNumberOption } from "../../options/option-values.ts";

interface CopyOptions {
  readonly id?: string;
  readonly at: number;
}

/** `holdfast retry <id>` and `fork <id>`: copies of a run that continue from within it. */
export function addCopies(program: Command, cli: Cli): void {
  program
    .command("retry")
    .description(
      "copies a failed run and continues from just before the failure; compensation that it ran is dropped",
    )
    .argument("<id>", "the id of the failed run")
    .option("--id <new>", "the id of the copy; makes it safe to repeat the command")
    .action(
      cli.action(async (context, options: CopyOptions, source: string) => {
        const { executions } = await context.openForWriting();
        const { id, existed } = await executions.retry(source, {
          ...copyId(options),
          signal: context.stop,
        });
        context.answer(
          { id, source, existed },
          () =>
            `${id} ${existed ? "already exists. It continued" : "continues"} from just before the failure of ${source}.`,
        );
      }),
    );
  program
    .command("fork")
    .description("copies a run and continues after one of its events")
    .argument("<id>", "the id of the run to copy")
    .requiredOption(
      "--at <version>",
      "the number of the last event to copy, as printed by show",
      wholeNumberOption,
    )
    .option("--id <new>", "the id of the copy; makes it safe to repeat the command")
    .action(
      cli.action(async (context, options: CopyOptions, source: string) => {
        const { executions } = await context.openForWriting();
        const { id, existed } = await executions.fork(source, options.at, {
          ...copyId(options),
          signal: context.stop,
        });
        context.answer(
          { id, source, at: options.at, existed },
          () =>
            `${id} ${existed ? "already exists. It continued" : "continues"} after event ${options.at} of ${source}.`,
        );
      }),
    );
}

function copyId({ id }: CopyOptions): { readonly id?: string } {
  return id === undefined ? {} : { id };
}
