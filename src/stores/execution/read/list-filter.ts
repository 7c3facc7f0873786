import { HoldfastError } from "../../../model/errors.ts";
import { excerpt } from "../../../model/values/excerpt.ts";
import type { ExecutionId } from "../../../model/ids/execution-id.ts";
import {
  executionStatuses,
  isExecutionStatus,
  type ExecutionStatus,
} from "../../../model/execution/status.ts";
import {
  checkedCount,
  checkedFilterText,
  givenFlag,
  givenObject,
  readGiven,
} from "../../../model/shape.ts";
import { instantOfDate } from "../../../model/time/instants.ts";
import { spokenKind } from "../../../model/values/spoken-kind.ts";
import { sql, type Statement } from "../../../sql/statement.ts";
import type { PageOptions } from "../../list.ts";

/** The filters of a list; an execution must match all of them. */
export interface ListExecutionsOptions extends PageOptions {
  readonly function?: string;
  readonly functionPrefix?: string;
  readonly status?: ExecutionStatus | "finished";
  readonly topLevelOnly?: boolean;
  /** Only direct children. */
  readonly parent?: string;
  /** Inclusive; a Date, or milliseconds since 1970. */
  readonly createdFrom?: Date | number;
  /** Exclusive. */
  readonly createdTo?: Date | number;
  /**
   * Only executions before this one in the list, such as the first item of a page that was read
   * earlier. Pages then go from the nearest towards the newest; each page is still newest first.
   */
  readonly newerThan?: ListPlace;
  readonly idPrefix?: string;
  readonly tag?: string;
  /** Executions that last ran under this version, or were created for it. */
  readonly codeVersion?: string;
  readonly concurrencyKey?: string;
  readonly hideFinished?: boolean;
}

/**
 * The position of an execution in the list, even after its removal. Every list item is such a
 * position.
 */
export interface ListPlace {
  readonly createdAt: number;
  readonly id: string;
}

/**
 * The validated filters. False and missing filters are left out, so that equal filters have equal
 * cursors.
 */
export interface ExecutionFilter {
  readonly function?: string | undefined;
  readonly functionPrefix?: string | undefined;
  readonly status?: ExecutionStatus | "finished" | undefined;
  readonly topLevelOnly?: true | undefined;
  readonly parent?: ExecutionId | undefined;
  readonly createdFrom?: number | undefined;
  readonly createdTo?: number | undefined;
  readonly newerThan?: ListPlace | undefined;
  readonly idPrefix?: string | undefined;
  readonly tag?: string | undefined;
  readonly codeVersion?: string | undefined;
  readonly concurrencyKey?: string | undefined;
  readonly hideFinished?: true | undefined;
  /** Only open questions: external executions that can still be answered. */
  readonly openQuestions?: true | undefined;
  /** Only children of executions of this function. */
  readonly parentFunction?: string | undefined;
}

export type FilterName = keyof ExecutionFilter;

/** The filters of `ListExecutionsOptions`. */
export const filterNames: readonly (FilterName & keyof ListExecutionsOptions)[] = [
  "function",
  "functionPrefix",
  "status",
  "topLevelOnly",
  "parent",
  "createdFrom",
  "createdTo",
  "newerThan",
  "idPrefix",
  "tag",
  "codeVersion",
  "concurrencyKey",
  "hideFinished",
];

/** @throws HoldfastError `OPTION_INVALID` */
export function checkedFilter(given: ListExecutionsOptions): ExecutionFilter {
  const text = (
    name:
      | "function"
      | "functionPrefix"
      | "parent"
      | "idPrefix"
      | "tag"
      | "codeVersion"
      | "concurrencyKey",
  ): string | undefined => {
    const value = given[name];
    return value === undefined ? undefined : checkedFilterText(name, value);
  };
  const instant = (name: "createdFrom" | "createdTo"): number | undefined => {
    const value = given[name];
    return value === undefined ? undefined : checkedCount(name, instantOfDate(name, value));
  };
  const flag = (name: "topLevelOnly" | "hideFinished"): true | undefined =>
    givenFlag(name, given[name]) === true ? true : undefined;
  return {
    function: text("function"),
    functionPrefix: text("functionPrefix"),
    status: checkedStatus(given.status),
    topLevelOnly: flag("topLevelOnly"),
    parent: text("parent") as ExecutionId | undefined,
    createdFrom: instant("createdFrom"),
    createdTo: instant("createdTo"),
    newerThan: checkedPlace(given.newerThan),
    idPrefix: text("idPrefix"),
    tag: text("tag"),
    codeVersion: text("codeVersion"),
    concurrencyKey: text("concurrencyKey"),
    hideFinished: flag("hideFinished"),
  };
}

