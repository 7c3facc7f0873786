import type { LoggedResponse } from "../../../model/execution-event.ts";
import { executionNotFound } from "../../../model/execution-errors.ts";
import type { ExecutionId } from "../../../model/execution-id.ts";
import { row, plainOperation } from "../../../sql/operation.ts";
import type { Operation } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { responsePage } from "./history.ts";
import type { Page } from "./history.ts";
import { isPresent } from "../presence.ts";

/** What the waits of wait.ts look at: few rows, since they look often. */

interface AfterCursor {
  readonly id: ExecutionId;
  readonly after: number;
}

/** A page of responses after a cursor. @throws HoldfastError `EXECUTION_NOT_FOUND` */
export const responsesAfter: Operation<
  AfterCursor,
  Page<LoggedResponse>
> = plainOperation("responsesAfter", {
  key: (input: AfterCursor) => input.id,
  *one({ id, after }) {
    const found = yield* row<{
      readonly key: number;
      readonly responses: number;
    }>(sql`
        SELECT key, responses FROM holdfast_execution WHERE id = ${id} AND ${isPresent(id)}`);
    if (found === undefined) throw executionNotFound(id);
    return found.responses > after
      ? yield* responsePage(found.key, after)
      : { items: [], hasMore: false };
  },
});
