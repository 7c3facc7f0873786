import type { Command } from "commander";
import type { Cli } from "../../cli.ts";
import { wholeNumberOption } from "../../options/option-values.ts";

interface CopyOptions {
  readonly id?: string;
  readonly at: number;
}

/** `holdfast retry <id>` and `fork <id>`: copies of a run that go on from within it. */
export function addCopies(program: Command, cli: Cli): void {
  program
    .command("retry")
    .description(
      "makes a copy of a failed run that goes on from before it failed; what the run did after that, such as undoing, is forgotten",
    )
    .argument("<id>", "of the run that failed")
    .option("--id <new>", "of the copy; given, repeating the command is safe")
    .action(
      cli.action(async (context, options: CopyOptions, source: string) => {
        const { executions } = await context.openForWriting();
        const { id, existed } = await executions.retry(source, {
          ...copyId(options),
          signal: context.stop,
        });
        context.answer(
          { id, source, existed },
          () => `${id} ${existed ? "was made before" : "goes on"} from where ${source} failed.`,
        );
      }),
    );
  program
    .command("fork")
    .description("makes a copy of a run that goes on from behind one of its events")
    .argument("<id>", "of the run to copy")
    .requiredOption(
      "--at <version>",
      "of the last event that is copied, as show numbers them",
      wholeNumberOption,
    )
    .option("--id <new>", "of the copy; given, repeating the command is safe")
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
            `${id} ${existed ? "was made before" : "goes on"} from event ${options.at} of ${source}.`,
        );
      }),
    );
}

function copyId({ id }: CopyOptions): { readonly id?: string } {
  return id === undefined ? {} : { id };
}
