import { parseExecutionId, type ExecutionId } from "../../../model/ids/execution-id.ts";
import { rows, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { textAt } from "../../cursor.ts";
import {
  list,
  pageOf,
  sliced,
  type List,
  type PageOptions,
  type Slice,
  type SliceBounds,
} from "../../list.ts";
import type { ExecutionContext } from "../context.ts";
import { absence, isPresent } from "../state-row.ts";
import {
  summaryColumns,
  summaryOf,
  withDetails,
  type DetailedRow,
  type ExecutionSummary,
  type SummaryRow,
} from "./summary.ts";

/**
 * An execution and all its descendants, in the order of their ids: each comes after its parent, and
 * before its parent's next child.
 * @throws HoldfastError `EXECUTION_NOT_FOUND`, `OPTION_INVALID`, `CURSOR_INVALID`
 */
export const executionTree: List<
  ExecutionContext,
  [id: string, options?: PageOptions],
  ExecutionSummary
> = list("readTree", {
  table: "holdfast_execution",
  given(_: ExecutionContext, id: string, options?: PageOptions) {
    const { page } = pageOf(options, []);
    return { filter: { id: parseExecutionId(id) }, page };
  },
  slice: treeSlice,
  keyOf: ({ id }: DetailedRow) => id,
  itemOf: (_, found) => summaryOf(found),
});

function* treeSlice(
  { clock }: ExecutionContext,
  { id }: { readonly id: ExecutionId },
  bounds: SliceBounds,
): Tx<Slice<DetailedRow>> {
  const [low, high] = idsBelow(id);
  const { rows: found, next } = yield* sliced(
    bounds,
    ({ id: last }: SummaryRow) => [last],
    function* (after, count) {
      const root = after === undefined ? [yield* rootOf(id)] : [];
      const last = after === undefined ? low : textAt(after, 0);
      const below = yield* rows<SummaryRow>(sql`
        SELECT ${summaryColumns} FROM holdfast_execution
        WHERE id > ${last < low ? low : last} AND id < ${high}
        ORDER BY id LIMIT ${count - root.length}`);
      return [...root, ...below];
    },
  );
  const kept = yield* withDetails(found, clock.now());
  const last = kept.at(-1);
  const isCut = kept.length < found.length && last !== undefined;
  return { rows: kept, next: isCut ? [last.id] : next };
}

function* rootOf(id: ExecutionId): Tx<SummaryRow> {
  const [root] = yield* rows<SummaryRow>(sql`
    SELECT ${summaryColumns} FROM holdfast_execution WHERE id = ${id} AND ${isPresent(id)}`);
  if (root === undefined) throw yield* absence(id);
  return root;
}

/**
 * The bounds of descendants' ids. They begin with the execution's own id and a dot, so they lie
 * between these two: "/" is the character after ".".
 */
export function idsBelow(id: ExecutionId): readonly [low: string, high: string] {
  return [`${id}.`, `${id}/`];
}
