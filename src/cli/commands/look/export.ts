import { writeFileSync } from "node:fs";
import path from "node:path";
import type { Command } from "commander";
import { HoldfastError } from "../../../model/errors.ts";
import { historyOf } from "../../../runtime/history/record-history.ts";
import type { Cli } from "../../cli.ts";

interface ExportOptions {
  readonly output?: string;
}

/** `holdfast export`: what was recorded of a run, as a document. */
export function addExport(program: Command, cli: Cli): void {
  program
    .command("export")
    .description("prints the history of a run as JSON, with its values")
    .argument("<id>", "the run")
    .option("--output <file>", "write it there instead")
    .action(
      cli.action(async (context, { output }: ExportOptions, id: string) => {
        const { pages } = await context.openForReading();
        const { options } = await context.target();
        const payload = options.payload?.name ?? null;
        const history = await historyOf(pages.executions, id, payload);
        // Not by printJson: values stand in it as they are stored already.
        const text = JSON.stringify(history, null, context.isJson ? 0 : 2);
        if (output === undefined) return context.print(text);
        written(path.resolve(context.host.cwd, output), output, `${text}\n`);
        if (context.isJson) context.printJson({ id, file: output });
        else context.note(`Wrote the history of ${id} to ${output}.`);
      }),
    );
}

/** Values of users are nobody else's to read. */
function written(file: string, named: string, text: string): void {
  try {
    writeFileSync(file, text, { mode: 0o600 });
  } catch (error) {
    throw new HoldfastError(
      "TARGET_INVALID",
      `"${named}" cannot be written: ${(error as NodeJS.ErrnoException).code ?? "unknown"}. Name a file in a folder that is there and writable.`,
      { file: named },
      { cause: error },
    );
  }
}
