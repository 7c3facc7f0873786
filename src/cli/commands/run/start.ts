import type { Command } from "commander";
import { HoldfastError, isHoldfastError } from "../../../model/errors.ts";
import type { ExecutionRole } from "../../../model/execution/event.ts";
import { parseOwnExecutionId } from "../../../model/ids/execution-id.ts";
import type { Holdfast } from "../../../runtime/client/holdfast.ts";
import type { DurableFunction } from "../../../runtime/definition/definitions.ts";
import { runFailure } from "../../../runtime/failures.ts";
import type { StartOptions } from "../../../runtime/definition/workflow-context.ts";
import type { Cli } from "../../cli.ts";
import type { CliContext } from "../../context.ts";
import { exitCodes, type ExitCode } from "../../exit-codes.ts";
import { isModuleFile, loadModule } from "../../modules/load-module.ts";
import { functionsOf } from "../../modules/functions-of.ts";
import { durationOption } from "../../options/option-values.ts";
import { ownCommand } from "../../process/own-process.ts";
import { beforeFields, runBefore, startedText, type RunBefore } from "../../run-before.ts";
import { givenJson, jsonText } from "../../text/json.ts";
import { harmless } from "../../text/style.ts";
import { isTakenSoon, patienceMs, untilParked } from "./served.ts";

interface StartCommandOptions {
  readonly input?: string;
  readonly id?: string;
  readonly tag?: readonly string[];
  readonly key?: string;
  readonly activity?: true;
  readonly workflow?: true;
  readonly wait?: true;
  readonly timeout?: number;
}

/** A function by its code, or by its name alone. */
type Startable =
  | { readonly code: DurableFunction<unknown, unknown>; readonly name: string }
  | { readonly code: undefined; readonly name: string };

interface StartedRun {
  readonly id: string;
  readonly name: string;
  readonly before: RunBefore;
}

/** How many of the newest runs of a function are asked of which kind it is. */
const rolesMax = 100;

/** `holdfast start`: begins a run. */
export function addStart(program: Command, cli: Cli): void {
  program
    .command("start")
    .argument("<file-or-function>", "a module, or the name of a function")
    .argument("[function]", "which of the module; needed when it has several workflows")
    .description(
      "starts a run of a function: of a module, whose schema then checks the input, or by its name alone; says so when no worker takes it within two seconds",
    )
    .option("--input <json>", "what it is given; - reads standard input")
    .option("--id <id>", "its id: started twice under it, it is one run")
    .option("--tag <tag...>", "what it can be found by")
    .option("--key <key>", "its concurrency key")
    .option(
      "--activity",
      "the name is that of an activity; by default it is what its earlier runs were, else a workflow",
    )
    .option("--workflow", "the name is that of a workflow")
    .option("--wait", "wait for its end, and print what it returned")
    .option("--timeout <time>", "how long to wait at most", durationOption)
    .action(
      cli.action(
        async (
          context,
          options: StartCommandOptions,
          first: string,
          second: string | undefined,
        ) => {
          if (options.timeout !== undefined && options.wait !== true)
            throw new HoldfastError("OPTION_INVALID", "--timeout is only for --wait.", {
              option: "timeout",
            });
          if (options.activity === true && options.workflow === true)
            throw new HoldfastError(
              "OPTION_INVALID",
              "A function is either a workflow or an activity: give --workflow or --activity, not both.",
              { option: "activity" },
            );
          const input = await inputOf(context, options.input);
          const startable = await startableOf(context, first, second);
          const holdfast =
            startable.code === undefined
              ? await context.openForWriting()
              : await context.openForWork(() => undefined);
          const { executions } = holdfast;
          const before = await runBefore(context, executions, options.id);
          const id = await started(holdfast, startable, input, options);
          const run = { id, name: startable.name, before };
          return follow(context, holdfast, run, options);
        },
      ),
    );
}

async function inputOf({ host }: CliContext, given: string | undefined): Promise<unknown> {
  return given === undefined ? undefined : givenJson("--input", given, host);
}

/** @throws HoldfastError `MODULE_NOT_LOADED`, `MODULE_WITHOUT_FUNCTIONS`, `OPTION_INVALID` */
async function startableOf(
  { host }: CliContext,
  first: string,
  second: string | undefined,
): Promise<Startable> {
  if (!isModuleFile(first, host.cwd)) {
    if (second === undefined) return { code: undefined, name: first };
    throw new HoldfastError(
      "OPTION_INVALID",
      `"${first}" is no module. Give a file and a function of it, or the name of a function alone.`,
      { option: "file" },
    );
  }
  const { functions } = functionsOf(await loadModule(first, host.cwd), first);
  const names = functions.map(({ name }) => name).join(", ");
  const workflows = functions.filter(({ kind }) => kind === "workflow");
  const only = workflows.length === 1 ? workflows[0] : functions[0];
  const isOnly = workflows.length === 1 || functions.length === 1;
  const found =
    second === undefined ? isOnly && only : functions.find(({ name }) => name === second);
  if (found)
    return {
      code: found as DurableFunction<unknown, unknown>,
      name: found.name,
    };
  throw new HoldfastError(
    "OPTION_INVALID",
    second === undefined
      ? `Which function of "${first}"? There are: ${names}.`
      : `There is no function "${second}" in "${first}". There are: ${names}.`,
    { option: "function" },
  );
}

