import type { Command } from "commander";
import type { ExecutionStatus } from "../../../model/execution/status.ts";
import type { ExecutionCount } from "../../../stores/execution/read/counts.ts";
import type { Cli } from "../../cli.ts";
import { statusColour } from "../../text/run-text.ts";
import { tableLines, type Cell } from "../../text/table.ts";

/** `holdfast stats`: counts runs by function and status. */
export function addStats(program: Command, cli: Cli): void {
  program
    .command("stats")
    .description("counts runs by function and status")
    .action(
      cli.action(async (context) => {
        const { pages } = await context.openForReading();
        const { counts, unreadable } = await pages.executions.count({
          signal: context.stop,
        });
        const total = counts.reduce((sum, { count }) => sum + count, 0);
        if (context.isJson) return context.printJson({ total, counts, unreadable });
        if (total === 0) context.print("No runs.");
        else
          context.print(
            tableLines({
              ...countTable(counts),
              style: context.style,
              width: context.width,
            }).join("\n"),
          );
        if (unreadable > 0)
          context.note(`${unreadable} runs are unreadable. Run npx holdfast check for details.`);
      }),
    );
}

/** One line per function, one column per status that occurs. */
function countTable(counts: readonly ExecutionCount[]): {
  readonly headings: readonly string[];
  readonly rows: readonly (readonly Cell[])[];
} {
  const statuses = [...new Set(counts.map(({ status }) => status))].toSorted();
  const names = [...new Set(counts.map((count) => count.function))];
  const countOf = (name: string, status: ExecutionStatus): Cell => {
    const found = counts.find((count) => count.function === name && count.status === status);
    return found === undefined ? "" : { text: String(found.count), colour: statusColour(status) };
  };
  return {
    headings: ["FUNCTION", ...statuses.map((status) => status.toUpperCase())],
    rows: names.map((name) => [name, ...statuses.map((status) => countOf(name, status))]),
  };
}
