import { existsSync } from "node:fs";
import path from "node:path";
import type { Command } from "commander";
import { HoldfastError, isHoldfastError } from "../../../model/errors.ts";
import type { Cli } from "../../cli.ts";
import { ProgressLine } from "../../text/progress-line.ts";
import { spokenBytes } from "../../text/spoken-bytes.ts";

/** `holdfast backup <to>`: copies a SQLite file beside running workers. */
export function addBackup(program: Command, cli: Cli): void {
  program
    .command("backup")
    .description(
      "copies a SQLite database to a new file as a consistent snapshot, beside running workers",
    )
    .argument("<file>", "the new file; an existing one is not replaced")
    .action(
      cli.action(async (context, _, to: string) => {
        const { file } = await context.openForReading();
        if (file === undefined)
          throw new HoldfastError(
            "OPTION_INVALID",
            "This command copies SQLite files. Back up Postgres with pg_dump or the backups of your provider.",
            { option: "db" },
          );
        const target = path.resolve(context.host.cwd, to);
        if (!existsSync(path.dirname(target)))
          throw new HoldfastError(
            "TARGET_INVALID",
            `The folder "${path.dirname(to)}" does not exist. Create it first, or correct the path.`,
            { target },
          );
        const progress = new ProgressLine(context);
        try {
          const { bytes } = await file.backup(target, {
            signal: context.stop,
            onProgress: ({ done, total }) =>
              progress.show(`${spokenBytes(done)} of ${spokenBytes(total)}`),
          });
          progress.clear();
          context.answer({ file: target, bytes }, () => `Copied ${spokenBytes(bytes)} to ${to}.`);
        } catch (error) {
          progress.clear();
          if (isHoldfastError(error) && error.code === "ABORTED")
            context.note("Stopped. No copy was made, and no partial file is left.");
          throw error;
        }
      }),
    );
}
