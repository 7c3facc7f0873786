import type { Command } from "commander";
import { spokenDuration } from "../../../model/time/spoken.ts";
import { isStoredError } from "../../../model/values/restored-error.ts";
import type { ReadableHoldfast } from "../../../open/open-existing.ts";
import type { ExecutionSummary } from "../../../stores/execution/read/summary.ts";
import type { Cli } from "../../cli.ts";
import type { CliContext } from "../../context.ts";
import { everyItem } from "../../../stores/every-page.ts";
import { instantOption, wholeNumberOption } from "../../options/option-values.ts";
import { oneLine, type Colour } from "../../text/style.ts";
import { clipped } from "../../text/text-width.ts";

interface FailureOptions {
  readonly function?: string;
  readonly since?: number;
  readonly limit?: number;
}

/** Failed runs of one function with the same error, newest group first. */
interface FailureGroup {
  readonly function: string;
  readonly error: {
    readonly name: string;
    readonly code?: string | number;
    readonly message: string;
  };
  count: number;
  firstAt: number;
  lastAt: number;
  /** The newest of these runs. */
  example: string;
}

const limitDefault = 1_000;
const readAtOnce = 50;

/** `holdfast failures`: groups failed runs by function and error. */
export function addFailures(program: Command, cli: Cli): void {
  program
    .command("failures")
    .description("groups failed runs by function and error, with an example of each")
    .option("--function <name>", "only runs of this function")
    .option("--since <time>", "only runs created at or after this time", instantOption(cli.host))
    .option(
      "--limit <count>",
      `the number of newest failed runs to read (default: ${limitDefault})`,
      wholeNumberOption,
    )
    .action(
      cli.action(async (context, options: FailureOptions) => {
        const opened = await context.openForValues();
        const found = await failedRuns(context, opened, options);
        const { items, damaged, isCut } = found;
        const groups = await grouped(context, opened, items);
        if (context.isJson) return context.printJson({ items: groups, isCut, damaged });
        if (groups.length === 0) context.note("No failed runs.");
        else context.print(failureText(context, groups));
        if (isCut) context.note(`Only the newest ${items.length} failed runs were read: --limit.`);
        context.noteDamaged(damaged);
      }),
    );
}

type Found = Awaited<ReturnType<typeof everyItem<ExecutionSummary>>>;

async function failedRuns(
  { stop: signal }: CliContext,
  { pages: { executions } }: ReadableHoldfast,
  { function: name, since, limit = limitDefault }: FailureOptions,
): Promise<Found> {
  const filter = {
    ...(name !== undefined && { function: name }),
    ...(since !== undefined && { createdFrom: since }),
  };
  const [failed, timedOut] = await Promise.all(
    (["failed", "timedOut"] as const).map((status) =>
      everyItem((page) => executions.list({ ...page, ...filter, status, signal }), limit),
    ),
  );
  const all = [failed, timedOut].flatMap((found) => (found === undefined ? [] : [found]));
  const items = all.flatMap((found) => found.items).toSorted((a, b) => b.createdAt - a.createdAt);
  return {
    items: items.slice(0, limit),
    damaged: all.flatMap((found) => found.damaged),
    isCut: items.length > limit || all.some((found) => found.isCut),
  };
}

async function grouped(
  { stop: signal }: CliContext,
  { pages: { executions } }: ReadableHoldfast,
  runs: readonly ExecutionSummary[],
): Promise<readonly FailureGroup[]> {
  const groups = new Map<string, FailureGroup>();
  for (let from = 0; from < runs.length; from += readAtOnce) {
    const slice = runs.slice(from, from + readAtOnce);
    const results = await Promise.all(slice.map(({ id }) => executions.result(id, { signal })));
    slice.forEach((run, index) => {
      const result = results[index];
      if (result?.kind === "timedOut") return add(groups, run, timedOutError);
      if (result?.kind !== "failed" || !isStoredError(result.error)) return;
      // The run below has thrown it and is counted; this one passed it on.
      if (result.error.run === undefined) add(groups, run, result.error);
    });
  }
  return [...groups.values()].toSorted((a, b) => b.lastAt - a.lastAt);
}

const timedOutError = { name: "timed out", message: "its deadline passed, or its worker was lost" };

function add(
  groups: Map<string, FailureGroup>,
  { id, function: name, state: { pending } }: ExecutionSummary,
  { name: errorName, code, message }: FailureGroup["error"],
): void {
  if (pending.kind !== "finished") return;
  const { finishedAt: at } = pending;
  const key = JSON.stringify([name, errorName, code, withoutNumbers(message)]);
  const group = groups.get(key);
  if (group === undefined) {
    const error = { name: errorName, ...(code !== undefined && { code }), message };
    groups.set(key, {
      function: name,
      error,
      count: 1,
      firstAt: at,
      lastAt: at,
      example: id,
    });
    return;
  }
  group.count += 1;
  group.firstAt = Math.min(group.firstAt, at);
  if (at < group.lastAt) return;
  group.lastAt = at;
  group.example = id;
}

/** Equal for messages that differ only in ids and amounts. */
function withoutNumbers(message: string): string {
  return message.replaceAll(/\b(?=[a-z_-]*\d)[\da-z_-]{8,}\b|\d+/gi, "#");
}

function failureText(context: CliContext, groups: readonly FailureGroup[]): string {
  const now = context.now();
  const { style, width = Number.POSITIVE_INFINITY, dbOption } = context;
  const ago = (at: number): string => `${spokenDuration(now - at)} ago`;
  const line = (colour: Colour, text: string): string =>
    style(colour, clipped(oneLine(text), width));
  return groups
    .map(({ function: name, error, count, firstAt, lastAt, example }) => {
      const code = error.code === undefined ? "" : ` [${error.code}]`;
      const times = firstAt === lastAt ? ago(lastAt) : `${ago(firstAt)} to ${ago(lastAt)}`;
      return [
        line("bold", `${count} × ${name}, ${times}`),
        line("red", `  ${error.name}${code}: ${error.message}`),
        style("dim", oneLine(`  → npx holdfast show ${example}${dbOption}`)),
      ].join("\n");
    })
    .join("\n");
}
