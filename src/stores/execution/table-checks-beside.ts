import { splitDelayId } from "../../model/ids/delay-id.ts";
import type { DelayId } from "../../model/ids/delay-id.ts";
import type { Encoded } from "../../model/values/encoded.ts";
import type { ExecutionId } from "../../model/ids/execution-id.ts";
import { sql } from "../../sql/statement.ts";
import { byKey, tableCheck } from "../table-check.ts";
import type { TableCheck } from "../table-check.ts";
import { isLogLevel } from "./read/logs.ts";

/** Checks of the rows beside the log of an execution. */

export const noOwner = "Its run is missing.";

/** The name of the execution that owns a row, also when the execution is missing. */
export function ownerName(row: {
  readonly id: ExecutionId | null;
  readonly execution: number;
}): string {
  return row.id ?? String(row.execution);
}

interface OwnedDelay {
  readonly key: number;
  readonly id: DelayId;
  readonly execution: number;
  readonly inbox: string;
  readonly owner: ExecutionId | null;
}

const delay = tableCheck<OwnedDelay>({
  table: "holdfast_execution_delay",
  select: sql`SELECT t.key, t.id, t.execution, t.inbox, t.expires_at, t.is_paused, x.id AS owner`,
  from: sql`FROM holdfast_execution_delay t LEFT JOIN holdfast_execution x ON x.key = t.execution`,
  ...byKey,
  keyOf: ({ id }) => id,
  judge(row) {
    if (row.owner === null) return noOwner;
    const { execution: named, joinSet } = splitDelayId(row.id);
    return named === row.owner && joinSet === row.inbox
      ? undefined
      : "It belongs to another run or set than its id says.";
  },
});

interface OwnedTag {
  readonly tag: string;
  readonly execution: number;
  readonly id: ExecutionId | null;
}

const tag = tableCheck<OwnedTag>({
  table: "holdfast_execution_tag",
  select: sql`SELECT t.tag, t.execution, x.id`,
  from: sql`FROM holdfast_execution_tag t LEFT JOIN holdfast_execution x ON x.key = t.execution`,
  order: sql`t.tag, t.execution`,
  behind: (last) => sql`(t.tag, t.execution) > (${last.tag}, ${last.execution})`,
  keyOf: (row) => `${ownerName(row)}#${row.tag}`,
  judge: ({ id }) => (id === null ? noOwner : undefined),
});

interface OwnedLine {
  readonly key: number;
  readonly execution: number;
  readonly id: ExecutionId | null;
  readonly level: string;
  readonly payload: Encoded | null;
}

const log = tableCheck<OwnedLine>({
  table: "holdfast_execution_log",
  select: sql`SELECT t.key, t.execution, x.id, t.at, t.run, t.step, t.attempt, t.level, t.message, t.payload`,
  from: sql`FROM holdfast_execution_log t LEFT JOIN holdfast_execution x ON x.key = t.execution`,
  ...byKey,
  weight: sql`length(t.message) + COALESCE(length(t.payload), 0)`,
  keyOf: (row) => `${ownerName(row)}#${row.key}`,
  judge(row, { decode }) {
    if (row.id === null) return noOwner;
    if (row.payload !== null) decode(row.payload);
    return isLogLevel(row.level) ? undefined : "Its level is unknown.";
  },
});

interface StackRow {
  readonly hash: string;
  readonly stack: string;
}

const stack = tableCheck<StackRow>({
  table: "holdfast_execution_stack",
  select: sql`SELECT t.hash, t.stack`,
  from: sql`FROM holdfast_execution_stack t`,
  order: sql`t.hash`,
  behind: ({ hash }) => sql`t.hash > ${hash}`,
  weight: sql`length(t.stack)`,
  keyOf: ({ hash }) => hash,
  judge: (row, { sha256Hex }) =>
    sha256Hex(row.stack) === row.hash ? undefined : "Its text does not match its hash.",
});

interface OwnedRange {
  readonly execution: number;
  readonly version_from: number;
  readonly id: ExecutionId | null;
  readonly stack: string | null;
}

const backtrace = tableCheck<OwnedRange>({
  table: "holdfast_execution_backtrace",
  select: sql`SELECT t.execution, t.version_from, t.version_to, x.id, s.hash AS stack`,
  from: sql`
    FROM holdfast_execution_backtrace t LEFT JOIN holdfast_execution x ON x.key = t.execution
      LEFT JOIN holdfast_execution_stack s ON s.hash = t.hash`,
  order: sql`t.execution, t.version_from`,
  behind: (last) => sql`(t.execution, t.version_from) > (${last.execution}, ${last.version_from})`,
  keyOf: (row) => `${ownerName(row)}#${row.version_from}`,
  judge(row) {
    if (row.id === null) return noOwner;
    return row.stack === null ? "Its text is missing." : undefined;
  },
});

interface LimitRow {
  readonly name: string;
}

const limit = tableCheck<LimitRow>({
  table: "holdfast_execution_limit",
  select: sql`SELECT t.name`,
  from: sql`FROM holdfast_execution_limit t`,
  order: sql`t.name`,
  behind: ({ name }) => sql`t.name > ${name}`,
  keyOf: ({ name }) => name,
});

export const besideChecks: readonly TableCheck[] = [delay, tag, log, stack, backtrace, limit];
