import { HoldfastError } from "../../../model/errors.ts";
import { executionNotFound } from "../../../model/execution-errors.ts";
import type { ExecutionId } from "../../../model/execution-id.ts";
import { rows, plainOperation } from "../../../sql/operation.ts";
import type { Operation } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import type { Sifted } from "../../damage.ts";
import { checkedLimit } from "./page-limit.ts";
import { isPresent } from "../presence.ts";
import { summariesOf, summaryColumns } from "./summary.ts";
import type { ExecutionSummary, SummaryRow } from "./summary.ts";

export interface ReadTree {
  readonly id: ExecutionId;
  readonly limit: number;
  /** The `next` of the page before. */
  readonly after?: ExecutionId | undefined;
}

export interface TreePage extends Sifted<ExecutionSummary> {
  /** The last id of this page, when there are more after it. */
  readonly next: ExecutionId | undefined;
}

/**
 * An execution and all below it, in the order of their ids: each comes after
 * its parent, and before its parent's next child.
 *
 * @throws HoldfastError `EXECUTION_NOT_FOUND`, `OPTION_INVALID`, and
 *   `CURSOR_INVALID` when `after` is not in this tree.
 */
export const readTree: Operation<ReadTree, TreePage> = plainOperation(
  "readTree",
  {
    key: (input: ReadTree) => input.id,
    *one({ id, limit: wanted, after }) {
      const limit = checkedLimit(wanted);
      if (after !== undefined && after !== id && !after.startsWith(`${id}.`))
        throw notInTree(id, after);
      const root =
        after === undefined
          ? yield* rows<SummaryRow>(sql`
            SELECT ${summaryColumns} FROM holdfast_execution WHERE id = ${id} AND ${isPresent(id)}`)
          : [];
      if (after === undefined && root.length === 0) throw executionNotFound(id);
      const [low, high] = idsBelow(id);
      const below = yield* rows<SummaryRow>(sql`
      SELECT ${summaryColumns} FROM holdfast_execution
      WHERE id > ${after === undefined || after < low ? low : after} AND id < ${high}
      ORDER BY id LIMIT ${limit + 1 - root.length}`);
      const found = [...root, ...below];
      const page = found.slice(0, limit);
      return {
        ...summariesOf(page),
        next: found.length > limit ? page.at(-1)?.id : undefined,
      };
    },
  },
);

/**
 * The ids below an execution begin with its own and a dot, so they lie between
 * these two: "/" is the character after ".".
 */
export function idsBelow(
  id: ExecutionId,
): readonly [low: string, high: string] {
  return [`${id}.`, `${id}/`];
}

function notInTree(id: ExecutionId, after: ExecutionId): HoldfastError {
  return new HoldfastError(
    "CURSOR_INVALID",
    `${after} is not in the tree of execution ${id}. Give the \`next\` of the page before, or none to begin anew.`,
    { id, after, reason: "tree" },
  );
}
