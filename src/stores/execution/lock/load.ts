import { executionNotFound } from "../../../model/execution/errors.ts";
import type { ExecutionId } from "../../../model/ids/execution-id.ts";
import { row, storeOperation, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import type { ExecutionContext } from "../context.ts";
import { isPresent, recordOf, stateColumns, type StateRow } from "../state-row.ts";
import { ReadBudget } from "./history.ts";
import { readInputs } from "./inputs.ts";
import { loadUnlocked, type LoadedExecution } from "./locked.ts";

/**
 * Reads an execution as a lock would return it, without locking: for replaying a finished
 * execution, or one that another worker runs.
 * @throws HoldfastError `EXECUTION_NOT_FOUND`, `CORRUPT_ROW`,
 *   `VALUE_MALFORMED`, `PAYLOAD_CODEC_FAILED`
 */
export const loadExecution = storeOperation("loadExecution", {
  key: (id) => id,
  *one(context: ExecutionContext, id: ExecutionId): Tx<LoadedExecution> {
    const found = yield* row<StateRow>(sql`
      SELECT ${stateColumns} FROM holdfast_execution WHERE id = ${id} AND ${isPresent(id)}`);
    if (found === undefined) throw executionNotFound(id);
    const record = recordOf(found);
    const budget = new ReadBudget();
    const { inputs } = yield* readInputs([record], budget);
    return yield* loadUnlocked(context, record, inputs.get(record.key), budget);
  },
});
