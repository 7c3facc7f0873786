import type { Command } from "commander";
import { isHoldfastError } from "../../../model/errors.ts";
import type { RepairReport } from "../../../stores/maintenance/repair.ts";
import type { Cli } from "../../cli.ts";
import type { CliContext } from "../../context.ts";
import { exitCodes } from "../../exit-codes.ts";
import { ProgressLine } from "../../text/progress-line.ts";
import { oneLine } from "../../text/style.ts";

/** `holdfast repair`: fixes rows of runs that contradict their logs, as found by `check`. */
export function addRepair(program: Command, cli: Cli): void {
  program
    .command("repair")
    .description("fixes the rows of runs that contradict their logs, as reported by check")
    .option("--apply", "write the repairs; without it, repair only reports them")
    .action(
      cli.action(async (context, { apply = false }: { apply?: boolean }) => {
        const { maintenance } = apply
          ? await context.openForWriting()
          : (await context.openForReading()).pages;
        const report = await repaired(context, (options) =>
          maintenance.repair({ ...options, apply }),
        );
        context.answer(report, () => toldReport(report));
        const isLeft = report.left > 0 || (!apply && report.repaired > 0);
        return isLeft ? exitCodes.findings : exitCodes.ok;
      }),
    );
}

type Repair = (options: {
  readonly signal: AbortSignal;
  readonly onProgress: (soFar: { readonly runs: number }) => void;
}) => Promise<RepairReport>;

async function repaired(context: CliContext, repair: Repair): Promise<RepairReport> {
  const progress = new ProgressLine(context);
  try {
    return await repair({
      signal: context.stop,
      onProgress: ({ runs }) => progress.show(`${runs} runs`),
    });
  } catch (error) {
    if (isHoldfastError(error) && error.code === "ABORTED")
      context.note("Stopped before all runs were checked. Finished repairs stay.");
    throw error;
  } finally {
    progress.clear();
  }
}

function toldReport({ isApplied, runs, repaired: count, left, found }: RepairReport): string {
  const lines = found.map(({ id, outcome, reason }) => oneLine(`${id}  ${outcome}: ${reason}`));
  const more = count + left - found.length;
  if (more > 0) lines.push(`and ${more} more runs`);
  if (count + left === 0) lines.push(`Nothing to repair: ${runs} runs agree with their logs.`);
  else if (isApplied) lines.push(`Repaired ${count} of ${runs} runs, skipped ${left}.`);
  else
    lines.push(
      `Nothing was changed. With --apply, ${count} of ${runs} runs ${count === 1 ? "is" : "are"} repaired and ${left} ${left === 1 ? "is" : "are"} skipped.`,
    );
  return lines.join("\n");
}
