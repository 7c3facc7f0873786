import type { Command } from "commander";
import type { Cli } from "../../cli.ts";

interface CancelOptions {
  readonly reason?: string;
  readonly force?: true;
}

const told = {
  cancelled: "was cancelled.",
  requested: "was asked to end. Its code cleans up first.",
  alreadyCancelling: "had already been asked to end. --force ends it without running its code.",
  alreadyFinished: "had already ended.",
} as const;

/** `holdfast cancel <id>`: asks a run to end, or ends it. */
export function addCancel(program: Command, cli: Cli): void {
  program
    .command("cancel")
    .description("asks a run to end; its code cleans up first")
    .argument("<id>", "the id of the run")
    .option("--reason <text>", "the reason, kept with the run")
    .option("--force", "end the run and all runs below it without running any of their code")
    .action(
      cli.action(async (context, options: CancelOptions, id: string) => {
        const { reason, force } = options;
        const { executions } = await context.openForWriting();
        const outcome = await executions.cancel(id, {
          ...(reason !== undefined && { reason }),
          ...(force !== undefined && { force }),
          signal: context.stop,
        });
        context.answer({ id, outcome }, () => `${id} ${told[outcome]}`);
      }),
    );
}
