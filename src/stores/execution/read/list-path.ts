import { row, type Tx } from "../../../sql/operation.ts";
import { sql, type Statement } from "../../../sql/statement.ts";
import {
  isOpen,
  startsWith,
  type ExecutionFilter,
  type FilterName,
} from "./list-filter.ts";

/**
 * Rows looked at for one page when a filter passes over most of them: 1.1 ms
 * at best on SQLite, whether there are 5 thousand executions or 100 thousand,
 * and up to 6 ms in the median on a machine busy with other work. Beyond that
 * the page ends early and says where to go on.
 */
export const scanRowsMax = 2_000;

/** How a list gets at its rows, and which filters that has answered. */
export type ListPath = { readonly answers: readonly FilterName[] } & (
  | /** Along an index that has them in the order of the list. */
    { readonly kind: "walk"; readonly where: Statement }
    /** One by one, since there are few: `keys` selects at most 2,000 as `found`. */
  | { readonly kind: "few"; readonly keys: Statement }
);

/**
 * The best way for these filters. A filter that no index keeps in the order of
 * the list is used when it leaves few rows, which counting them tells; else
 * the list walks along and asks each row.
 */
export function* choosePath(
  filter: ExecutionFilter,
  parent: number | undefined,
): Tx<ListPath> {
  if (parent !== undefined)
    return {
      kind: "walk",
      where: sql`parent = ${parent}`,
      answers: ["parent"],
    };
  for (const { keys, answers } of selective(filter)) {
    const few = yield* row<{ readonly n: number }>(sql`
      SELECT count(*) AS n FROM (${keys}) AS few`);
    if (few !== undefined && few.n <= scanRowsMax)
      return { kind: "few", keys, answers };
  }
  return orderedPath(filter);
}

function* selective(
  filter: ExecutionFilter,
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
  // The lifecycle is still to be asked, so this leaves the status unanswered.
  if (filter.status === "locked")
    yield {
      answers: [],
      keys: sql`SELECT key AS found FROM holdfast_execution WHERE state = 'locked' ORDER BY lease_until, id LIMIT ${limit}`,
    };
  if (functionPrefix !== undefined && filter.function === undefined)
    yield {
      answers: ["functionPrefix"],
      keys: sql`SELECT key AS found FROM holdfast_execution WHERE ${startsWith.function(functionPrefix)}
        ORDER BY function, created_at, id LIMIT ${limit}`,
    };
}

function orderedPath(filter: ExecutionFilter): ListPath {
  const { status, hideFinished = false, topLevelOnly = false } = filter;
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
