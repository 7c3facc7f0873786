import { textsOf } from "../../../sql/dialect.ts";
import { rows, storeOperation, type StoreOperation } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import type { ExecutionContext } from "../context.ts";

/** Which of some executions are parked. */
export const readParked: StoreOperation<
  ExecutionContext,
  readonly string[],
  readonly { readonly id: string }[]
> = storeOperation("readParked", {
  key: () => "parked",
  *one(_: ExecutionContext, ids) {
    return yield* rows<{ readonly id: string }>(sql`
      SELECT id FROM holdfast_execution WHERE id IN ${textsOf(ids)} AND lifecycle = 'parked'`);
  },
});