async function started(
  holdfast: Holdfast,
  { code, name }: Startable,
  input: unknown,
  { id, tag, key, activity, workflow }: StartCommandOptions,
): Promise<string> {
  const options: StartOptions = {
    ...(id !== undefined && { id }),
    ...(tag !== undefined && { tags: tag }),
    ...(key !== undefined && { concurrencyKey: key }),
  };
  if (code !== undefined) return (await holdfast.start(code, input, options)).id;
  if (id !== undefined) parseOwnExecutionId(id);
  const { executions } = holdfast;
  const said = activity === true ? "activity" : workflow && "workflow";
  const role = said ?? (await knownRole(holdfast, name));
  return (await executions.create({ ...options, function: name, role, input })).id;
}

/**
 * What earlier runs of it were, else a workflow. Where they were both, one of
 * the two was a mistake, and to guess would repeat it.
 * @throws HoldfastError `OPTION_INVALID`
 */
async function knownRole({ executions }: Holdfast, name: string): Promise<ExecutionRole> {
  const { items } = await executions.list({ function: name, limit: rolesMax });
  const [role = "workflow", ...others] = new Set(items.map((run) => run.role));
  if (others.length === 0) return role;
  throw new HoldfastError(
    "OPTION_INVALID",
    `Runs of "${name}" were started both as a workflow and as an activity. Say --workflow or --activity, or name the module: ${ownCommand()} start <file> ${name}.`,
    { option: "activity" },
  );
}

async function follow(
  context: CliContext,
  holdfast: Holdfast,
  run: StartedRun,
  { wait, timeout }: StartCommandOptions,
): Promise<ExitCode> {
  const { id, name } = run;
  const said = harmless(startedText(id, name, run.before));
  const document = documentOf(run);
  if (wait === true) context.note(said);
  else if (!context.isJson) context.print(said);
  const withinMs = Math.min(patienceMs, timeout ?? patienceMs);
  const soon = isTakenSoon(holdfast, id, withinMs, context.stop);
  const taken = soon.then((isTaken) => {
    if (isTaken === false)
      context.note(
        `No worker runs "${name}" yet, so ${id} waits. Start one: ${ownCommand()} work <file>${context.dbOption}`,
      );
    return isTaken;
  });
  if (wait !== true) {
    // A program is told in the one document that there is.
    const isTaken = await taken;
    if (context.isJson) context.printJson({ ...document, ...beforeFields(run.before), isTaken });
    return exitCodes.ok;
  }
  const unwatch = untilParked(holdfast, id, (reason) =>
    context.note(harmless(`${id} is parked, and ends only when it is unparked: ${reason}`)),
  );
  const result = await holdfast.executions
    .waitForResult(id, {
      signal: context.stop,
      ...(timeout !== undefined && { timeout }),
    })
    .catch(async (error: unknown) => {
      throw stillOpen(context, run, error, await taken);
    })
    .finally(unwatch);
  if (result.kind === "completed") {
    const { value } = result;
    context.answer({ ...document, value }, () =>
      value === undefined ? "" : harmless(jsonText(value, 2)),
    );
    return exitCodes.ok;
  }
  const failure = runFailure({ id, function: name }, result);
  if (context.isJson) context.printJson({ ...document, failed: failure.message });
  else context.note(failure.message);
  return exitCodes.failed;
}

/** The run goes on: who does not wait for it any longer is told its id. */
function stillOpen(
  context: CliContext,
  run: StartedRun,
  error: unknown,
  isTaken: boolean | undefined,
): unknown {
  if (!isHoldfastError(error)) return error;
  const { id } = run;
  const { code, message, details } = error;
  if (code === "DEADLINE_EXCEEDED")
    return new HoldfastError(code, message, { ...details, id, isTaken });
  if (code === "ABORTED") {
    context.note(`Stopped waiting; ${id} goes on.`);
    if (context.isJson) context.printJson({ stopped: documentOf(run) });
  }
  return error;
}

/** What programs are told of a run, whatever became of it: how it stood before is not among it. */
function documentOf({ id, name, before }: StartedRun): object {
  return { id, function: name, existed: before.existed };
}
