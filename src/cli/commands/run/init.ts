import type { Command } from "commander";
import type { Cli } from "../../cli.ts";
import { writeFirstFile } from "../../init/first-file.ts";

/** `holdfast init`: writes a first file. */
export function addInit(program: Command, cli: Cli): void {
  program
    .command("init")
    .argument("[folder]", "the target folder; created if missing")
    .description(
      "writes a first file with a workflow: app.mts, or app.mjs before Node 22.18; overwrites nothing",
    )
    .action(
      cli.action(async (context, _: object, folder: string | undefined) => {
        const written = await writeFirstFile(context.host.cwd, folder ?? ".");
        context.answer(written, () =>
          [
            `Wrote ${written.file}. Next:`,
            ...written.next.map(({ command, what }) => `  ${command.padEnd(34)}  ${what}`),
          ].join("\n"),
        );
      }),
    );
}
