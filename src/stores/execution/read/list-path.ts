import { row, type Tx } from "../../../sql/operation.ts";
import { sql, type Statement } from "../../../sql/statement.ts";
import { isOpen, startsWith, type ExecutionFilter, type FilterName } from "./list-filter.ts";

/**
 * The rows that one statement reads when a filter rejects most of them: 1.1 ms at best on SQLite,
 * whether there are 5 thousand executions or 100 thousand. It is up to 6 ms in the median on a
 * machine busy with other work. After that the page continues with the next statement, or ends and
 * returns the place to continue from.
 */
export const scanRowsMax = 2_000;

/** The path by which a list finds its rows, and the filters that it already guarantees. */
export type ListPath = { readonly answers: readonly FilterName[] } & (
  | /** Along an index that has them in the order of the list. */
    { readonly kind: "walk"; readonly where: Statement }
    /** One by one, since there are few: `keys` selects at most 2,000 as `found`. */
  | { readonly kind: "few"; readonly keys: Statement }
);

/**
 * The best path for these filters. A filter without an index in list order is used if it leaves few
 * rows, which counting them shows. Otherwise the list walks along and checks each row.
 */
export function* choosePath(
  filter: ExecutionFilter,
  parent: number | undefined,
  now: number,
): Tx<ListPath> {
  if (parent !== undefined)
    return {
      kind: "walk",
      where: sql`parent = ${parent}`,
      answers: ["parent"],
    };
  const { status } = filter;
  if (status === "paused" || status === "cancelling" || status === "parked")
    return {
      kind: "walk",
      // Said twice, since the index covers all that are not active.
      where: sql`lifecycle <> 'active' AND lifecycle = ${status}`,
      answers: ["status", "hideFinished"],
    };
  for (const { keys, answers } of selective(filter, now)) {
    const few = yield* row<{ readonly n: number }>(sql`
      SELECT count(*) AS n FROM (${keys}) AS few`);
    if (few !== undefined && few.n <= scanRowsMax) return { kind: "few", keys, answers };
  }
  return orderedPath(filter);
}

function* selective(
  filter: ExecutionFilter,
  now: number,
): Generator<Pick<ListPath, "answers"> & { readonly keys: Statement }, void> {
  const { tag, idPrefix, functionPrefix } = filter;
  const limit = scanRowsMax + 1;
  if (idPrefix !== undefined)
    yield {
      answers: ["idPrefix"],
      keys: sql`SELECT key AS found FROM holdfast_execution WHERE ${startsWith.id(idPrefix)} ORDER BY id LIMIT ${limit}`,
    };
  if (tag !== undefined)
    yield {
      answers: ["tag"],
      keys: sql`SELECT execution AS found FROM holdfast_execution_tag WHERE tag = ${tag} ORDER BY execution LIMIT ${limit}`,
    };
  // The lifecycle is not checked yet, so this does not guarantee the status.
  if (filter.status === "running") yield { answers: [], keys: heldKeys(now, limit) };
  if (functionPrefix !== undefined && filter.function === undefined)
    yield {
      answers: ["functionPrefix"],
      keys: sql`SELECT key AS found FROM holdfast_execution WHERE ${startsWith.function(functionPrefix)}
        ORDER BY function, created_at, id LIMIT ${limit}`,
    };
}

/**
 * The executions that are locked, or kept in a worker's memory until a lease ends: for each owner
 * one range of an index.
 */
function heldKeys(now: number, limit: number): Statement {
  const held = sql`FROM holdfast_execution WHERE lease_until IS NOT NULL`;
  return sql`
    SELECT key AS found FROM (
      SELECT key FROM holdfast_execution WHERE state = 'locked' ORDER BY lease_until, id LIMIT ${limit}) AS locked
    UNION
    SELECT key FROM (
      WITH RECURSIVE owners (name) AS (
        SELECT (SELECT owner ${held} AND owner > '' ORDER BY owner LIMIT 1)
        UNION ALL
        SELECT (SELECT owner ${held} AND owner > o.name ORDER BY owner LIMIT 1)
        FROM owners o WHERE o.name IS NOT NULL
      )
      SELECT x.key FROM owners o CROSS JOIN holdfast_execution x
      WHERE x.lease_until IS NOT NULL AND x.owner = o.name AND x.lease_until > ${now} LIMIT ${limit}) AS owned
    UNION
    SELECT key FROM (SELECT key ${held} AND owner IS NULL AND lease_until > ${now} LIMIT ${limit}) AS nobodys`;
}

function orderedPath(filter: ExecutionFilter): ListPath {
  const { status, hideFinished = false, topLevelOnly = false } = filter;
  if (filter.openQuestions === true)
    return {
      kind: "walk",
      where: sql`role = 'external' AND state <> 'finished'`,
      answers: ["openQuestions"],
    };
  if (filter.concurrencyKey !== undefined)
    return {
      kind: "walk",
      where: sql`concurrency_key IS NOT NULL AND concurrency_key || '' = ${filter.concurrencyKey}`,
      answers: ["concurrencyKey"],
    };
  if (filter.function !== undefined)
    return {
      kind: "walk",
      where: sql`function = ${filter.function}`,
      answers: ["function"],
    };
  if (status !== undefined && status !== "finished" && !isOpen(status))
    return {
      kind: "walk",
      where: sql`state = 'finished' AND result_kind = ${status}`,
      answers: ["status"],
    };
  if (hideFinished || isOpen(status))
    return {
      kind: "walk",
      where: sql`state <> 'finished'`,
      answers: ["hideFinished"],
    };
  if (topLevelOnly)
    return {
      kind: "walk",
      where: sql`parent IS NULL`,
      answers: ["topLevelOnly"],
    };
  return { kind: "walk", where: sql`1 = 1`, answers: [] };
}
