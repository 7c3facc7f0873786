import type { Command } from "commander";
import type { WorkOptions } from "../../../runtime/client/holdfast.ts";
import type { Cli } from "../../cli.ts";
import { exitCodes } from "../../exit-codes.ts";
import { loadModule } from "../../modules/load-module.ts";
import { functionsOf } from "../../modules/functions-of.ts";
import { durationOption, wholeNumberOption } from "../../options/option-values.ts";
import { logOn } from "../../text/log-lines.ts";
import { untilStopped } from "../../process/until-stopped.ts";

interface WorkCommandOptions {
  readonly concurrency?: number;
  readonly codeVersion?: string;
  readonly lease?: number;
  readonly closeTimeout: number;
}

/** `holdfast work`: a worker process, for production. */
export function addWork(program: Command, cli: Cli): void {
  program
    .command("work")
    .argument("<file>", "a module that exports workflows and activities")
    .description(
      "runs the workflows, activities and schedules of a module until SIGTERM or Ctrl-C; prints log lines, as JSON if the output is not a terminal",
    )
    .option(
      "--concurrency <count>",
      "the number of runs that execute at once (default: 100)",
      wholeNumberOption,
    )
    .option(
      "--code-version <version>",
      "the name of this code; runs that do not match it are left to other versions",
    )
    .option(
      "--lease <time>",
      "the time after which other workers take over from a lost machine (default: 30s)",
      durationOption,
    )
    .option(
      "--close-timeout <time>",
      "the time for running work to be recorded after a stop signal",
      durationOption,
      10_000,
    )
    .action(
      cli.action(async (context, options: WorkCommandOptions, file: string) => {
        const { functions, all } = functionsOf(await loadModule(file, context.host.cwd), file);
        const log = logOn(context);
        const { shown } = await context.targetToMake();
        const broken = new AbortController();
        const holdfast = await context.openForWork(log, () => broken.abort());
        await holdfast.work(all, settingsOf(options));
        const names = functions.map(({ name }) => name);
        const details = {
          functions: names,
          database: shown,
          process: process.pid,
        };
        const say = (message: string): void =>
          log({ level: "info", message, details, source: "runtime" });
        say("working");
        const { signal } = broken;
        await untilStopped(AbortSignal.any([context.stop, signal]));
        say("stopping");
        await holdfast.close({ timeout: options.closeTimeout });
        say("stopped");
        // The failure lets a supervisor restart it.
        return signal.aborted ? exitCodes.failed : exitCodes.ok;
      }),
    );
}

function settingsOf({ concurrency, codeVersion, lease }: WorkCommandOptions): WorkOptions {
  return {
    ...(concurrency !== undefined && { concurrency }),
    ...(codeVersion !== undefined && { codeVersion }),
    ...(lease !== undefined && { lease }),
  };
}
