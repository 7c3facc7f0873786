import type { Command } from "commander";
import { executionUnfinished } from "../../../model/execution/errors.ts";
import type { Cli } from "../../cli.ts";
import { confirmed } from "../../options/confirm.ts";
import { exitCodes } from "../../exit-codes.ts";

interface EraseOptions {
  readonly force?: true;
  readonly yes?: true;
}

/** `holdfast erase`: removes the input, record and log lines of a run for good. */
export function addErase(program: Command, cli: Cli): void {
  program
    .command("erase")
    .description("removes all data of a finished run and its children; its id stays reserved")
    .argument("<id>", "the id of the run")
    .option("--force", "end the run first, without running its code")
    .option("--yes", "do not ask for confirmation")
    .action(
      cli.action(async (context, options: EraseOptions, id: string) => {
        const { executions } = await context.openForWriting();
        const { id: found, function: name, state } = await executions.get(id);
        // Refuses before asking for confirmation.
        if (state.pending.kind !== "finished" && options.force !== true)
          throw executionUnfinished(found);
        const question = `Erase run ${id} of ${name} and all runs below it? This cannot be undone.`;
        if (!(await confirmed(context, question, options.yes))) {
          context.note("Nothing was erased.");
          return exitCodes.refused;
        }
        if (options.force === true) await executions.cancel(id, { force: true });
        const report = await executions.erase(id, { signal: context.stop });
        context.answer(
          { id, ...report },
          () => `Erased ${id}: ${report.rows} rows were removed. Its id stays reserved.`,
        );
        return exitCodes.ok;
      }),
    );
}
