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
import { oneLine } from "../../text/style.ts";
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

/** A function by its code, or only by its name. */
type Startable =
  | { readonly code: DurableFunction<unknown, unknown>; readonly name: string }
  | { readonly code: undefined; readonly name: string };

interface StartedRun {
  readonly id: string;
  readonly name: string;
  readonly before: RunBefore;
}

/** The number of newest runs that decide the kind of a function. */
const rolesMax = 100;

/** `holdfast start`: starts a run. */
export function addStart(program: Command, cli: Cli): void {
  program
    .command("start")
    .argument("<file-or-function>", "a module, or the name of a function")
    .argument("[function]", "the function of the module; needed if it has several workflows")
    .description(
      "starts a run of a function, either from a module, whose schema then checks the input, or only by name; reports if no worker takes it within two seconds",
    )
    .option("--input <json>", "the input of the run; - reads standard input")
    .option("--id <id>", "the id of the run; starting twice with one id gives one run")
    .option("--tag <tag...>", "tags to find the run by")
    .option("--key <key>", "the concurrency key")
    .option(
      "--activity",
      "the name is an activity (default: the kind of its earlier runs, or a workflow)",
    )
    .option("--workflow", "the name is a workflow")
    .option("--wait", "wait for the run to end, and print its result")
    .option("--timeout <time>", "the longest time to wait", durationOption)
    .action(
      cli.action(
        async (
          context,
          options: StartCommandOptions,
          first: string,
          second: string | undefined,
        ) => {
          if (options.timeout !== undefined && options.wait !== true)
            throw new HoldfastError("OPTION_INVALID", "--timeout needs --wait.", {
              option: "timeout",
            });
          if (options.activity === true && options.workflow === true)
            throw new HoldfastError(
              "OPTION_INVALID",
              "A function is either a workflow or an activity. Pass --workflow or --activity, not both.",
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
      `"${first}" is not a module. Pass a file and one of its functions, or only the name of a function.`,
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
      ? `"${first}" exports several functions. Name one of: ${names}.`
      : `"${first}" has no function "${second}". Its functions are: ${names}.`,
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
 * The kind of its earlier runs, or a workflow. If they were of both kinds, one
 * was a mistake, and a guess might repeat it.
 * @throws HoldfastError `OPTION_INVALID`
 */
async function knownRole({ executions }: Holdfast, name: string): Promise<ExecutionRole> {
  const { items } = await executions.list({ function: name, limit: rolesMax });
  const [role = "workflow", ...others] = new Set(items.map((run) => run.role));
  if (others.length === 0) return role;
  throw new HoldfastError(
    "OPTION_INVALID",
    `Runs of "${name}" were started both as a workflow and as an activity. Pass --workflow or --activity, or name the module: ${ownCommand()} start <file> ${name}.`,
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
  const said = oneLine(startedText(id, name, run.before));
  const document = documentOf(run);
  if (wait === true) context.note(said);
  else if (!context.isJson) context.print(said);
  const withinMs = Math.min(patienceMs, timeout ?? patienceMs);
  const soon = isTakenSoon(holdfast, id, withinMs, context.stop);
  const taken = soon.then((isTaken) => {
    if (isTaken === false)
      context.note(
        `No worker serves "${name}" yet, so ${id} waits. Start one: ${ownCommand()} work <file>${context.dbOption}`,
      );
    return isTaken;
  });
  if (wait !== true) {
    // A program gets it in its only document.
    const isTaken = await taken;
    if (context.isJson) context.printJson({ ...document, ...beforeFields(run.before), isTaken });
    return exitCodes.ok;
  }
  const unwatch = untilParked(holdfast, id, (reason) =>
    context.note(`${id} is parked, and cannot end until it is unparked: ${reason}`),
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
    context.answer({ ...document, value }, () => (value === undefined ? "" : jsonText(value, 2)));
    return exitCodes.ok;
  }
  const failure = runFailure({ id, function: name }, result);
  if (context.isJson) context.printJson({ ...document, failed: failure.message });
  else context.note(failure.message);
  return exitCodes.failed;
}

/** The run continues after the wait ends, so the caller gets its id. */
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
    context.note(`Stopped waiting. ${id} continues.`);
    if (context.isJson) context.printJson({ stopped: documentOf(run) });
  }
  return error;
}

/** The JSON fields of a run for every outcome; its earlier status is not among them. */
function documentOf({ id, name, before }: StartedRun): object {
  return { id, function: name, existed: before.existed };
}
