import type { Command } from "commander";
import type { Cli } from "../../cli.ts";
import { runDev } from "../../dev/dev.ts";
import { runDevWorker } from "../../dev/dev-worker.ts";
import { screenOn } from "../../live/screen.ts";
import { existingModule } from "../../modules/load-module.ts";

/** `holdfast dev`: runs a module's functions while it is being written. */
export function addDev(program: Command, cli: Cli): void {
  program
    .command("dev")
    .argument("<file>", "a module that exports workflows and activities")
    .description(
      "runs the workflows, activities and schedules that a module exports, loads it again when it or what it imports changes, and shows the runs; makes holdfast.db when no database is named",
    )
    .action(
      cli.action(async (context, options, file: string) => {
        const { host, isJson } = context;
        existingModule(file, host.cwd);
        const { shown } = await context.targetToMake();
        const holdfast = await context.openForWork(() => undefined);
        const screen = screenOn(host.stdout, host.env, { isJson });
        const { db, config, schema } = options;
        await runDev(holdfast, screen, host, {
          file,
          database: shown,
          dbOption: context.dbOption,
          args: [
            ...(config === undefined ? [] : ["--config", config]),
            ...(schema === undefined ? [] : ["--schema", schema]),
          ],
          // A URL may hold a password, which arguments would show to everybody.
          env: db === undefined ? host.env : { ...host.env, HOLDFAST_DB: db },
        });
        context.note("Stopped: what ran was recorded, or goes on next time.");
      }),
    );
  program.command("dev-worker <file>", { hidden: true }).action(
    cli.action(async (context, _, file: string) => {
      await runDevWorker(context, file);
    }),
  );
}
