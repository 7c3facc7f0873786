import { instantOf } from "../../model/time/clock.ts";
import { HoldfastError, isHoldfastError } from "../../model/errors.ts";
import type { ExecutionId } from "../../model/ids/execution-id.ts";
import type { LeaseFence, ProvenDeath } from "../../model/lease.ts";
import { isFields } from "../../model/trigger/payload-schema.ts";
import { coreTypes, endTypes } from "../../model/process/event-type.ts";
import { parseProcessId } from "../../model/ids/process-id.ts";
import { isOutput, type ProcessOutput } from "../../model/process/output.ts";
import { registryKeys } from "../../model/process/replay-key.ts";
import { signalType } from "../../model/process/process.ts";
import { checkedText, draftOf, givenObject } from "../../model/shape.ts";
import type { WaitOptions } from "../../sql/database.ts";
import { storeOperation, type Tx } from "../../sql/operation.ts";
import { cancelOrMark, type Finished } from "../execution/parts.ts";
import { lockedRecord } from "../execution/state-row.ts";
import { provenDeath } from "../lease/context.ts";
import { onlyWait, optionsAndWait, writes, type Call, type Method } from "../method.ts";
import {
  eventView,
  type AppendedProcessEvent,
  type ProcessCancelOptions,
  type ProcessContext,
  type ProcessSignalOptions,
} from "./context.ts";
import { appendDeclared, type AppendedEvent, type AppendEvent } from "./declared.ts";
import { eventPayload } from "./event-row.ts";
import { processLeaseOperations } from "./lease.ts";
import { scopeNamed, type SessionScopeName } from "./parts.ts";
import { foundProcess, lockedProcess } from "./process-row.ts";

/** An event to append. */
export interface ProcessEventDraft {
  readonly type: string;
  readonly payload?: unknown;
  /**
   * The caller's name for the event. Appending twice under one key appends once. Events that end a
   * process need one. It may not begin with "process:" or "signal:".
   */
  readonly replayKey?: string;
  /** Passed by a worker: the call is refused unless it holds the lease of the process. */
  readonly fence?: LeaseFence;
  /** The session to wake, if the event wakes; defaults to the wake target of the process. */
  readonly wakeTarget?: SessionScopeName;
}

const draftNames = [
  "type",
  "payload",
  "replayKey",
  "fence",
  "wakeTarget",
] as const satisfies readonly (keyof ProcessEventDraft)[];

const typeCharactersMax = 128;
const replayKeyCharactersMax = 512;

/** @throws HoldfastError `ID_MALFORMED`, `OPTION_INVALID`, `NAME_INVALID`, `NOT_SERIALIZABLE` */
export function givenAppend(
  context: ProcessContext,
  process: string,
  event: ProcessEventDraft,
  wait?: WaitOptions,
): Call<AppendEvent> {
  const input = newEvent(context, process, draftOf("the event", event, draftNames));
  return { input, wait: onlyWait(wait) };
}

function newEvent(
  { codec }: Pick<ProcessContext, "codec">,
  process: string,
  { type: given, payload, replayKey, fence, wakeTarget }: ProcessEventDraft,
): AppendEvent {
  const type = checkedText("The type of an event", given, typeCharactersMax);
  return {
    process: parseProcessId(process),
    type,
    payload: eventPayload(codec, type, payload),
    replayKey:
      replayKey === undefined
        ? null
        : checkedText("A replay key", replayKey, replayKeyCharactersMax),
    fence: checkedFence(fence),
    wakeTarget: wakeTarget === undefined ? undefined : scopeNamed(wakeTarget, "wakeTarget"),
  };
}

/**
 * Validates a fence. Only a missing fence counts as none: a caller that passes one wants to be
 * refused without a lease.
 * @throws HoldfastError `OPTION_INVALID`
 */
export function checkedFence(given: LeaseFence | undefined): LeaseFence | undefined {
  return given === undefined ? undefined : givenObject("fence", given);
}

export interface ProcessFenceOptions extends WaitOptions {
  /** Passed by a worker: the call is refused unless it holds the lease of the process. */
  readonly fence?: LeaseFence;
}

