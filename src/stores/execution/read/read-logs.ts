import type { Encoded } from "../../../model/encoded.ts";
import type { ExecutionId } from "../../../model/execution-id.ts";
import type { RunId } from "../../../model/prefixed-id.ts";
import { checkedCount } from "../../../model/shape.ts";
import { integersOf } from "../../../sql/dialect.ts";
import { row, rows, plainOperation } from "../../../sql/operation.ts";
import type { Operation, Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import type { Statement } from "../../../sql/statement.ts";
import type { Sifted } from "../../damage.ts";
import type { LogLevel } from "./logs.ts";
import { checkedLimit, scanRowsMax } from "./page-limit.ts";
import { findStanding } from "./read.ts";
import { idsBelow } from "./tree.ts";

export interface ListLogs {
  readonly id: ExecutionId;
  /** The `next` of the page before, or the key of the last line known: only later ones. */
  readonly after?: number | undefined;
  readonly limit: number;
  /**
   * Also the lines of all below it. On Postgres a reader that follows several
   * executions may pass over a line that one of them is just writing; the
   * lines of a single execution it never does.
   */
  readonly includeDerived?: boolean | undefined;
}

export interface LogLine {
  /** Grows in the order of writing; what `after` takes. */
  readonly key: number;
  readonly execution: ExecutionId;
  readonly at: number;
  readonly run: RunId | null;
  readonly level: LogLevel;
  readonly message: string;
  readonly payload: Encoded | null;
}

export interface LogPage extends Sifted<LogLine> {
  /** The `after` of the next page; undefined when there is none now. A page may be short and have a next one. */
  readonly next: number | undefined;
}

/** Log lines in the order of writing. Of an unknown execution there are none. @throws HoldfastError `OPTION_INVALID` */
export const listLogs: Operation<ListLogs, LogPage> = plainOperation(
  "listLogs",
  {
    key: (input: ListLogs) => input.id,
    *one({ id, after = 0, limit: wanted, includeDerived = false }) {
      const limit = checkedLimit(wanted);
      checkedCount("after", after);
      return includeDerived
        ? yield* linesOfTree(id, after, limit)
        : yield* linesOfOne(id, after, limit);
    },
  },
);

const nothing: LogPage = { items: [], damaged: [], next: undefined };

function* linesOfOne(
  id: ExecutionId,
  after: number,
  limit: number,
): Tx<LogPage> {
  const execution = yield* findStanding(id);
  if (execution === undefined) return nothing;
  const found = yield* rows<LogLine>(sql`
    SELECT key, ${id} AS execution, at, run, level, message, payload FROM holdfast_execution_log
    WHERE execution = ${execution.key} AND key > ${after} ORDER BY key LIMIT ${limit + 1}`);
  const items = found.slice(0, limit);
  const next = found.length > limit ? items.at(-1)?.key : undefined;
  return { items, damaged: [], next };
}

/**
 * The lines of a tree lie among those of all others. So the first one is
 * looked up, by one step in the index for each execution of the tree, and from
 * there on the log is read as it was written, for so many lines.
 */
function* linesOfTree(
  id: ExecutionId,
  after: number,
  limit: number,
): Tx<LogPage> {
  if ((yield* findStanding(id)) === undefined) return nothing;
  const tree = inTree(id);
  const start = yield* row<{ readonly first_key: number | null }>(sql`
    SELECT min(first_key) AS first_key FROM (
      SELECT (SELECT min(l.key) FROM holdfast_execution_log AS l WHERE l.execution = e.key AND l.key > ${after}) AS first_key
      FROM holdfast_execution AS e WHERE ${tree}) AS firsts`);
  const first = start?.first_key ?? null;
  if (first === null) return nothing;
  const near = sql`FROM holdfast_execution_log WHERE key >= ${first} ORDER BY key LIMIT`;
  const keys = yield* rows<{ readonly key: number }>(sql`
    SELECT l.key AS key FROM (SELECT key, execution ${near} ${scanRowsMax}) AS l CROSS JOIN holdfast_execution AS e
    WHERE e.key = l.execution AND ${tree} ORDER BY l.key LIMIT ${limit + 1}`);
  const kept = keys.slice(0, limit).map(({ key }) => key);
  const items = yield* rows<LogLine>(sql`
    SELECT l.key AS key, e.id AS execution, l.at AS at, l.run AS run, l.level AS level, l.message AS message,
      l.payload AS payload
    FROM holdfast_execution_log AS l JOIN holdfast_execution AS e ON e.key = l.execution
    WHERE l.key IN ${integersOf(kept)} ORDER BY l.key`);
  if (keys.length > limit)
    return { items, damaged: [], next: items.at(-1)?.key };
  const end = yield* row<{ readonly key: number }>(sql`
    SELECT key ${near} 1 OFFSET ${scanRowsMax - 1}`);
  return { items, damaged: [], next: end?.key };
}

function inTree(id: ExecutionId): Statement {
  const [low, high] = idsBelow(id);
  return sql`(e.id = ${id} OR (e.id > ${low} AND e.id < ${high}))`;
}
