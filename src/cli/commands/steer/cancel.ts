import type { Command } from "commander";
import type { Cli } from "../../cli.ts";

interface CancelOptions {
  readonly reason?: string;
  readonly force?: true;
}

const told = {
  cancelled: "is cancelled.",
  requested: "was asked to end: its code cleans up and ends it.",
  alreadyCancelling: "was asked to end before; --force ends it without running its code.",
  alreadyFinished: "had ended already.",
} as const;

/** `holdfast cancel <id>`: asks a run to end, or ends it. */
export function addCancel(program: Command, cli: Cli): void {
  program
    .command("cancel")
    .description("asks a run to end: its code is told, cleans up, and ends it")
    .argument("<id>", "of the run")
    .option("--reason <text>", "kept with the run")
    .option("--force", "end it and all below it without running any of their code")
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