/** @throws HoldfastError `ID_MALFORMED`, `OPTION_INVALID`, `NOT_SERIALIZABLE` */
export function givenComplete(
  context: ProcessContext,
  process: string,
  output: ProcessOutput,
  given?: ProcessFenceOptions,
): Call<AppendEvent> {
  const { options, wait } = optionsAndWait(given, ["fence"]);
  if (!isOutput(output)) throw outputInvalid();
  const type = endTypes[output.kind];
  const replayKey = registryKeys.end(type);
  const event = { type, payload: { output }, replayKey, ...options };
  return { input: newEvent(context, process, event), wait };
}

function outputInvalid(): HoldfastError {
  return new HoldfastError(
    "OPTION_INVALID",
    'An output is { kind: "completed", value, control? }, { kind: "failed", code, message, class?, raw?, control? } or { kind: "cancelled", message, raw?, control? }. Nothing was changed.',
    { option: "output" },
  );
}

/**
 * Validates a cancel request. Each reason is one request, however often it is repeated.
 * @throws HoldfastError `ID_MALFORMED`, `OPTION_INVALID`, `NAME_INVALID`
 */
export function givenCancel(
  { codec }: Pick<ProcessContext, "codec">,
  process: string,
  given?: ProcessCancelOptions,
): Call<AppendEvent> {
  const { options, wait } = optionsAndWait(given, ["reason"]);
  const type = coreTypes.cancelRequested;
  const reason = options.reason === undefined ? null : checkedReason(options.reason);
  const payload = eventPayload(codec, type, { reason });
  const replayKey = registryKeys.cancelRequest(payload.hash);
  const input = { process: parseProcessId(process), type, payload, replayKey };
  return { input, wait };
}

const reasonCharactersMax = 4_096;

function checkedReason(reason: string): string {
  return checkedText("A reason", reason, reasonCharactersMax);
}

const signalKeyCharactersMax = 256;

/** @throws HoldfastError `ID_MALFORMED`, `OPTION_INVALID`, `NAME_INVALID`, `NOT_SERIALIZABLE` */
export function givenSignalCall(
  context: ProcessContext,
  process: string,
  name: string,
  payload: unknown,
  given: ProcessSignalOptions,
): Call<AppendEvent> {
  const { options, wait } = optionsAndWait(givenObject("options", given), ["key"]);
  const type = signalType(checkedSignal(name));
  const key = checkedText("A signal key", options.key, signalKeyCharactersMax);
  const replayKey = registryKeys.signal(name, key);
  const event = { type, payload, replayKey };
  return { input: newEvent(context, process, event), wait };
}

/**
 * Validates the name of a signal, which must fit into an event type and a key.
 * @throws HoldfastError `NAME_INVALID`
 */
export function checkedSignal(name: string): string {
  if (typeof name === "string" && /^[A-Za-z0-9_-]{1,64}$/.test(name)) return name;
  throw new HoldfastError(
    "NAME_INVALID",
    "The name of a signal must be 1 to 64 letters, digits, _ and -.",
    { what: "The name of a signal" },
  );
}

/**
 * Appends an event of a declared type. The same transaction applies the effects of the type: the
 * process ends, and its session is woken. A cancel request reaches the execution that the process
 * runs as.
 *
 * @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`, `REPLAY_KEY_CONFLICT`,
 *   `REPLAY_KEY_RESERVED`, `PROCESS_LEASE_LOST`, `EVENT_TYPE_UNDECLARED`, `EVENT_TYPE_RESERVED`,
 *   `REPLAY_KEY_REQUIRED`, `EVENT_PAYLOAD_INVALID`, `EVENT_SELECTOR_UNMATCHED`, `PROCESS_TERMINAL`,
 *   `PROCESS_SPAWNED`, `PROCESS_LEASED`
 */
export const appendProcessEvent = storeOperation("appendProcessEvent", {
  snapshotSafe: true,
  key: (input) => input.process,
  *one(context: ProcessContext, input: AppendEvent): Tx<AppendedEvent> {
    if (input.type === coreTypes.cancelRequested) return yield* appendCancelRequest(context, input);
    const root = yield* lockedProcess(input.process);
    return yield* appendDeclared(context, root, input);
  },
});

/** @throws HoldfastError `CORRUPT_ROW` for an unreadable event that was appended before. */
export function shownAppended(
  context: ProcessContext,
  appended: AppendedEvent,
): AppendedProcessEvent {
  return { ...appended, event: eventView(context, appended.event) };
}

