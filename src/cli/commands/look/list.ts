import type { Command } from "commander";
import type { Cli } from "../../cli.ts";
import { wholeNumberOption } from "../../options/option-values.ts";
import { filterOf, withFilter, type FilterOptions } from "../../options/run-filter.ts";
import { runTable } from "../../text/run-text.ts";

interface ListOptions extends FilterOptions {
  readonly limit?: number;
  readonly after?: string;
}

/** `holdfast list`: runs, newest first. */
export function addList(program: Command, cli: Cli): void {
  withFilter(program.command("list"), cli.host)
    .description("lists runs, newest first")
    .option("--limit <count>", "how many: 1 to 1000 (default: 50)", wholeNumberOption)
    .option("--after <cursor>", "go on where the page before ended: its next")
    .action(
      cli.action(async (context, options: ListOptions) => {
        const { pages } = await context.openForReading();
        const page = await pages.executions.list({
          ...filterOf(options),
          ...(options.limit !== undefined && { limit: options.limit }),
          ...(options.after !== undefined && { after: options.after }),
          signal: context.stop,
        });
        const { items, next, damaged } = page;
        if (context.isJson) return context.printJson({ items, next: next ?? null, damaged });
        if (items.length > 0) context.print(runTable(context, items));
        else context.note("No runs.");
        context.noteDamaged(damaged);
        if (next !== undefined) context.note(`More: --after ${next}`);
      }),
    );
}
