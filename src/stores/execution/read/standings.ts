import type { Lifecycle, PendingState } from "../../../model/execution/state.ts";
import type { ExecutionId } from "../../../model/ids/execution-id.ts";
import { integersOf } from "../../../sql/dialect.ts";
import { rows, storeOperation, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import type { ExecutionContext } from "../context.ts";

/** The columns of an execution that tell its worker whether to look at it. */
export interface ExecutionStanding {
  readonly id: ExecutionId;
  /** The number of its responses. */
  readonly responses: number;
  readonly lifecycle: Lifecycle;
  readonly state: PendingState["kind"];
}

/** The standings of some executions, by their keys and with one statement. */
export const readStandings = storeOperation("readStandings", {
  key: () => "standings",
  *one(_: ExecutionContext, keys: readonly number[]): Tx<readonly ExecutionStanding[]> {
    return yield* rows<ExecutionStanding>(sql`
      SELECT id, responses, lifecycle, state FROM holdfast_execution WHERE key IN ${integersOf(keys)}`);
  },
});
