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
import { harmless } from "../../text/style.ts";

interface MigrateOptions {
  readonly giveUp?: true;
  readonly force?: true;
}

/** `holdfast migrate`: a SQLite file becomes a Postgres database. */
export function addMigrate(program: Command, cli: Cli): void {
  program
    .command("migrate")
    .description("moves a SQLite file to an empty Postgres database, where all runs go on")
    .argument("<file>", "the database to move")
    .argument("<url>", "postgres://user@host/database; the password may come from PGPASSWORD")
    .option("--give-up", "end a move that was interrupted: the file is used again")
    .option("--force", "with --give-up: do not ask the target, which is gone")
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
            harmless(
              `The move was given up. ${shown[0]} can be used again; restart what was refused.`,
            ),
          );
        },
      ),
    );
}

function refuseOdd({ db, giveUp, force }: MigrateOptions & GlobalOptions, url: string): void {
  if (db !== undefined) throw refusal("db", "migrate takes both databases as arguments, not --db.");
  if (force === true && giveUp !== true) throw refusal("force", "--force is only for --give-up.");
  if (!isPostgresUrl(url))
    throw refusal(
      "url",
      "The second argument is where to move to: a URL that begins with postgres://. (It is not shown here since it may hold a password.)",
    );
}

function refusal(option: string, message: string): HoldfastError {
  return new HoldfastError("OPTION_INVALID", message, { option });
}

/** Of a config file only what is asked for: it is about another database as a rule. */
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
        .map(harmless)
        .join("\n"),
    );
  } catch (error) {
    // Who pressed Ctrl-C is told what to do next, which is no failure.
    if (isHoldfastError(error) && error.code === "ABORTED") {
      const { message, details } = error;
      context.note(message);
      if (context.isJson) context.printJson({ stopped: { ...details, message } });
    }
    throw error;
  }
}

/** People are told once a second, programs of every slice. */
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
  if (progress.phase === "arrived") return "Everything has arrived.";
  const { table, number, tables, rows, bytes } = progress;
  const doing = progress.phase === "copying" ? "Copying" : "Verifying";
  return `${doing} table ${number} of ${tables}, ${table}: ${counted(rows)} rows; ${megabytes(bytes)} in all.`;
}

function outcomeLines(outcome: MoveOutcome, source: string, target: string): readonly string[] {
  const { tables, appTables, attachmentsElsewhere, released } = outcome;
  const rows = tables.reduce((sum, table) => sum + table.rows, 0);
  const bytes = tables.reduce((sum, table) => sum + table.bytes, 0);
  return [
    `${source} ${outcome.isRepeated ? "had been moved" : "was moved"} to ${target}: ${counted(rows)} rows in ${tables.length} tables, ${megabytes(bytes)}. Rows and checksums of every table agree.`,
    ...(released > 0
      ? [`Runs taken from workers that were left behind: ${counted(released)}.`]
      : []),
    ...(appTables.length > 0
      ? [
          `Not copied, since they are your own tables: ${appTables.join(", ")}. Make them in Postgres and copy their rows before workers start.`,
        ]
      : []),
    ...(attachmentsElsewhere > 0
      ? [
          `Attachments in files: ${counted(attachmentsElsewhere)}. Keep their folder where the new program reaches it.`,
        ]
      : []),
    `Give the URL where ${source} was given, and restart. The file takes no more writes.`,
  ];
}

function counted(count: number): string {
  return count.toLocaleString("en");
}

function megabytes(bytes: number): string {
  return `${(bytes / 1_048_576).toFixed(1)} MiB`;
}
