import type { Command } from "commander";
import { HoldfastError, isHoldfastError } from "../../../model/errors.ts";
import { isPostgresUrl } from "../../../open/open-holdfast.ts";
import type { MoveProgress } from "../../../open/move/copy-tables.ts";
import {
  giveUpMove,
  moveToPostgres,
  type MoveOptions,
  type MoveOutcome,
} from "../../../open/move/move-to-postgres.ts";
import type { Warning } from "../../../sql/database.ts";
import type { Cli } from "../../cli.ts";
import type { CliContext } from "../../context.ts";
import { pathOf } from "../../database/config.ts";
import { shownTarget, type GlobalOptions } from "../../database/target.ts";
import { oneLine } from "../../text/style.ts";

interface MigrateOptions {
  readonly giveUp?: true;
  readonly force?: true;
}

/** `holdfast migrate`: moves a SQLite file to a Postgres database. */
export function addMigrate(program: Command, cli: Cli): void {
  program
    .command("migrate")
    .description("moves a SQLite file to an empty Postgres database, where all runs continue")
    .argument("<file>", "the database to move")
    .argument("<url>", "postgres://user@host/database; the password may come from PGPASSWORD")
    .option("--give-up", "give up an interrupted move, so that the file can be used again")
    .option("--force", "with --give-up: skip the target, because it is gone")
    .action(
      cli.action(
        async (context, options: MigrateOptions & GlobalOptions, file: string, url: string) => {
          refuseOdd(options, url);
          const { cwd } = context.host;
          const path = file === ":memory:" ? file : pathOf(file, cwd);
          const shown = [shownTarget(file, cwd), shownTarget(url, cwd)] as const;
          const how = await moveOptions(context, options);
          if (options.giveUp !== true) return moved(context, path, url, shown, how);
          const isTargetGone = options.force === true;
          await giveUpMove(path, url, { ...how, isTargetGone });
          context.answer({ givenUp: true }, () =>
            oneLine(
              `The move was given up. ${shown[0]} can be used again. Restart the refused processes.`,
            ),
          );
        },
      ),
    );
}

function refuseOdd({ db, giveUp, force }: MigrateOptions & GlobalOptions, url: string): void {
  if (db !== undefined) throw refusal("db", "migrate takes both databases as arguments, not --db.");
  if (force === true && giveUp !== true) throw refusal("force", "--force needs --give-up.");
  if (!isPostgresUrl(url))
    throw refusal(
      "url",
      "The second argument must be the target: a URL that starts with postgres://. (It is not shown, because it may hold a password.)",
    );
}

function refusal(option: string, message: string): HoldfastError {
  return new HoldfastError("OPTION_INVALID", message, { option });
}

/** Reads only a config file named by --config, since others usually describe another database. */
async function moveOptions(
  context: CliContext,
  { config, schema }: GlobalOptions,
): Promise<MoveOptions> {
  const given = config === undefined ? {} : ((await context.config())?.options ?? {});
  const onWarning = ({ message }: Warning): void => context.note(message);
  return {
    sqlite: { onWarning, ...given.sqlite },
    postgres: {
      onWarning,
      ...given.postgres,
      ...(schema !== undefined && { schema }),
    },
  };
}

async function moved(
  context: CliContext,
  path: string,
  url: string,
  shown: readonly [source: string, target: string],
  options: MoveOptions,
): Promise<void> {
  try {
    const outcome = await moveToPostgres(path, url, {
      ...options,
      signal: context.stop,
      onProgress: progressOf(context),
    });
    context.answer({ moved: outcome }, () =>
      outcomeLines(outcome, ...shown)
        .map(oneLine)
        .join("\n"),
    );
  } catch (error) {
    // After Ctrl-C, prints the next steps; that is not a failure.
    if (isHoldfastError(error) && error.code === "ABORTED") {
      const { message, details } = error;
      context.note(message);
      if (context.isJson) context.printJson({ stopped: { ...details, message } });
    }
    throw error;
  }
}

/** Progress for people comes once a second; programs get every slice. */
const sayEveryMs = 1_000;

function progressOf(context: CliContext): (progress: MoveProgress) => void {
  let saidAt = Number.NEGATIVE_INFINITY;
  let phase = "";
  return (progress) => {
    if (context.isJson) return context.printJson({ progress });
    const now = context.now();
    if (progress.phase === phase && now - saidAt < sayEveryMs) return;
    saidAt = now;
    phase = progress.phase;
    context.note(progressLine(progress));
  };
}

function progressLine(progress: MoveProgress): string {
  if (progress.phase === "arrived") return "All data has arrived.";
  const { table, number, tables, rows, bytes } = progress;
  const doing = progress.phase === "copying" ? "Copying" : "Verifying";
  return `${doing} table ${number} of ${tables}, ${table}: ${counted(rows)} rows; ${megabytes(bytes)} in total.`;
}

function outcomeLines(outcome: MoveOutcome, source: string, target: string): readonly string[] {
  const { tables, appTables, attachmentsElsewhere, released } = outcome;
  const rows = tables.reduce((sum, table) => sum + table.rows, 0);
  const bytes = tables.reduce((sum, table) => sum + table.bytes, 0);
  return [
    `${source} ${outcome.isRepeated ? "had been moved" : "was moved"} to ${target}: ${counted(rows)} rows in ${tables.length} tables, ${megabytes(bytes)}. Rows and checksums of every table agree.`,
    ...(released > 0
      ? [`Runs taken from workers that still held them: ${counted(released)}.`]
      : []),
    ...(appTables.length > 0
      ? [
          `Not copied, because they are your own tables: ${appTables.join(", ")}. Create them in Postgres and copy their rows before workers start.`,
        ]
      : []),
    ...(attachmentsElsewhere > 0
      ? [
          `Attachments in files: ${counted(attachmentsElsewhere)}. Keep their folder where the new program can read it.`,
        ]
      : []),
    `Replace ${source} with the URL in your program, and restart it. The file takes no more writes.`,
  ];
}

function counted(count: number): string {
  return count.toLocaleString("en");
}

function megabytes(bytes: number): string {
  return `${(bytes / 1_048_576).toFixed(1)} MiB`;
}
