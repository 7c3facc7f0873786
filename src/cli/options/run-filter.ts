import { Option, type Command } from "commander";
import { executionStatuses, type ExecutionStatus } from "../../model/execution/status.ts";
import type { ListExecutionsOptions } from "../../stores/execution/read/list-filter.ts";
import type { CliHost } from "../host.ts";
import { instantOption } from "./option-values.ts";

/** The filter options of a command. */
export interface FilterOptions {
  readonly status?: ExecutionStatus | "finished";
  readonly function?: string;
  readonly tag?: string;
  readonly parent?: string;
  readonly idPrefix?: string;
  readonly key?: string;
  readonly codeVersion?: string;
  readonly since?: number;
  readonly until?: number;
  readonly topLevel?: true;
  readonly open?: true;
}

/** Adds the filter options to a command. */
export function withFilter(command: Command, host: CliHost): Command {
  return command
    .addOption(
      new Option("--status <status>", "only runs with this status").choices([
        ...executionStatuses,
        "finished",
      ]),
    )
    .option("--function <name>", "only runs of this function; orders/* matches a prefix")
    .option("--tag <tag>", "only runs with this tag")
    .option("--parent <id>", "only the children of this run")
    .option("--id-prefix <text>", "only runs whose id starts with this text")
    .option("--key <key>", "only runs with this concurrency key")
    .option("--code-version <version>", "only runs of this code version")
    .option(
      "--since <time>",
      "only runs created at or after this time: 2h (ago), or 2026-11-17T09:00Z",
      instantOption(host),
    )
    .option("--until <time>", "only runs created before this time", instantOption(host))
    .option("--top-level", "only runs without a parent")
    .option("--open", "only runs that have not ended");
}

/** Converts the options to a filter of `holdfast.runs`. */
export function filterOf(options: FilterOptions): ListExecutionsOptions {
  const name = options.function;
  const { status, tag, parent, idPrefix, codeVersion } = options;
  const filter: Readonly<Record<string, unknown>> = {
    status,
    tag,
    parent,
    idPrefix,
    codeVersion,
    ...(name?.endsWith("*") === true ? { functionPrefix: name.slice(0, -1) } : { function: name }),
    concurrencyKey: options.key,
    createdFrom: options.since,
    createdTo: options.until,
    topLevelOnly: options.topLevel,
    hideFinished: options.open,
  };
  return Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined));
}
