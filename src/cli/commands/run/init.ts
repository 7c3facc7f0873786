import type { Command } from "commander";
import type { Cli } from "../../cli.ts";
import { writeFirstFile } from "../../init/first-file.ts";

/** `holdfast init`: one file to begin with. */
export function addInit(program: Command, cli: Cli): void {
  program
    .command("init")
    .argument("[folder]", "where to write it; it is made when it is missing")
    .description(
      "writes one file with a workflow that this Node can run: app.mts, or app.mjs before Node 22.18; overwrites nothing",
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
