import type { Command } from "commander";
import type { Cli } from "../../cli.ts";
import { runDev } from "../../dev/dev.ts";
import { runDevWorker } from "../../dev/dev-worker.ts";
import { screenOn } from "../../live/screen.ts";
import { existingModule } from "../../modules/load-module.ts";

/** `holdfast dev`: runs a module's functions and reloads it on save. */
export function addDev(program: Command, cli: Cli): void {
  program
    .command("dev")
    .argument("<file>", "a module that exports workflows and activities")
    .description(
      "runs the workflows, activities and schedules of a module, reloads it when it or one of its imports changes, and shows the runs; creates holdfast.db if no database is named",
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
          // A URL may hold a password, and other users can see arguments.
          env: db === undefined ? host.env : { ...host.env, HOLDFAST_DB: db },
        });
        context.note("Stopped. Running work was recorded or released, and resumes next time.");
      }),
    );
  program.command("dev-worker <file>", { hidden: true }).action(
    cli.action(async (context, _, file: string) => {
      await runDevWorker(context, file);
    }),
  );
}
