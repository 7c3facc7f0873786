import type { OwnerId } from "../../../model/ids/prefixed-id.ts";
import type { ExecutionId } from "../../../model/ids/execution-id.ts";
import { rows, storeOperation, type StoreOperation } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import type { Fence } from "../checks.ts";
import type { ExecutionContext } from "../context.ts";

/** What a holder has locked, as the log says. */
export interface HeldExecution {
  readonly id: ExecutionId;
  readonly key: number;
  /** Of its last event. */
  readonly version: number;
  /** Anything but `locked` waits, and is kept for its holder until its lease ends. */
  readonly state: string;
  /** Of the event that locked it, while it is locked. */
  readonly lockVersion: number | null;
}

/** By which a lock is told from those before it. */
export type HeldLockOf = Pick<HeldExecution, "id" | "lockVersion">;

interface Held {
  /** The process in which the holder works. */
  readonly owner: OwnerId;
  readonly holder: Fence;
}

/** What a holder has: for one that did not hear the answer to a lock, or that leaves. */
export const readHeld: StoreOperation<ExecutionContext, Held, readonly HeldExecution[]> =
  storeOperation("readHeld", {
    key: ({ holder }: Held) => holder.executor,
    *one(_: ExecutionContext, { owner, holder }) {
      return yield* rows<HeldExecution>(sql`
      SELECT id, key, version, state, lock_version AS "lockVersion" FROM holdfast_execution
      WHERE owner = ${owner} AND lease_until IS NOT NULL
        AND executor = ${holder.executor} AND run = ${holder.run}`);
    },
  });
