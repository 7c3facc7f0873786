import { chmodSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { Command } from "commander";
import { HoldfastError } from "../../../model/errors.ts";
import { historyOf } from "../../../runtime/history/record-history.ts";
import type { Cli } from "../../cli.ts";

interface ExportOptions {
  readonly output?: string;
  readonly force?: true;
}

/** `holdfast export`: what was recorded of a run, as a document. */
export function addExport(program: Command, cli: Cli): void {
  program
    .command("export")
    .description("prints the history of a run as JSON, with its values")
    .argument("<id>", "the run")
    .option("--output <file>", "write it there instead; one that is there is not replaced")
    .option("--force", "with --output: replace a file that is there")
    .action(
      cli.action(async (context, given: ExportOptions, id: string) => {
        const { output, force = false } = given;
        if (force && output === undefined)
          throw new HoldfastError("OPTION_INVALID", "--force is only for --output.", {
            option: "force",
          });
        const { pages } = await context.openForReading();
        const { options } = await context.target();
        const payload = options.payload?.name ?? null;
        const history = await historyOf(pages.executions, id, payload);
        // Not by printJson: values stand in it as they are stored already.
        const text = JSON.stringify(history, null, context.isJson ? 0 : 2);
        if (output === undefined) return context.print(text);
        const file = path.resolve(context.host.cwd, output);
        written(file, output, `${text}\n`, force);
        if (context.isJson) context.printJson({ id, file: output });
        else context.note(`Wrote the history of ${id} to ${output}.`);
      }),
    );
}

/** Values of users are nobody else's to read, also in a file that others could read before. */
function written(file: string, named: string, text: string, isReplaced: boolean): void {
  const mode = 0o600;
  try {
    if (isReplaced && statSync(file, { throwIfNoEntry: false })?.isFile()) chmodSync(file, mode);
    writeFileSync(file, text, { mode, flag: isReplaced ? "w" : "wx" });
  } catch (error) {
    const { code = "unknown" } = error as NodeJS.ErrnoException;
    throw code === "EEXIST" && !isFolder(file)
      ? new HoldfastError(
          "TARGET_EXISTS",
          `There is a file "${named}" already, which was left as it is. Name another one, or replace it with --force.`,
          { file: named },
        )
      : new HoldfastError(
          "TARGET_INVALID",
          `"${named}" cannot be written: ${isFolder(file) ? "it is a folder" : code}. Name a file in a folder that is there and writable.`,
          { file: named },
          { cause: error },
        );
  }
}

function isFolder(file: string): boolean {
  return statSync(file, { throwIfNoEntry: false })?.isDirectory() === true;
}
