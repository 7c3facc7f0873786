import { Argument, type Command } from "commander";
import { HoldfastError } from "../../../model/errors.ts";
import type { BulkReport, Runs } from "../../../runtime/client/runs.ts";
import type { Cli } from "../../cli.ts";
import { confirmed } from "../../options/confirm.ts";
import type { CliContext } from "../../context.ts";
import { exitCodes, type ExitCode } from "../../exit-codes.ts";
import { filterOf, withFilter, type FilterOptions } from "../../options/run-filter.ts";
import { oneLine } from "../../text/style.ts";

interface BulkOptions extends FilterOptions {
  readonly all?: true;
  readonly dryRun?: true;
  readonly force?: true;
  readonly reason?: string;
  readonly yes?: true;
}

const actions = {
  cancel: "cancelAll",
  pause: "pauseAll",
  resume: "resumeAll",
  unpark: "unparkAll",
  retry: "retryAll",
  erase: "eraseAll",
} as const satisfies Readonly<Record<string, keyof Runs>>;

type Action = keyof typeof actions;

/** Actions that fix some filters themselves, so these options are refused. */
const chosen: Readonly<
  Partial<
    Record<
      Action,
      {
        readonly runs: string;
        readonly options: readonly (keyof FilterOptions)[];
      }
    >
  >
> = {
  resume: { runs: "paused runs", options: ["status"] },
  unpark: { runs: "parked runs", options: ["status"] },
  retry: {
    runs: "failed top-level runs",
    options: ["status", "topLevel", "parent"],
  },
  erase: {
    runs: "finished top-level runs",
    options: ["status", "topLevel", "parent", "open"],
  },
};

/** `holdfast bulk`: applies one command to all runs that match a filter. */
export function addBulk(program: Command, cli: Cli): void {
  const command = program
    .command("bulk")
    .description("applies an action to all matching runs; counts them first, and asks")
    .addArgument(new Argument("<action>", "the action").choices(Object.keys(actions)));
  withFilter(command, cli.host)
    .option("--all", "all runs, if no other option filters")
    .option("--dry-run", "only count the runs")
    .option("--force", "with cancel: end the runs without running their code")
    .option("--reason <text>", "with cancel: the reason, for people")
    .option("--yes", "do not ask for confirmation")
    .action(
      cli.action((context, { all, ...options }: BulkOptions, action: Action) => {
        const filter = filterOf(options);
        if (Object.keys(filter).length === 0 && all !== true)
          throw usage(
            "No runs were chosen. Pass a filter, such as --function orders/fulfil or --tag eu, or pass --all.",
          );
        refuseChosen(action, options);
        const { force, reason } = options;
        if (action !== "cancel" && (force ?? reason) !== undefined)
          throw usage("--force and --reason are only for cancel.");
        return commanded(context, action, filter, options);
      }),
    );
}

function refuseChosen(action: Action, filter: FilterOptions): void {
  const own = chosen[action];
  const said = own?.options.find((name) => filter[name] !== undefined);
  if (own === undefined || said === undefined) return;
  const option = said.replaceAll(/[A-Z]/g, (at) => `-${at.toLowerCase()}`);
  throw usage(
    `bulk ${action} applies only to ${own.runs}, so it takes no --${option}. Leave it out.`,
  );
}

function usage(message: string): HoldfastError {
  return new HoldfastError("OPTION_INVALID", message);
}

async function commanded(
  context: CliContext,
  action: Action,
  filter: Parameters<Runs["cancelAll"]>[0],
  { dryRun, force, reason, yes }: BulkOptions,
): Promise<ExitCode> {
  const { runs } = await context.openForWriting();
  const signal = context.stop;
  const method: Runs["cancelAll"] = runs[actions[action]].bind(runs);
  const found = await method(filter, { dryRun: true, signal }).catch((error: unknown) => {
    if (signal.aborted) context.note("Stopped. Nothing was changed.");
    throw error;
  });
  const { matched } = found;
  if (dryRun === true || matched === 0) {
    context.answer(
      dryRun === true ? { matched } : found,
      () => `${action}: ${counted(matched)} ${matched === 1 ? "matches" : "match"}.`,
    );
    return exitCodes.ok;
  }
  const question = `${action} ${counted(matched)}?`;
  if (!(await confirmed(context, question, yes))) {
    context.note("Nothing was changed.");
    return exitCodes.refused;
  }
  let last: BulkReport | undefined;
  try {
    const report = await method(filter, {
      signal,
      onProgress(so) {
        last = so;
        context.note(`${so.matched} of ${matched} …`);
      },
      ...(force && { force }),
      ...(reason !== undefined && { reason }),
    });
    context.answer(report, () => toldReport(action, report));
    return report.failed === 0 ? exitCodes.ok : exitCodes.failed;
  } catch (error) {
    // The JSON answer reports the progress too.
    if (context.isJson && signal.aborted)
      context.printJson({ stopped: last ?? { matched: 0, changed: 0 } });
    else if (last !== undefined) context.note(`Before the stop: ${toldReport(action, last)}`);
    throw error;
  }
}

function counted(runs: number): string {
  return runs === 1 ? "1 run" : `${runs} runs`;
}

function toldReport(action: Action, report: BulkReport): string {
  const { changed, unchanged, failed, failures } = report;
  const rest = unchanged > 0 ? `, ${unchanged} unchanged` : "";
  const head = `${action}: ${counted(changed)}${rest}${failed > 0 ? `, ${failed} failed` : ""}.`;
  const why = failures.map(({ id, code, message }) => `  ${id}  ${code}: ${oneLine(message)}`);
  return [head, ...why].join("\n");
}
