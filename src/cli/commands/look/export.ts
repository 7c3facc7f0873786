import { chmodSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { Command } from "commander";
import { HoldfastError } from "../../../model/errors.ts";
import { historyOf } from "../../../runtime/history/record-history.ts";
import type { Cli } from "../../cli.ts";
import { escaped } from "../../text/style.ts";

interface ExportOptions {
  readonly output?: string;
  readonly force?: true;
}

/** `holdfast export`: prints the record of a run as a document. */
export function addExport(program: Command, cli: Cli): void {
  program
    .command("export")
    .description("prints the history of a run as JSON, with its values")
    .argument("<id>", "the id of the run")
    .option("--output <file>", "write to this file instead; an existing file is not replaced")
    .option("--force", "with --output: replace an existing file")
    .action(
      cli.action(async (context, given: ExportOptions, id: string) => {
        const { output, force = false } = given;
        if (force && output === undefined)
          throw new HoldfastError("OPTION_INVALID", "--force needs --output.", {
            option: "force",
          });
        const { pages } = await context.openForValues();
        const { options } = await context.target();
        const payload = options.payload?.name ?? null;
        const history = await historyOf(pages.executions, id, payload);
        // Not printJson, because the history holds values in their stored form.
        const text = escaped(JSON.stringify(history, null, context.isJson ? 0 : 2));
        if (output === undefined) return context.print(text);
        const file = path.resolve(context.host.cwd, output);
        written(file, output, `${text}\n`, force);
        if (context.isJson) context.printJson({ id, file: output });
        else context.note(`Wrote the history of ${id} to ${output}.`);
      }),
    );
}

/** Writes a file that only its user can read, even if others could read it before. */
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
          `"${named}" already exists and was not changed. Name another file, or replace it with --force.`,
          { file: named },
        )
      : new HoldfastError(
          "TARGET_INVALID",
          `"${named}" cannot be written: ${isFolder(file) ? "it is a folder" : code}. Name a file in an existing, writable folder.`,
          { file: named },
          { cause: error },
        );
  }
}

function isFolder(file: string): boolean {
  return statSync(file, { throwIfNoEntry: false })?.isDirectory() === true;
}
