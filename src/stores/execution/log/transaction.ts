import type { HistoryEvent } from "../../../model/execution/history-event.ts";
import type { ExecutionId } from "../../../model/ids/execution-id.ts";
import { startedBody, type Tx } from "../../../sql/operation.ts";
import type { Fence } from "../checks.ts";
import type { ExecutionContext } from "../context.ts";
import { eventAt } from "../event-row.ts";
import { lockedRecord } from "../state-row.ts";
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
 * Runs a body of the user's and appends the event that records it, all in the
 * caller's transaction. The execution is locked first: a stale owner runs
 * nothing, and when the event is there already the body is not run again.
 *
 * @throws HoldfastError as `append` does, and whatever the body throws.
 */
export function* recordTransaction(
  { values }: ExecutionContext,
  input: RecordTransaction,
  body: () => Tx<unknown>,
): Tx<TransactionOutcome> {
  const { id, version, at, name, call, seen, fence } = input;
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
  const value = values.value(yield* startedBody(name, body));
  const entry: Recorded = {
    kind: "transactionFinished",
    name,
    inputHash: null,
    outcome: "completed",
    value,
    call,
    seen,
  };
  yield* appendTo(record, at, [entry]);
  return { nextVersion: version + 1, at, entry };
}
