import type { Encoded } from "../../../model/values/encoded.ts";
import { HoldfastError } from "../../../model/errors.ts";
import { excerpt } from "../../../model/values/excerpt.ts";
import { parseExecutionId, type ExecutionId } from "../../../model/ids/execution-id.ts";
import { parseRunId, type RunId } from "../../../model/ids/prefixed-id.ts";
import { checkedCount, checkedText, draftOf, givenFlag, givenList } from "../../../model/shape.ts";
import { spokenKind } from "../../../model/values/spoken-kind.ts";
import type { WaitOptions } from "../../../sql/database.ts";
import { integersOf } from "../../../sql/dialect.ts";
import { row, rows, run, storeOperation, type Tx } from "../../../sql/operation.ts";
import { sql, type Statement } from "../../../sql/statement.ts";
import { numberAt } from "../../cursor.ts";
import {
  list,
  pageBytesMax,
  pageOf,
  rowsWithin,
  slicedByBytes,
  type List,
  type PageOptions,
  type Place,
  type Slice,
  type SliceBounds,
} from "../../list.ts";
import { onlyWait, type Call } from "../../method.ts";
import type { ExecutionContext } from "../context.ts";
import { lockedKey, standing } from "../state-row.ts";
import { assertFits } from "../checks.ts";
import { scanRowsMax } from "./list-path.ts";
import { idsBelow } from "./tree.ts";

export type LogLevel = "trace" | "debug" | "info" | "warn" | "error";

const levels: Readonly<Record<LogLevel, true>> = {
  trace: true,
  debug: true,
  info: true,
  warn: true,
  error: true,
};

export function isLogLevel(level: string): level is LogLevel {
  return Object.hasOwn(levels, level);
}

/**
 * A line for people, written by the code of an execution or by its worker; `data` is stored with
 * it.
 */
export interface LogEntry {
  readonly level: LogLevel;
  /** At most 64 KiB as UTF-8. */
  readonly message: string;
  readonly run?: RunId;
  /** The step whose code wrote it. */
  readonly step?: string;
  /** The attempt of that step, or of the activity; from 1 on. */
  readonly attempt?: number;
  readonly data?: unknown;
}

interface AppendLogs {
  readonly id: ExecutionId;
  readonly at: number;
  /** Stored in this order. */
  readonly lines: readonly NewLine[];
}

interface NewLine {
  readonly level: LogLevel;
  readonly message: string;
  readonly run: RunId | null;
  readonly step: string | null;
  readonly attempt: number | null;
  readonly payload: Encoded | null;
}

/** A line takes a statement; more lines would hold the transaction for too long. */
const entriesMax = 200;

export function givenLog(
  { clock, encode }: ExecutionContext,
  id: string,
  entries: readonly LogEntry[],
  wait?: WaitOptions,
): Call<AppendLogs> {
  const execution = parseExecutionId(id);
  const given = givenList("entries", entries, entriesMax);
  checkedCount("entries.length", given.length, { min: 1 });
  const lines = given.map((entry): NewLine => {
    const { data, ...line } = checkedEntry(entry);
    return { ...line, payload: data === undefined ? null : encode(data) };
  });
  return {
    input: { id: execution, at: clock.now(), lines },
    wait: onlyWait(wait),
  };
}

function checkedEntry(entry: LogEntry): Omit<NewLine, "payload"> & { readonly data: unknown } {
  const {
    level,
    message,
    run: runId,
    step,
    attempt,
    data,
  } = draftOf("a log entry", entry, ["level", "message", "run", "step", "attempt", "data"]);
  if (typeof level !== "string" || !isLogLevel(level))
    throw new HoldfastError(
      "OPTION_INVALID",
      `There is no log level ${typeof level === "string" ? excerpt(level) : spokenKind(level)}. ` +
        `There are: ${Object.keys(levels).join(", ")}.`,
      { option: "level" },
    );
  assertFits("A log message", message);
  return {
    level,
    message,
    run: runId === undefined ? null : parseRunId(runId),
    step: step === undefined ? null : checkedText("A step's name", step),
    attempt: attempt === undefined ? null : checkedCount("attempt", attempt, { min: 1 }),
    data,
  };
}

/**
 * Adds lines to the log of an execution, all or none. Finished executions accept lines too: the
 * last ones often arrive after the end.
 * @throws HoldfastError `EXECUTION_NOT_FOUND`
 */
export const appendLogs = storeOperation("appendLogs", {
  key: (input) => input.id,
  *one(_: ExecutionContext, { id, at, lines }: AppendLogs): Tx<void> {
    // The lock gives the lines of one execution their keys in the order in which they become
    // visible, so that a reader's cursor skips none.
    const execution = yield* lockedKey(id);
    for (const { level, message, run: runId, step, attempt, payload } of lines)
      yield* run(sql`
        INSERT INTO holdfast_execution_log (execution, at, run, step, attempt, level, message, payload)
        VALUES (${execution}, ${at}, ${runId}, ${step}, ${attempt}, ${level}, ${message}, ${payload})`);
  },
});

export interface ListLogsOptions extends PageOptions {
  /**
   * The first key of the list. To see only later lines, pass the key of the last known line plus
   * one.
   */
  readonly from?: number;
  /**
   * Includes the lines of all descendants. On Postgres a reader that follows several executions may
   * miss a line that one of them is just writing. Lines of a single execution are never missed.
   */
  readonly includeDerived?: boolean;
}