/** Records that a process must stop, and asks the execution that it runs as to end. */
function* appendCancelRequest(context: ProcessContext, input: AppendEvent): Tx<AppendedEvent> {
  const { row, state } = yield* foundProcess(input.process);
  const id = state.prunedAt === null ? row.execution_id : null;
  // Executions are locked before processes. The request comes before the end that it may cause.
  const isThere = id !== null && (yield* lockedIfThere(id));
  const appended = yield* appendDeclared(context, yield* lockedProcess(input.process), input);
  if (id === null || !isThere || appended.status !== "running") return appended;
  yield* cancelOrMark(context, {
    id,
    at: instantOf(() => context.clock.now()),
    ...resultOf(context, input),
  });
  const { status } = (yield* foundProcess(input.process)).state;
  return { ...appended, status };
}

/** The given reason, and the result of an execution that can be ended at once. */
function resultOf(
  { decode, values }: ProcessContext,
  { payload }: AppendEvent,
): { readonly reason: string | null; readonly cancelled: Finished } {
  const value = decode(payload.encoded);
  const given = isFields(value) ? value["reason"] : null;
  const reason = typeof given === "string" ? given : null;
  const result = {
    kind: "cancelled" as const,
    ...(reason !== null && { reason }),
  };
  return { reason, cancelled: values.finished(result) };
}

/** Locks the execution of a process; false when it was removed by hand. */
function* lockedIfThere(id: ExecutionId): Tx<boolean> {
  try {
    yield* lockedRecord(id);
    return true;
  } catch (error) {
    if (isHoldfastError(error) && error.code === "EXECUTION_NOT_FOUND") return false;
    throw error;
  }
}

interface AbandonProcess {
  /** The event that ends the process. */
  readonly event: AppendEvent;
  /** The holder that was seen with the lease, if its process is now proven dead. */
  readonly death: ProvenDeath | undefined;
}

function givenAbandon(
  { codec }: ProcessContext,
  process: string,
  reason: string,
  wait?: WaitOptions,
): Call<AbandonProcess> {
  const type = coreTypes.abandoned;
  const message = checkedReason(reason);
  const event = {
    process: parseProcessId(process),
    type,
    payload: eventPayload(codec, type, {
      output: { kind: "abandoned", message },
    }),
    replayKey: registryKeys.end(type),
  };
  return { input: { event, death: undefined }, wait: onlyWait(wait) };
}

/**
 * Ends a process that no worker can finish, which callers of `appendProcessEvent` may not do.
 *
 * @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`, `PROCESS_TERMINAL`,
 *   `PROCESS_SPAWNED`, `PROCESS_LEASED`
 */
const abandonProcess = storeOperation("abandonProcess", {
  key: (input) => input.event.process,
  *one(context: ProcessContext, { event, death }: AbandonProcess): Tx<AppendedEvent> {
    const root = yield* lockedProcess(event.process);
    return yield* appendDeclared(context, root, event, { death });
  },
});

type Abandon = Method<[process: string, reason: string, wait?: WaitOptions], AppendedProcessEvent>;

/**
 * Ends a process. When a lease blocks it, this finds out whether the holder's process has died. A
 * prepared call cannot wait for that.
 */
export function abandons(context: ProcessContext): Abandon {
  const { database } = context;
  const once = writes(context, abandonProcess, givenAbandon, shownAppended);
  const call: (...args: Parameters<Abandon>) => ReturnType<Abandon> = async (...args) => {
    try {
      return await once(...args);
    } catch (error) {
      if (!isHoldfastError(error) || error.code !== "PROCESS_LEASED") throw error;
      const { input, wait } = givenAbandon(context, ...args);
      const { process } = input.event;
      const { holder } = await database.read(
        processLeaseOperations.judge(context),
        { of: process },
        wait,
      );
      const death = holder && (await provenDeath(database, holder));
      if (death === undefined) throw error;
      return shownAppended(
        context,
        await database.write(abandonProcess(context), { ...input, death }, wait),
      );
    }
  };
  const { kind, operation } = once;
  return Object.assign(call, {
    prepare: (...args: Parameters<Abandon>) => once.prepare(...args),
    kind,
    operation,
  });
}
