import type { Command } from "commander";
import { executionUnfinished } from "../../../model/execution/errors.ts";
import type { Cli } from "../../cli.ts";
import { confirmed } from "../../options/confirm.ts";
import { exitCodes } from "../../exit-codes.ts";

interface EraseOptions {
  readonly force?: true;
  readonly yes?: true;
}

/** `holdfast erase`: what a run was given, recorded and logged, for good. */
export function addErase(program: Command, cli: Cli): void {
  program
    .command("erase")
    .description(
      "removes all that a run which has ended, and its children, hold; its id stays taken",
    )
    .argument("<id>", "the run")
    .option("--force", "end it first, without running its code")
    .option("--yes", "do not ask")
    .action(
      cli.action(async (context, options: EraseOptions, id: string) => {
        const { executions } = await context.openForWriting();
        const { id: found, function: name, state } = await executions.get(id);
        // Nobody is asked about what would be refused.
        if (state.pending.kind !== "finished" && options.force !== true)
          throw executionUnfinished(found);
        const question = `Erase run ${id} of ${name} and all below it? It cannot be undone.`;
        if (!(await confirmed(context, question, options.yes))) {
          context.note("Nothing was erased.");
          return exitCodes.refused;
        }
        if (options.force === true) await executions.cancel(id, { force: true });
        const report = await executions.erase(id, { signal: context.stop });
        context.answer(
          { id, ...report },
          () => `Erased ${id}: ${report.rows} rows are gone, its id stays taken.`,
        );
        return exitCodes.ok;
      }),
    );
}
