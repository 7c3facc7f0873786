import type { Command } from "commander";
import type { Cli } from "../../cli.ts";
import { isHoldfastError } from "../../../model/errors.ts";
import { exitCodes } from "../../exit-codes.ts";
import { oneLine } from "../../text/style.ts";
import { ProgressLine } from "../../text/progress-line.ts";

/** `holdfast check`: reads every row and looks for damage. */
export function addCheck(program: Command, cli: Cli): void {
  program
    .command("check")
    .description("reads every row and looks for damage; runs beside workers and writes nothing")
    .option("--full", "also read every page and index of a SQLite file, in one long snapshot")
    .action(
      cli.action(async (context, options: { full?: true }) => {
        const { file, pages, sealed } = await context.openForReading();
        const progress = new ProgressLine(context);
        const signal = context.stop;
        const read = async () => {
          const stored = await file?.check({
            full: options.full === true,
            signal,
            onProgress: ({ done, total }) => progress.show(`file: ${done} of ${total} tables`),
          });
          const checked = await pages.maintenance.check({
            signal,
            onProgress: ({ table, rows }) => progress.show(`${table}: ${rows} rows`),
          });
          return { stored, checked };
        };
        const { stored, checked } = await read()
          .finally(() => progress.clear())
          .catch((error: unknown) => {
            if (isHoldfastError(error) && error.code === "ABORTED")
              context.note("Stopped before all rows were read. The rest is unchecked.");
            throw error;
          });
        const { damaged, moreDamaged, isComplete, tables } = checked;
        const problems = stored?.problems ?? [];
        const isSound = problems.length === 0 && damaged.length === 0 && isComplete;
        const rows = tables.reduce((sum, each) => sum + each.rows, 0);
        context.answer({ isSound, problems, ...checked }, () =>
          [
            ...problems.map((problem) => `file: ${problem}`),
            ...damaged.map(({ table, key, reason }) => `${table} ${key}: ${reason}`),
            ...(moreDamaged > 0 ? [`and ${moreDamaged} more rows`] : []),
            ...(sealed === undefined
              ? []
              : [`Values are sealed and were not read. ${sealed.message}`]),
            isSound
              ? `No damage: ${rows} rows of ${tables.length} tables.`
              : "Damage was found. `npx holdfast repair` fixes rows of runs that contradict their logs. For other damage, stop the workers, keep a copy of the file, and restore a backup. Inspect the named rows with a database shell.",
          ]
            .map(oneLine)
            .join("\n"),
        );
        return isSound ? exitCodes.ok : exitCodes.findings;
      }),
    );
}