function checkedStatus(status: ListExecutionsOptions["status"]): ListExecutionsOptions["status"] {
  if (status === undefined || status === "finished") return status;
  if (typeof status === "string" && isExecutionStatus(status)) return status;
  throw new HoldfastError(
    "OPTION_INVALID",
    `Unknown status: ${typeof status === "string" ? excerpt(status) : spokenKind(status)}. The statuses are: ${executionStatuses.join(", ")}, finished.`,
    { option: "status" },
  );
}

/** The place of a list item, without the item's other fields. */
function checkedPlace(place: ListPlace | undefined): ListPlace | undefined {
  if (place === undefined) return undefined;
  const given = givenObject("newerThan", place);
  const { createdAt, id } = readGiven("newerThan", () => ({
    createdAt: given.createdAt,
    id: given.id,
  }));
  return {
    createdAt: checkedCount("newerThan.createdAt", createdAt),
    id: checkedFilterText("newerThan.id", id),
  };
}

/** True for statuses of unfinished executions. */
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

/** The conditions that the chosen path does not already guarantee. */
export function conditionsOf(
  filter: ExecutionFilter,
  now: number,
  answered: readonly FilterName[],
): readonly Statement[] {
  const conditions: Statement[] = [];
  const ask = (name: FilterName, condition: Statement | false | undefined): void => {
    if (condition && !answered.includes(name)) conditions.push(condition);
  };
  const { function: name, status, functionPrefix, idPrefix, tag } = filter;
  ask("function", name !== undefined && sql`function = ${name}`);
  ask("functionPrefix", functionPrefix !== undefined && startsWith.function(functionPrefix));
  ask(
    "status",
    status && (status === "finished" ? sql`state = 'finished'` : sql`${statusAt(now)} = ${status}`),
  );
  ask("topLevelOnly", filter.topLevelOnly && sql`parent IS NULL`);
  ask("idPrefix", idPrefix !== undefined && startsWith.id(idPrefix));
  ask(
    "tag",
    tag !== undefined &&
      sql`EXISTS (SELECT 1 FROM holdfast_execution_tag AS t WHERE t.tag = ${tag} AND t.execution = near.key)`,
  );
  const { codeVersion, concurrencyKey } = filter;
  ask("codeVersion", codeVersion !== undefined && sql`code_version = ${codeVersion}`);
  ask("concurrencyKey", concurrencyKey !== undefined && sql`concurrency_key = ${concurrencyKey}`);
  ask("hideFinished", filter.hideFinished && sql`state <> 'finished'`);
  const { openQuestions, parentFunction } = filter;
  ask("openQuestions", openQuestions && sql`role = 'external' AND state <> 'finished'`);
  // Once it is overdue, an answer would be too late.
  if (openQuestions) conditions.push(sql`(deadline_at IS NULL OR deadline_at > ${now})`);
  ask(
    "parentFunction",
    parentFunction !== undefined &&
      sql`EXISTS (SELECT 1 FROM holdfast_execution AS p WHERE p.key = near.parent AND p.function = ${parentFunction})`,
  );
  return conditions;
}

/**
 * Prefix conditions as ranges, for the index. Every character of ids and names sorts before "~".
 */
export const startsWith = {
  id: (prefix: string): Statement => sql`id >= ${prefix} AND id < ${`${prefix}~`}`,
  function: (prefix: string): Statement =>
    sql`function >= ${prefix} AND function < ${`${prefix}~`}`,
} as const;

/**
 * The status of a row, or an unknown status if its columns are inconsistent: `statusOf` of the
 * model, for counts and filters.
 */
export function statusAt(now: number): Statement {
  return sql`CASE
    WHEN state = 'finished' THEN result_kind
    WHEN lifecycle <> 'active' THEN lifecycle
    WHEN state = 'locked' THEN 'running'
    WHEN state = 'pending' AND wake_at > ${now} THEN 'blocked'
    WHEN state = 'pending' AND lease_until > ${now} THEN 'running'
    WHEN state = 'pending' AND due_at > ${now} THEN 'scheduled'
    ELSE state END`;
}
