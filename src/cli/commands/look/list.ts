import type { Command } from "commander";
import type { Cli } from "../../cli.ts";
import { wholeNumberOption } from "../../options/option-values.ts";
import { filterOf, withFilter, type FilterOptions } from "../../options/run-filter.ts";
import { listedJson, withStandings } from "../../standings.ts";
import { runTable } from "../../text/run-text.ts";

interface ListOptions extends FilterOptions {
  readonly limit?: number;
  readonly after?: string;
}

/** `holdfast list`: runs, newest first. */
export function addList(program: Command, cli: Cli): void {
  withFilter(program.command("list"), cli.host)
    .description("lists runs, newest first")
    .option("--limit <count>", "the number of runs, 1 to 1000 (default: 50)", wholeNumberOption)
    .option("--after <cursor>", "continue after the previous page: its next cursor")
    .action(
      cli.action(async (context, options: ListOptions) => {
        const opened = await context.openForReading();
        const page = await opened.pages.executions.list({
          ...filterOf(options),
          ...(options.limit !== undefined && { limit: options.limit }),
          ...(options.after !== undefined && { after: options.after }),
          signal: context.stop,
        });
        const { next, damaged, looked } = page;
        const items = await withStandings(opened, page.items, context.now());
        if (context.isJson)
          return context.printJson({
            items: items.map(listedJson),
            next: next ?? null,
            ...(looked !== undefined && { looked }),
            damaged,
          });
        if (items.length > 0) context.print(runTable(context, items));
        else if (looked === undefined) context.note("No runs.");
        else context.note(`Searched ${looked.toLocaleString("en")} runs, no match.`);
        context.noteDamaged(damaged);
        if (next !== undefined) context.note(`More runs: --after ${next}`);
      }),
    );
}
