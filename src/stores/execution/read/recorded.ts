import type { ExecutionId } from "../../../model/ids/execution-id.ts";
import { operation, row, type Operation, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";

/**
 * The number of events of all executions of a database. It reads the whole log: for tests, whose
 * logs are short.
 */
export const countRecorded: Operation<undefined, number> = operation("countRecorded", {
  key: () => "all",
  *one() {
    const found = yield* row<{ readonly events: number }>(
      sql`SELECT COUNT(*) AS events FROM holdfast_execution_event`,
    );
    return found?.events ?? 0;
  },
});

/** An event among those of all executions. */
export interface RecordedEvent {
  readonly id: ExecutionId;
  readonly version: number;
  readonly kind: string;
}

/** The n-th recorded event, from 1 on; also for tests. */
export const recordedAt = operation("recordedAt", {
  key: () => "all",
  *one(number: number): Tx<RecordedEvent | undefined> {
    return yield* row<RecordedEvent>(sql`
      SELECT x.id AS id, e.version AS version, e.kind AS kind
      FROM holdfast_execution_event e JOIN holdfast_execution x ON x.key = e.execution
      ORDER BY e.seq LIMIT 1 OFFSET ${number - 1}`);
  },
});
