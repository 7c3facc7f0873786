import type { OwnerId } from "../../../model/ids/prefixed-id.ts";
import type { ExecutionId } from "../../../model/ids/execution-id.ts";
import { rows, storeOperation, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import type { Fence } from "../checks.ts";
import type { ExecutionContext } from "../context.ts";

/** An execution that a holder has, as recorded in the log. */
export interface HeldExecution {
  readonly id: ExecutionId;
  readonly key: number;
  /** The version of its last event. */
  readonly version: number;
  /** Any state except `locked` waits, and is kept for its holder until its lease ends. */
  readonly state: string;
  /** The version of the event that locked it, while it is locked. */
  readonly lockVersion: number | null;
}

/** Identifies a lock among the earlier locks of the execution. */
export type HeldLockOf = Pick<HeldExecution, "id" | "lockVersion">;

interface Held {
  /** The process of the holder. */
  readonly owner: OwnerId;
  readonly holder: Fence;
}

/**
 * Reads the executions of a holder: for one that lost the response to a lock, or that is shutting
 * down.
 */
export const readHeld = storeOperation("readHeld", {
  key: ({ holder }) => holder.executor,
  *one(_: ExecutionContext, { owner, holder }: Held): Tx<readonly HeldExecution[]> {
    return yield* rows<HeldExecution>(sql`
      SELECT id, key, version, state, lock_version AS "lockVersion" FROM holdfast_execution
      WHERE owner = ${owner} AND lease_until IS NOT NULL
        AND executor = ${holder.executor} AND run = ${holder.run}`);
  },
});
