import { HoldfastError, unreachable } from "../../../model/errors.ts";
import { excerpt } from "../../../model/excerpt.ts";
import type { ExecutionId } from "../../../model/execution-id.ts";
import { isExecutionStatus } from "../../../model/execution-status.ts";
import type { ExecutionStatus } from "../../../model/execution-status.ts";
import type { FunctionName } from "../../../model/function-name.ts";
import { checkedCount, checkedFilterText } from "../../../model/shape.ts";
import { sql } from "../../../sql/statement.ts";
import type { Statement } from "../../../sql/statement.ts";

/** Which executions a list shows; all of the given must hold. */
export interface ExecutionFilter {
  readonly function?: FunctionName | undefined;
  readonly functionPrefix?: string | undefined;
  readonly status?: ExecutionStatus | "finished" | undefined;
  readonly topLevelOnly?: boolean | undefined;
  /** Only its own children, not theirs. */
  readonly parent?: ExecutionId | undefined;
  /** Included. */
  readonly createdFrom?: number | undefined;
  /** Excluded. */
  readonly createdTo?: number | undefined;
  readonly idPrefix?: string | undefined;
  readonly tag?: string | undefined;
  readonly hideFinished?: boolean | undefined;
}

export type FilterName = keyof ExecutionFilter;

/** The same filters are the same text, however they were written down. */
export function filterText(filter: ExecutionFilter): string {
  return JSON.stringify([
    filter.function ?? null,
    filter.functionPrefix ?? null,
    filter.status ?? null,
    filter.topLevelOnly ?? false,
    filter.parent ?? null,
    filter.createdFrom ?? null,
    filter.createdTo ?? null,
    filter.idPrefix ?? null,
    filter.tag ?? null,
    filter.hideFinished ?? false,
  ]);
}

const textFilters = [
  "function",
  "functionPrefix",
  "parent",
  "idPrefix",
  "tag",
] as const satisfies readonly FilterName[];

/** @throws HoldfastError `OPTION_INVALID` */
export function assertFilter(filter: ExecutionFilter): void {
  const { status, createdFrom, createdTo } = filter;
  if (createdFrom !== undefined) checkedCount("createdFrom", createdFrom);
  if (createdTo !== undefined) checkedCount("createdTo", createdTo);
  for (const name of textFilters) {
    const text = filter[name];
    if (text !== undefined) checkedFilterText(name, text);
  }
  if (status === undefined || status === "finished") return;
  if (!isExecutionStatus(status))
    throw new HoldfastError(
      "OPTION_INVALID",
      `There is no status ${excerpt(String(status))}. There are: pending, scheduled, locked, blocked, paused, cancelling, parked, ` +
        "finished, completed, failed, cancelled, timedOut.",
      { option: "status" },
    );
}

/** True for statuses of executions that have not ended. */
export function isOpen(status: ExecutionFilter["status"]): boolean {
  switch (status) {
    case undefined:
    case "finished":
    case "completed":
    case "failed":
    case "cancelled":
    case "timedOut":
      return false;
    default:
      return true;
  }
}

/** What the rows must still be asked, when the way to them does not say it already. */
export function conditionsOf(
  filter: ExecutionFilter,
  now: number,
  answered: readonly FilterName[],
): readonly Statement[] {
  const conditions: Statement[] = [];
  const ask = (
    name: FilterName,
    condition: Statement | false | undefined,
  ): void => {
    if (condition && !answered.includes(name)) conditions.push(condition);
  };
  const { status, functionPrefix, idPrefix, tag } = filter;
  ask("function", filter.function && sql`function = ${filter.function}`);
  ask(
    "functionPrefix",
    functionPrefix !== undefined && startsWith.function(functionPrefix),
  );
  ask("status", status && statusCondition(status, now));
  ask("topLevelOnly", filter.topLevelOnly && sql`parent IS NULL`);
  ask("idPrefix", idPrefix !== undefined && startsWith.id(idPrefix));
  ask(
    "tag",
    tag !== undefined &&
      sql`EXISTS (SELECT 1 FROM holdfast_execution_tag AS t WHERE t.tag = ${tag} AND t.execution = near.key)`,
  );
  ask("hideFinished", filter.hideFinished && sql`state <> 'finished'`);
  return conditions;
}

/** Ranges, for the index. Every character of ids and names comes before "~". */
export const startsWith = {
  id: (prefix: string): Statement =>
    sql`id >= ${prefix} AND id < ${`${prefix}~`}`,
  function: (prefix: string): Statement =>
    sql`function >= ${prefix} AND function < ${`${prefix}~`}`,
} as const;

function statusCondition(
  status: NonNullable<ExecutionFilter["status"]>,
  now: number,
): Statement {
  switch (status) {
    case "pending":
      return sql`state = 'pending' AND lifecycle = 'active' AND due_at <= ${now}`;
    case "scheduled":
      return sql`state = 'pending' AND lifecycle = 'active' AND due_at > ${now}`;
    case "locked":
    case "blocked":
      return sql`state = ${status} AND lifecycle = 'active'`;
    case "paused":
    case "cancelling":
    case "parked":
      return sql`lifecycle = ${status} AND state <> 'finished'`;
    case "finished":
      return sql`state = 'finished'`;
    case "completed":
    case "failed":
    case "cancelled":
    case "timedOut":
      return sql`state = 'finished' AND result_kind = ${status}`;
    default:
      return unreachable(status);
  }
}
