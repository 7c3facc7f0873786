import { executionChangedInside } from "../../../model/execution/errors.ts";
import type { HistoryEvent } from "../../../model/execution/history-event.ts";
import { ranBefore } from "../../../model/execution/ran.ts";
import type { ExecutionId } from "../../../model/ids/execution-id.ts";
import { noteAssertedRun } from "../../../sql/asserted-run.ts";
import type { Tx } from "../../../sql/operation.ts";
import { startedBody } from "../../../sql/body.ts";
import type { Fence } from "../checks.ts";
import { judgedAt, type ExecutionContext } from "../context.ts";
import { eventAt } from "../event-row.ts";
import { lockedRecord, type ExecutionRecord } from "../state-row.ts";
import { appendTo, type AppendOutcome } from "./append-to.ts";
import { assertHeld, assertNext } from "./record-check.ts";
import { wasHeld } from "./repeat.ts";

export interface RecordTransaction {
  readonly id: ExecutionId;
  /** The version that its event is to get. */
  readonly version: number;
  readonly at: number;
  readonly name: string;
  readonly call: number;
  readonly seen: number;
  readonly fence: Fence;
}

type Recorded = Extract<HistoryEvent, { readonly kind: "transactionFinished" }>;

export type TransactionOutcome = AppendOutcome & { readonly entry: Recorded };

/**
 * Runs a user's body and appends the event that records it, all in the caller's transaction. The
 * execution is locked first: a stale owner runs nothing, and an already recorded body is not run
 * again. The body may answer the execution, for example by ending a child of it, so the event is
 * appended to the row as the body left it.
 * @throws HoldfastError as `append` does, `EXECUTION_CHANGED_INSIDE`, and
 *   any error of the body.
 */
export function* recordTransaction(
  context: ExecutionContext,
  input: RecordTransaction,
  body: () => Tx<unknown>,
): Tx<TransactionOutcome> {
  const { id, version, name, call, seen, fence } = input;
  const { values, clock } = context;
  const record = yield* lockedRecord(id);
  if (record.state.version >= version) {
    const before = yield* eventAt(record.key, version);
    const event = before?.event;
    const isThis =
      event?.kind === "transactionFinished" &&
      event.call === call &&
      (yield* wasHeld(record.key, version, fence));
    if (before !== undefined && isThis)
      return { nextVersion: version + 1, at: before.at, entry: event };
  }
  assertNext(record, version);
  assertHeld(record, fence);
  yield* noteAssertedRun({ id, key: record.key, executor: fence.executor, run: fence.run });
  const began = clock.now();
  const value = values.value(yield* startedBody(name, body));
  // The body may have taken long, and an event is recorded at its end.
  const at = judgedAt(context, input.at);
  const entry: Recorded = {
    kind: "transactionFinished",
    name,
    inputHash: null,
    outcome: "completed",
    value,
    call,
    seen,
    ran: ranBefore(at, began, at),
  };
  yield* appendTo(context, yield* recordBehind(record, name), at, [entry]);
  return { nextVersion: version + 1, at, entry };
}

/**
 * The record after a body that ran under its lock. Responses may have arrived. Another event would
 * occupy the version of the body's own event.
 */
function* recordBehind({ id, state }: ExecutionRecord, name: string): Tx<ExecutionRecord> {
  const behind = yield* lockedRecord(id);
  if (behind.state.version !== state.version) throw executionChangedInside(id, name);
  return behind;
}
