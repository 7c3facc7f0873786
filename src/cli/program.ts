import { Command, CommanderError } from "commander";
import { HoldfastError } from "../model/errors.ts";
import { Cli, type AddCommand } from "./cli.ts";
import { addAnswer } from "./commands/steer/answer.ts";
import { addBulk } from "./commands/steer/bulk.ts";
import { addErase } from "./commands/steer/erase.ts";
import { addExport } from "./commands/look/export.ts";
import { addList } from "./commands/look/list.ts";
import { addLogs } from "./commands/look/logs.ts";
import { addQuestions } from "./commands/look/questions.ts";
import { addShow } from "./commands/look/show.ts";
import { addFailures } from "./commands/look/failures.ts";
import { addStats } from "./commands/look/stats.ts";
import { addReplay } from "./commands/look/replay.ts";
import { addDemo } from "./commands/run/demo.ts";
import { addDev } from "./commands/run/dev.ts";
import { addInit } from "./commands/run/init.ts";
import { addStart } from "./commands/run/start.ts";
import { addWork } from "./commands/run/work.ts";
import { addMigrate } from "./commands/upkeep/migrate.ts";
import { addCancel } from "./commands/steer/cancel.ts";
import { addCopies } from "./commands/steer/copies.ts";
import { addLifecycle } from "./commands/steer/lifecycle.ts";
import { addSchedules } from "./commands/steer/schedules.ts";
import { addSignal } from "./commands/steer/signal.ts";
import { addBackup } from "./commands/upkeep/backup.ts";
import { addCheck } from "./commands/upkeep/check.ts";
import { addDoctor } from "./commands/upkeep/doctor.ts";
import { addRepair } from "./commands/upkeep/repair.ts";
import type { ExitCode } from "./exit-codes.ts";
import { columnsOf, type CliHost } from "./host.ts";
import { ownVersion } from "./own-version.ts";

/** The groups of `holdfast --help`, and the order there and in docs/cli.md. */
const commands: Readonly<Record<string, readonly AddCommand[]>> = {
  "Run workflows:": [addDemo, addInit, addDev, addWork, addStart],
  "Look at runs:": [
    addList,
    addShow,
    addLogs,
    addQuestions,
    addStats,
    addFailures,
    addExport,
    addReplay,
  ],
  "Control runs:": [
    addSignal,
    addAnswer,
    addCancel,
    addLifecycle,
    addCopies,
    addErase,
    addBulk,
    addSchedules,
  ],
  "Maintain a database:": [addDoctor, addCheck, addRepair, addBackup, addMigrate],
};

/** The longest line of a help text. */
const helpColumnsMax = 80;

/** Runs one command line, such as `["list", "--json"]`; never rejects. */
export async function runCli(args: readonly string[], host: CliHost): Promise<ExitCode> {
  const cli = new Cli(host);
  const program = programOf(cli);
  try {
    await program.parseAsync(args.length === 0 ? ["--help"] : [...args], {
      from: "user",
    });
  } catch (error) {
    // Help and the version have already been printed.
    const isAnswer = error instanceof CommanderError && error.exitCode === 0;
    if (!isAnswer)
      cli.fail(asUsage(await aboutHelp(error, args, cli)), {
        json: args.includes("--json"),
        debug: args.includes("--debug"),
      });
  }
  return cli.exitCode;
}

/** The program with all its commands. */
export function programOf(cli: Cli): Command {
  const { stdout } = cli.host;
  const program = new Command("holdfast")
    .description("Run, inspect and control durable workflows.")
    .version(ownVersion(), "-V, --version", "print the version")
    .option(
      "--db <database>",
      "a file or a postgres:// URL (default: HOLDFAST_DB, then the config file)",
    )
    .option("--schema <name>", "the Postgres schema of the tables (default: holdfast)")
    .option(
      "--config <file>",
      "a config file (default: the nearest holdfast.config.ts, .mts, .mjs or .js)",
    )
    .option("--json", "print JSON for other programs")
    .option("--debug", "print stack traces of errors")
    .helpOption("-h, --help", "print this help")
    .helpCommand("help [command]", "prints the help of a command")
    .configureHelp({ showGlobalOptions: true, subcommandTerm, subcommandDescription })
    .configureOutput({
      writeOut: (text) => void stdout.write(text),
      // `fail` prints errors, as JSON under --json.
      writeErr: () => undefined,
      getOutHelpWidth: () => Math.min(helpColumnsMax, columnsOf(stdout)),
    })
    .exitOverride();
  for (const [heading, group] of Object.entries(commands)) {
    program.commandsGroup(heading);
    for (const add of group) add(program, cli);
  }
  return program;
}

/** The names alone: with arguments beside them, descriptions would not fit a terminal. */
function subcommandTerm(command: Command): string {
  return command.name();
}

/** The first part of a description; the help of the command itself has all of it. */
function subcommandDescription(command: Command): string {
  return command.description().split(";")[0] ?? "";
}

/** Finds a better error for `help` of an unknown command, one that suggests similar commands. */
async function aboutHelp(error: unknown, args: readonly string[], cli: Cli): Promise<unknown> {
  const [first, word] = args.filter((arg) => !arg.startsWith("-"));
  const isHelp = error instanceof CommanderError && first === "help";
  if (!isHelp || word === undefined) return error;
  try {
    await programOf(cli).parseAsync([word], { from: "user" });
    return error;
  } catch (better) {
    return better;
  }
}

/** Turns an error of commander into a HoldfastError. */
function asUsage(error: unknown): unknown {
  if (!(error instanceof CommanderError)) return error;
  const said = (
    error.code === "commander.help"
      ? "No command was named" // `holdfast --json`
      : error.message
  )
    .replace(/^error: /, "")
    .replaceAll("\n", " ");
  const text = `${said.charAt(0).toUpperCase()}${said.slice(1)}`;
  return new HoldfastError(
    "OPTION_INVALID",
    `${/[.)?]$/.test(text) ? text : `${text}.`} Run it with --help to see all commands and options.`,
    { reason: error.code },
  );
}
