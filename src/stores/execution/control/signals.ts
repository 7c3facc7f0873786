import type { Encoded } from "../../../model/values/encoded.ts";
import { corruptRow } from "../../../model/corrupt-row.ts";
import { HoldfastError } from "../../../model/errors.ts";
import { executionFinished } from "../../../model/execution/errors.ts";
import { parseExecutionId, type ExecutionId } from "../../../model/ids/execution-id.ts";
import { parseFunctionName, type FunctionName } from "../../../model/ids/function-name.ts";
import { parseSignalName, type OwnSignal } from "../../../model/ids/own-signal.ts";
import { checkedCount, checkedText } from "../../../model/shape.ts";
import type { WaitOptions } from "../../../sql/database.ts";
import { row, storeOperation, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { changedRow } from "../../damage.ts";
import { optionsAndWait, type Call } from "../../method.ts";
import { checkedFence, checkedVersion, type Fence } from "../checks.ts";
import { judgedAt, type ExecutionContext } from "../context.ts";
import { eventAt } from "../event-row.ts";
import { assertHeld, assertNext } from "../log/record-check.ts";
import { appendTo } from "../log/append-to.ts";
import { addResponse, earlierResponse, nextSignal, signalInbox } from "../log/respond.ts";
import { lockedRecord, type ExecutionRecord } from "../state-row.ts";

export interface SignalOptions extends WaitOptions {
  /** A key that makes sending repeatable; defaults to a new one. */
  readonly key?: string;
}

export interface SendSignal {
  readonly id: ExecutionId;
  readonly signal: string;
  /** A key that makes sending repeatable. */
  readonly signalKey: string;
  readonly at: number;
  readonly value: Encoded;
  readonly valueHash: string;
}

export function givenSendSignal(
  context: ExecutionContext,
  id: string,
  signal: string,
  value: unknown,
  options?: SignalOptions,
): Call<SendSignal> {
  return newSignal(context, id, parseSignalName(signal), value, options);
}

/** The same for a signal of Holdfast's own, which no user may send. */
export function givenOwnSignal(
  context: ExecutionContext,
  id: string,
  signal: OwnSignal,
  value: unknown,
  options?: SignalOptions,
): Call<SendSignal> {
  return newSignal(context, id, parseFunctionName(signal), value, options);
}

function newSignal(
  { clock, values, ids }: ExecutionContext,
  id: string,
  signal: FunctionName,
  value: unknown,
  options: SignalOptions | undefined,
): Call<SendSignal> {
  const { options: given, wait } = optionsAndWait(options, ["key"]);
  const { text, hash } = values.hashed(value);
  const input = {
    id: parseExecutionId(id),
    signal,
    signalKey:
      given.key === undefined ? ids.nextId("Run") : checkedText("A signal's key", given.key),
    at: clock.now(),
    value: text,
    valueHash: hash,
  };
  return { input, wait };
}

export interface SendSignalOutcome {
  readonly seq: number;
  /** True if it was already sent under the same key with an equal value. */
  readonly existed: boolean;
}

/**
 * Sends a signal to an execution, which is kept until the execution asks for it.
 * @throws HoldfastError `EXECUTION_NOT_FOUND`, `EXECUTION_FINISHED`, or
 *   `SIGNAL_CONFLICT` when the key was used with another value.
 */
export const sendSignal = storeOperation("sendSignal", {
  key: (input) => input.id,
  *one(context: ExecutionContext, input: SendSignal): Tx<SendSignalOutcome> {
    const { id, signal, signalKey, value, valueHash } = input;
    const record = yield* lockedRecord(id);
    const at = judgedAt(context, input.at);
    const inbox = signalInbox(signal);
    // The blank separates it from the ids of children and delays, which contain none.
    const source = `${inbox} ${signalKey}`;
    const { state } = record;
    const { values } = context;
    const isSame = (hash: string | null): boolean =>
      hash === valueHash || (hash !== null && values.agrees(values.readValue(value), hash));
    const isFinished = state.pending.kind === "finished";
    if (isFinished) {
      const before = yield* earlierResponse(record.key, source);
      if (before !== undefined && isSame(before.value_hash))
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
    if (earlier !== undefined && !isSame(earlier.value_hash))
      throw new HoldfastError(
        "SIGNAL_CONFLICT",
        `Signal "${signal}" was already sent to ${id} under the same key with another value, which stays. Use another key for another signal.`,
        { id, signal, signalKey },
      );
    return { seq, existed: earlier !== undefined };
  },
});

export interface ReceiveOptions extends WaitOptions {
  /** Receive only as the run that last locked the execution. */
  readonly fence?: Fence;
  /** The number of the receiving call in the code; defaults to 0. */
  readonly call?: number;
  /** The last response that the code had received before; defaults to 0. */
  readonly seen?: number;
}

export interface ReceiveSignal {
  readonly id: ExecutionId;
  readonly signal: string;
  readonly version: number;
  readonly at: number;
  readonly call?: number;
  readonly seen?: number;
  readonly fence?: Fence;
}

export function givenReceiveSignal(
  { clock }: ExecutionContext,
  id: string,
  signal: string,
  version: number,
  options?: ReceiveOptions,
): Call<ReceiveSignal> {
  const { options: given, wait } = optionsAndWait(options, ["fence", "call", "seen"]);
  const { fence, call = 0, seen = 0 } = given;
  const input = {
    id: parseExecutionId(id),
    signal: parseFunctionName(signal),
    version: checkedVersion(version),
    at: clock.now(),
    ...(fence !== undefined && { fence: checkedFence("fence", fence) }),
    call: checkedCount("call", call),
    seen: checkedCount("seen", seen),
  };
  return { input, wait };
}

/** A received signal. */
interface ReceivedSignal<V = Encoded> {
  readonly seq: number;
  readonly value: V;
  readonly nextVersion: number;
}

/**
 * Takes the oldest signal of a name that has not been taken, and records that. Returns undefined,
 * and records nothing, if there is none. A repeated call returns the signal that it took.
 * @throws HoldfastError as `appendEvents` does.
 */
export const receiveSignal = storeOperation("receiveSignal", {
  key: (input) => input.id,
  *one(context: ExecutionContext, input: ReceiveSignal): Tx<ReceivedSignal | undefined> {
    const { id, signal, version, call = 0, seen = 0, fence } = input;
    const record = yield* lockedRecord(id);
    const at = judgedAt(context, input.at);
    const nextVersion = version + 1;
    const before = yield* takenBefore(context, record, version, { signal, call, seen });
    if (before !== undefined) return { ...before, nextVersion };
    assertNext(record, version);
    assertHeld(record, fence);
    const inbox = signalInbox(signal);
    const next = yield* nextSignal(record.key, inbox);
    if (next === undefined) return undefined;
    const { seq } = next;
    const value = yield* valueOf(context, record, seq);
    yield* appendTo(context, record, at, [{ kind: "signalReceived", signal, seq, call, seen }]);
    return { seq, value, nextVersion };
  },
});

/** The received signal with its value decoded. */
export function shownReceived(
  { values }: ExecutionContext,
  received: ReceivedSignal | undefined,
): ReceivedSignal<unknown> | undefined {
  return received && { ...received, value: values.readValue(received.value) };
}

/**
 * The signal that the event at this version took, if that event is the one that this call would
 * append.
 */
function* takenBefore(
  context: ExecutionContext,
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
  return { seq: event.seq, value: yield* valueOf(context, record, event.seq) };
}

/** The value of a signal, checked against its hash before it counts as taken. @throws HoldfastError `CORRUPT_ROW` */
function* valueOf(
  { values }: ExecutionContext,
  { id, key }: ExecutionRecord,
  seq: number,
): Tx<Encoded> {
  const found = yield* row<{
    readonly payload: Encoded | null;
    readonly value_hash: string | null;
  }>(sql`
    SELECT payload, value_hash FROM holdfast_execution_response WHERE execution = ${key} AND seq = ${seq}`);
  const { payload = null, value_hash: hash = null } = found ?? {};
  const table = "holdfast_execution_response";
  if (payload === null || hash === null)
    throw corruptRow(table, `${id}#${seq}`, "has lost its value");
  if (values.agrees(values.readValue(payload), hash)) return payload;
  throw changedRow(table, `${id}#${seq}`);
}
