import { Option, type Command } from "commander";
import { exactInstant } from "../../../model/time/spoken.ts";
import { isHoldfastError } from "../../../model/errors.ts";
import type { ReadableHoldfast } from "../../../open/open-existing.ts";
import type { LogLevel, LogLine } from "../../../stores/execution/read/logs.ts";
import { executionEnded } from "../../../stores/execution/topics.ts";
import { waitUntil } from "../../../stores/wait.ts";
import type { Cli } from "../../cli.ts";
import type { CliContext } from "../../context.ts";
import { everyPage } from "../../../stores/every-page.ts";
import { oneLine, type Colour } from "../../text/style.ts";
import { valueText } from "../../text/value-text.ts";

interface LogOptions {
  readonly follow?: true;
  readonly children?: true;
  readonly level: LogLevel;
}

const levels: readonly LogLevel[] = ["trace", "debug", "info", "warn", "error"];
const colours: Readonly<Record<LogLevel, Colour>> = {
  trace: "dim",
  debug: "dim",
  info: "blue",
  warn: "yellow",
  error: "red",
};

/** The longest time in milliseconds between two reads while following, in case a notification is missed. */
const lookAgainMs = 1_000;

/** `holdfast logs <id>`: prints the log lines of a run. */
export function addLogs(program: Command, cli: Cli): void {
  program
    .command("logs")
    .description("prints the lines that a run wrote to ctx.log; with --json one document per line")
    .argument("<id>", "the id of the run")
    .option("--follow", "keep printing until the run has ended, or Ctrl-C")
    .option("--children", "include all runs below it")
    .addOption(
      new Option("--level <level>", "this level and more severe ones")
        .choices(levels)
        .default("trace"),
    )
    .action(
      cli.action(async (context, options: LogOptions, id: string) => {
        const opened = await context.openForReading();
        await opened.pages.executions.get(id, { signal: context.stop });
        const printer = new LinePrinter(context, options);
        await printer.printNew(opened, id);
        if (options.follow) await follow(context, opened, id, printer);
        else if (printer.count === 0) context.note("No lines.");
      }),
    );
}

/** Prints each line once, as it arrives. */
class LinePrinter {
  count = 0;
  readonly #context: CliContext;
  readonly #options: LogOptions;
  #from = 0;

  constructor(context: CliContext, options: LogOptions) {
    this.#context = context;
    this.#options = options;
  }

  async printNew({ pages }: ReadableHoldfast, id: string): Promise<void> {
    const from = this.#from;
    const includeDerived = this.#options.children === true;
    const { stop } = this.#context;
    const read = (page: object) =>
      pages.executions.logs(id, {
        ...page,
        from,
        includeDerived,
        signal: stop,
      });
    for await (const { items, damaged } of everyPage(read)) {
      for (const line of items) this.#print(line);
      for (const { key } of damaged) this.#context.note(`Line ${key} is unreadable.`);
      if (stop.aborted) return;
    }
  }

  #print(line: LogLine): void {
    this.#from = line.key + 1;
    if (levels.indexOf(line.level) < levels.indexOf(this.#options.level)) return;
    this.count += 1;
    this.#context.answer(line, () => this.#text(line));
  }

  #text({ at, level, message, execution, step, data }: LogLine): string {
    const { style, host } = this.#context;
    const parts = [
      style("dim", exactInstant(at, host.timeZone)),
      style(colours[level], level.padEnd(5)),
      ...(this.#options.children === true ? [style("dim", execution)] : []),
      ...(step === null ? [] : [style("dim", `[${oneLine(step)}]`)]),
      oneLine(message),
      ...(data === null || data === undefined ? [] : [style("dim", valueText(data))]),
    ];
    return parts.join(" ");
  }
}

/** Prints until the run has ended, when all its lines are stored. */
async function follow(
  context: CliContext,
  opened: ReadableHoldfast,
  id: string,
  printer: LinePrinter,
): Promise<void> {
  const { database, pages } = opened;
  try {
    await waitUntil(
      database,
      {
        what: `the end of run ${id}`,
        interests: [
          { operation: "appendLogs", key: id },
          { operation: executionEnded, key: id },
        ],
        async look() {
          const { state } = await pages.executions.get(id);
          await printer.printNew(opened, id);
          return state.pending.kind === "finished"
            ? { isThere: true, value: undefined }
            : { isThere: false, again: database.clock.now() + lookAgainMs };
        },
      },
      { signal: context.stop },
    );
    context.note("The run has ended.");
  } catch (error) {
    if (!isHoldfastError(error) || error.code !== "ABORTED") throw error;
    context.note(`Stopped after ${printer.count} lines. The run continues.`);
  }
}