/** A line as it is displayed. */
export interface LogLine {
  /** Increases in the order of writing. */
  readonly key: number;
  readonly execution: ExecutionId;
  readonly at: number;
  readonly run: RunId | null;
  readonly step: string | null;
  readonly attempt: number | null;
  readonly level: LogLevel;
  readonly message: string;
  readonly data: unknown;
}

interface LogFilter {
  readonly id: ExecutionId;
  readonly from: number;
  readonly includeDerived: boolean;
}

interface LogRow extends Omit<LogLine, "data"> {
  readonly payload: Encoded | null;
}

/** Log lines in the order of writing. @throws HoldfastError `EXECUTION_NOT_FOUND`, `OPTION_INVALID`, `CURSOR_INVALID` */
export const logList: List<ExecutionContext, [id: string, options?: ListLogsOptions], LogLine> =
  list("listLogs", {
    table: "holdfast_execution_log",
    given(_: ExecutionContext, id: string, options?: ListLogsOptions) {
      const { filter, page } = pageOf(options, ["from", "includeDerived"]);
      const { from = 0, includeDerived } = filter;
      return {
        filter: {
          id: parseExecutionId(id),
          from: checkedCount("from", from),
          includeDerived: givenFlag("includeDerived", includeDerived) ?? false,
        },
        page,
      };
    },
    *slice(_, filter: LogFilter, bounds) {
      const execution = yield* standing(filter.id);
      return filter.includeDerived
        ? yield* linesOfTree(filter, bounds)
        : yield* linesOfOne(execution.key, filter, bounds);
    },
    keyOf: ({ execution, key }: LogRow) => `${execution}#${key}`,
    itemOf: ({ decode }, { payload, ...line }) => ({
      ...line,
      data: payload === null ? undefined : decode(payload),
    }),
  });

/** The first key of a slice. */
function firstKey(after: Place | undefined, from: number): number {
  return after === undefined ? from : numberAt(after, 0) + 1;
}

const lineBytes: Statement = sql`octet_length(l.message) + COALESCE(octet_length(l.payload), 0)`;
const lineColumns: Statement = sql`l.key, l.at, l.run, l.step, l.attempt, l.level, l.message, l.payload`;

function linesOfOne(
  execution: number,
  { id, from }: LogFilter,
  bounds: SliceBounds,
): Tx<Slice<LogRow>> {
  const next = (after: Place | undefined) => sql`
    FROM holdfast_execution_log AS l
    WHERE l.execution = ${execution} AND l.key >= ${firstKey(after, from)} ORDER BY l.key`;
  return slicedByBytes(
    bounds,
    ({ key }: LogRow) => [key],
    function* (after, count) {
      const found = yield* rows<{ readonly bytes: number }>(sql`
        SELECT ${lineBytes} AS bytes ${next(after)} LIMIT ${count}`);
      return found.map(({ bytes }) => bytes);
    },
    function* (after, count) {
      const found = yield* rows<Omit<LogRow, "execution">>(sql`
        SELECT ${lineColumns} ${next(after)} LIMIT ${count}`);
      return found.map((line) => ({ ...line, execution: id }));
    },
  );
}

/**
 * The lines of a tree, which lie among those of all others. The first one is found by one step in
 * the index for each execution of the tree. From there the log is read as it was written, over
 * 2,000 keys. The limit counts keys and not lines, since lines removed while the page is read would
 * move its end.
 */
function* linesOfTree({ id, from }: LogFilter, { after, limit }: SliceBounds): Tx<Slice<LogRow>> {
  const tree = inTree(id);
  const first = yield* firstInTree(tree, firstKey(after, from));
  if (first === null) return { rows: [], next: undefined };
  const end = first + scanRowsMax;
  const found = yield* rows<{
    readonly key: number;
    readonly bytes: number;
  }>(sql`
    SELECT l.key AS key, l.bytes AS bytes FROM (
      SELECT key, execution, octet_length(message) + COALESCE(octet_length(payload), 0) AS bytes
      FROM holdfast_execution_log WHERE key >= ${first} AND key < ${end} ORDER BY key LIMIT ${scanRowsMax}
    ) AS l CROSS JOIN holdfast_execution AS e
    WHERE e.key = l.execution AND ${tree} ORDER BY l.key LIMIT ${limit + 1}`);
  const fitting = rowsWithin(
    found.map(({ bytes }) => bytes),
    pageBytesMax,
  );
  const kept = found.slice(0, Math.min(fitting, limit)).map(({ key }) => key);
  const lines = yield* rows<LogRow>(sql`
    SELECT ${lineColumns}, e.id AS execution
    FROM holdfast_execution_log AS l JOIN holdfast_execution AS e ON e.key = l.execution
    WHERE l.key IN ${integersOf(kept)} ORDER BY l.key`);
  if (kept.length < found.length) return { rows: lines, next: [kept.at(-1) ?? first] };
  const later = yield* firstInTree(tree, end);
  return { rows: lines, next: later === null ? undefined : [later - 1] };
}

/** The first line of a tree from a key on. */
function* firstInTree(tree: Statement, from: number): Tx<number | null> {
  const found = yield* row<{ readonly first_key: number | null }>(sql`
    SELECT min(first_key) AS first_key FROM (
      SELECT (
        SELECT min(l.key) FROM holdfast_execution_log AS l WHERE l.execution = e.key AND l.key >= ${from}
      ) AS first_key
      FROM holdfast_execution AS e WHERE ${tree}) AS firsts`);
  return found?.first_key ?? null;
}

function inTree(id: ExecutionId): Statement {
  const [low, high] = idsBelow(id);
  return sql`(e.id = ${id} OR (e.id > ${low} AND e.id < ${high}))`;
}
