import type { ExecutionRole } from "../../../model/execution/event.ts";
import {
  splitToParts,
  type ExecutionId,
} from "../../../model/ids/execution-id.ts";
import type { ExecutionState } from "../../../model/execution/state.ts";
import type { FunctionName } from "../../../model/ids/function-name.ts";
import { sql, type Statement } from "../../../sql/statement.ts";
import { stateColumns, stateOf, type StateRow } from "../state-row.ts";

/** An execution as lists show it. */
export interface ExecutionSummary {
  readonly id: ExecutionId;
  /** Null for a top-level execution. */
  readonly parent: ExecutionId | null;
  readonly role: ExecutionRole;
  readonly function: FunctionName;
  readonly createdAt: number;
  readonly scheduledAt: number;
  /** The version the next event gets; of a finished execution the last one's. */
  readonly nextVersion: number;
  readonly codeVersion: string | null;
  readonly concurrencyKey: string | null;
  readonly deadlineAt: number | null;
  readonly state: ExecutionState;
}

export interface SummaryRow extends StateRow {
  readonly created_at: number;
  readonly scheduled_at: number;
  readonly concurrency_key: string | null;
  readonly deadline_at: number | null;
}

export const summaryColumns: Statement = sql`
  ${stateColumns}, created_at, scheduled_at, concurrency_key, deadline_at`;

/** @throws HoldfastError `CORRUPT_ROW` when the columns contradict each other. */
export function summaryOf(found: SummaryRow): ExecutionSummary {
  const state = stateOf(found);
  const isFinished = state.pending.kind === "finished";
  return {
    id: found.id,
    parent: splitToParts(found.id)?.parent ?? null,
    role: found.role,
    function: found.function,
    createdAt: found.created_at,
    scheduledAt: found.scheduled_at,
    nextVersion: isFinished ? state.version : state.version + 1,
    codeVersion: found.code_version,
    concurrencyKey: found.concurrency_key,
    deadlineAt: found.deadline_at,
    state,
  };
}
