import type { Encoded } from "../../../model/encoded.ts";
import { HoldfastError } from "../../../model/errors.ts";
import type { Holder } from "../../../model/execution-event.ts";
import { executionFinished } from "../../../model/execution-errors.ts";
import type { ExecutionId } from "../../../model/execution-id.ts";
import { row, plainOperation } from "../../../sql/operation.ts";
import type { Operation, Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { assertHeld, assertNext } from "../log/append.ts";
import { appendTo } from "../log/append-to.ts";
import { eventAt } from "../event-row.ts";
import { answerTo, nextQuestion, signalInbox } from "../log/inbox.ts";
import { addResponse, earlierResponse } from "../log/respond.ts";
import { lockedRecord } from "../state-row.ts";
import type { ExecutionRecord } from "../state-row.ts";

export interface SendSignal {
  readonly id: ExecutionId;
  readonly signal: string;
  /** Sending twice under one key is sending once. */
  readonly signalKey: string;
  readonly at: number;
  readonly value: Encoded;
  readonly valueHash: string;
}

export interface SendSignalOutcome {
  readonly seq: number;
  /** True when it had been sent before under the same key with an equal value. */
  readonly existed: boolean;
}

/**
 * Sends a signal to an execution. It is kept until the execution asks for it.
 *
 * @throws HoldfastError `EXECUTION_NOT_FOUND`, `EXECUTION_FINISHED`, or
 *   `SIGNAL_CONFLICT` when the key was used with another value.
 */
export const sendSignal: Operation<SendSignal, SendSignalOutcome> =
  plainOperation("sendSignal", {
    key: (input: SendSignal) => input.id,
    *one({ id, signal, signalKey, at, value, valueHash }) {
      const record = yield* lockedRecord(id);
      const inbox = signalInbox(signal);
      // The blank keeps it apart from the ids of children and delays, which have none.
      const source = `${inbox} ${signalKey}`;
      const { state } = record;
      const isFinished = state.pending.kind === "finished";
      if (isFinished) {
        const before = yield* earlierResponse(record.key, source);
        if (before?.value_hash === valueHash)
          return { seq: before.seq, existed: true };
        throw executionFinished(id, state.version);
      }
      const { seq, earlier } = yield* addResponse(record, {
        at,
        kind: "signal",
        inbox,
        source,
        outcome: "sent",
        child: null,
        finishedVersion: null,
        valueHash,
        payload: value,
      });
      if (earlier !== undefined && earlier.value_hash !== valueHash)
        throw new HoldfastError(
          "SIGNAL_CONFLICT",
          `Signal "${signal}" was sent to ${id} before under the same key with another value, which stays. Use another key for another signal.`,
          { id, signal, signalKey },
        );
      return { seq, existed: earlier !== undefined };
    },
  });

export interface ReceiveSignal {
  readonly id: ExecutionId;
  readonly signal: string;
  readonly version: number;
  readonly at: number;
  readonly call?: number;
  readonly seen?: number;
  readonly fence?: Pick<Holder, "executor" | "run">;
}

export interface ReceivedSignal {
  readonly seq: number;
  readonly value: Encoded;
  readonly nextVersion: number;
}

/**
 * Takes the oldest signal of a name that was not taken yet, and records that;
 * undefined, and nothing recorded, when there is none. The same call again
 * answers with what it took.
 *
 * @throws HoldfastError as `appendEvents` does.
 */
export const receiveSignal: Operation<
  ReceiveSignal,
  ReceivedSignal | undefined
> = plainOperation("receiveSignal", {
  key: (input: ReceiveSignal) => input.id,
  *one({ id, signal, version, at, call = 0, seen = 0, fence }) {
    const record = yield* lockedRecord(id);
    const nextVersion = version + 1;
    const before = yield* takenBefore(record, version, { signal, call, seen });
    if (before !== undefined) return { ...before, nextVersion };
    assertNext(record, version);
    assertHeld(record, fence);
    const inbox = signalInbox(signal);
    const ordinal = yield* nextQuestion(record.key, inbox);
    const next = yield* answerTo(record.key, inbox, ordinal);
    if (next === undefined) return undefined;
    const { seq } = next;
    yield* appendTo(record, at, [
      { kind: "signalReceived", signal, seq, call, seen },
    ]);
    const value = yield* valueOf(record, seq);
    return { seq, value, nextVersion };
  },
});

/** What the event at this version took, when it is the one that this call would append. */
function* takenBefore(
  record: ExecutionRecord,
  version: number,
  asked: {
    readonly signal: string;
    readonly call: number;
    readonly seen: number;
  },
): Tx<Omit<ReceivedSignal, "nextVersion"> | undefined> {
  if (version > record.state.version) return undefined;
  const event = (yield* eventAt(record.key, version))?.event;
  const isSame =
    event?.kind === "signalReceived" &&
    event.signal === asked.signal &&
    event.call === asked.call &&
    event.seen === asked.seen;
  if (!isSame) return undefined;
  return { seq: event.seq, value: yield* valueOf(record, event.seq) };
}

/** @throws HoldfastError `CORRUPT_ROW` */
function* valueOf({ id, key }: ExecutionRecord, seq: number): Tx<Encoded> {
  const found = yield* row<{ readonly payload: Encoded | null }>(sql`
    SELECT payload FROM holdfast_execution_response WHERE execution = ${key} AND seq = ${seq}`);
  const payload = found?.payload ?? null;
  if (payload !== null) return payload;
  throw new HoldfastError(
    "CORRUPT_ROW",
    `Response ${seq} of execution ${id} has lost its value. Look at it with a database shell; restore it from a backup.`,
    { table: "holdfast_execution_response", key: `${id}#${seq}` },
  );
}
