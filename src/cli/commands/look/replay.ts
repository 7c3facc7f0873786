import { readFileSync } from "node:fs";
import path from "node:path";
import type { Command } from "commander";
import { HoldfastError } from "../../../model/errors.ts";
import type { PayloadCodec } from "../../../model/values/payload-codec.ts";
import type { DurableFunction, Workflow } from "../../../runtime/definition/definitions.ts";
import { historyInvalid } from "../../../runtime/history/read-history.ts";
import { historyOf } from "../../../runtime/history/record-history.ts";
import { replayHistory } from "../../../runtime/history/replay-history.ts";
import type { ReplayOutcome } from "../../../runtime/history/replay-log.ts";
import type { RunHistory } from "../../../runtime/history/run-history.ts";
import type { Cli } from "../../cli.ts";
import type { CliContext } from "../../context.ts";
import { exitCodes } from "../../exit-codes.ts";
import { functionsOf } from "../../modules/functions-of.ts";
import { loadModule } from "../../modules/load-module.ts";
import { barred, oneLine } from "../../text/style.ts";

interface ReplayOptions {
  readonly run?: string;
}

/** `holdfast replay`: checks whether the code of a module is safe for a run. */
export function addReplay(program: Command, cli: Cli): void {
  program
    .command("replay")
    .description(
      "replays the history of a run with the code of a module, and changes nothing; exits with 6 if the code differs",
    )
    .argument("<module>", "the file that exports the workflow")
    .argument("[history]", "a file written by `export`")
    .option("--run <id>", "a run of the database, instead of a file")
    .action(
      cli.action(
        async (context, options: ReplayOptions, module: string, file: string | undefined) => {
          const { history, payload } = await given(context, options, file);
          const exported = await loadModule(module, context.host.cwd);
          const workflow = found(module, exported, history);
          const outcome = await replayHistory(workflow, history, payload && { payload });
          const { run, function: name } = history;
          context.answer({ run, function: name, ...shown(outcome) }, () =>
            spoken(history, outcome),
          );
          return outcome.kind === "differs" ? exitCodes.findings : exitCodes.ok;
        },
      ),
    );
}

interface Given {
  readonly history: RunHistory;
  readonly payload: PayloadCodec | undefined;
}

async function given(
  context: CliContext,
  { run }: ReplayOptions,
  file: string | undefined,
): Promise<Given> {
  if ((run === undefined) === (file === undefined))
    throw new HoldfastError(
      "OPTION_INVALID",
      "Pass either a file written by `npx holdfast export`, or --run <id> and the database.",
      { option: "history" },
    );
  if (file !== undefined) {
    const history = fromFile(context, file);
    // Only hashes need the codec; without one no database must be named.
    const isPlain = (Object(history) as RunHistory).payload === null;
    const payload = isPlain ? undefined : (await context.config())?.options?.payload;
    return { history, payload };
  }
  const { pages } = await context.openForValues();
  const { payload } = (await context.target()).options;
  const name = payload?.name ?? null;
  return {
    history: await historyOf(pages.executions, run ?? "", name),
    payload,
  };
}

function fromFile({ host }: CliContext, file: string): RunHistory {
  let text: string;
  try {
    text = readFileSync(path.resolve(host.cwd, file), "utf8");
  } catch (error) {
    throw new HoldfastError(
      "OPTION_INVALID",
      `"${file}" cannot be read: ${(error as NodeJS.ErrnoException).code ?? "unknown"}. Check the path; \`npx holdfast export <id> --output <file>\` writes one.`,
      { option: "history" },
      { cause: error },
    );
  }
  try {
    return JSON.parse(text) as RunHistory;
  } catch {
    throw historyInvalid(
      "format",
      `"${file}" is not JSON, so it is not a history. \`npx holdfast export <id> --output <file>\` writes one.`,
    );
  }
}

/** The workflow of the history. The replay itself refuses an invalid history. */
function found(
  module: string,
  exported: Readonly<Record<string, unknown>>,
  history: RunHistory,
): Workflow<never, unknown> {
  const workflows = functionsOf(exported, module).functions.filter(isWorkflow);
  const { function: name } = Object(history) as Partial<RunHistory>;
  const match = workflows.find((each) => each.name === name);
  if (match !== undefined) return match;
  const [first] = workflows;
  if (first !== undefined && typeof name !== "string") return first;
  const names = workflows.map((each) => `"${each.name}"`).join(", ");
  throw new HoldfastError(
    "OPTION_INVALID",
    `"${module}" exports no workflow "${String(name)}", to which the history belongs. ` +
      (names === "" ? "It exports no workflow." : `It exports ${names}.`),
    { option: "module" },
  );
}

function isWorkflow(fn: DurableFunction<never, unknown>): fn is Workflow<never, unknown> {
  return fn.kind === "workflow";
}

function shown(outcome: ReplayOutcome): object {
  if (outcome.kind !== "differs") return outcome;
  const { code, message, details } = outcome.error;
  return { kind: outcome.kind, error: { code, message, details } };
}

function spoken(history: RunHistory, outcome: ReplayOutcome): string {
  // A file may hold any text.
  const [run, name] = [oneLine(history.run), oneLine(history.function)];
  switch (outcome.kind) {
    case "matches":
      return `The code of ${name} matches all recorded calls of run ${run}, and would continue from there.`;
    case "ends":
      return `The code of ${name} matches all recorded calls of run ${run}, and ends: ${outcome.result === "continued" ? "continued with a new input" : outcome.result.kind}.`;
    case "differs":
      return barred(outcome.error.message);
  }
}
