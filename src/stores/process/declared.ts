import { instantOf } from "../../model/time/clock.ts";
import type { Encoded } from "../../model/values/encoded.ts";
import type { LeaseFence, ProvenDeath } from "../../model/lease.ts";
import { schemaViolation } from "../../model/trigger/payload-schema.ts";
import {
  eventTypeReserved,
  eventTypeUndeclared,
  payloadInvalid,
  processPruned,
  processSpawned,
  processTerminal,
  replayKeyConflict,
  replayKeyRequired,
  replayKeyReserved,
} from "../../model/process/errors.ts";
import {
  coreTypes,
  declaredType,
  isCoreType,
  type ProcessEventType,
} from "../../model/process/event-type.ts";
import type { ProcessId } from "../../model/ids/process-id.ts";
import { outputOf } from "../../model/process/output.ts";
import { isForeignKey } from "../../model/process/replay-key.ts";
import type { ProcessStatus } from "../../model/process/process.ts";
import { isTruthy, select, textOf, type PayloadSelector } from "../../model/trigger/selector.ts";
import type { Tx } from "../../sql/operation.ts";
import { isUnfinished } from "../execution/parts.ts";
import type { AppendedProcessEvent, ProcessContext } from "./context.ts";
import {
  appendToProcess,
  replayed,
  type ProcessEventPayload,
  type StoredProcessEvent,
  type WakeDraft,
} from "./event-row.ts";
import { assertProcessFence, assertUnattended } from "./lease.ts";
import { livingScope, type SessionScopeRef } from "./parts.ts";
import { eventTypesOf, type ProcessRoot } from "./process-row.ts";

/**
 * What a caller appends to a process is of a type that its registration
 * declares: the schema of the payload, whether it ends the process, whether and
 * with what it wakes the session. All of it happens in one transaction. A wake
 * is a queue batch whose source is (process, number of the event); under a
 * dedupe key it joins one that is queued and that nobody has claimed.
 */

/** An event of a declared type, as it is to be appended. */
export interface AppendEvent {
  readonly process: ProcessId;
  readonly type: string;
  readonly payload: ProcessEventPayload;
  /** Appending twice under one key is appending once. */
  readonly replayKey: string | null;
  /** Given by a worker: refused unless it holds the lease of the process. */
  readonly fence?: LeaseFence | undefined;
  /** The session to be woken, if the event wakes; defaults to the wake target of the process. */
  readonly wakeTarget?: SessionScopeRef | undefined;
}

/** What a woken session finds in its queue. Its source says which event it was. */
export interface WakePayload {
  readonly process: string;
  readonly type: string;
  readonly input: string;
  readonly replayKey: string | null;
  readonly causedBy: string | null;
  readonly frame: string | null;
}

export interface AppendedEvent {
  readonly event: StoredProcessEvent;
  readonly wake: AppendedProcessEvent["wake"];
  /** True when the event was there already. */
  readonly isReplay: boolean;
  /** The status of the process afterwards. */
  readonly status: ProcessStatus;
}

/** What the registry itself appends, which callers may not. */
interface ByRegistry {
  /** A holder of the lease that was seen, and whose process has provably died since. */
  readonly death: ProvenDeath | undefined;
}

/** Appends an event to a process that the transaction has locked, and does what its type says. */
export function* appendDeclared(
  context: ProcessContext,
  root: ProcessRoot,
  input: AppendEvent,
  registry?: ByRegistry,
): Tx<AppendedEvent> {
  const { type, payload, replayKey, fence } = input;
  if (root.state.prunedAt !== null) throw processPruned(root.id);
  if (replayKey !== null && isForeignKey(replayKey, { type, hash: payload.hash }))
    throw replayKeyReserved(root.id, replayKey);
  const before = replayKey === null ? undefined : yield* replayed(root, replayKey);
  if (before !== undefined) return replayOf(context, root, before, input, registry);
  const shownAt = fence && (yield* assertProcessFence(context, root, fence));
  const value = payloadOf(context, input);
  const declared = checkedAppend(root, input, value, registry);
  const end = declared.terminal?.state ?? null;
  if (end !== null) yield* refuseEndOfSpawned(root);
  const judgedAt =
    end !== null && fence === undefined
      ? yield* assertUnattended(context, root, registry?.death)
      : shownAt;
  const wake = materialised(context, declared, value);
  const { event, state } = yield* appendToProcess(root, {
    type,
    at: judgedAt ?? instantOf(() => context.clock.now()),
    hash: payload.hash,
    replayKey,
    payload: payload.encoded,
    end,
    output: end === null ? null : encodedOutput(context, declared, value),
    wake: wake === null ? null : yield* wakeDraft(context, root, wake, input),
  });
  return {
    event,
    wake: wakeOf(event, wake),
    isReplay: false,
    status: state.status,
  };
}

/**
 * A process that runs as an execution ends with it and in no other way: what
 * the execution came to would be told to nobody. The execution needs no lock,
 * since its end would have to lock the process.
 *
 * @throws HoldfastError `PROCESS_SPAWNED`
 */
function* refuseEndOfSpawned({ id, row }: ProcessRoot): Tx<void> {
  const { execution, execution_id: name } = row;
  if (execution === null || name === null) return;
  if (yield* isUnfinished(execution)) throw processSpawned(id, name);
}

/** Lets only the worker on a process pass, or anybody while there is none. Answers the instant by which that was judged. */
export function* refuseStale(
  context: ProcessContext,
  root: ProcessRoot,
  fence: LeaseFence | undefined,
): Tx<number> {
  if (root.state.prunedAt !== null) throw processPruned(root.id);
  return fence === undefined
    ? yield* assertUnattended(context, root)
    : yield* assertProcessFence(context, root, fence);
}

/** Reads the payload as it was given, once and only if it is asked for. */
function payloadOf({ decode }: ProcessContext, { payload }: AppendEvent): () => unknown {
  let read: { readonly value: unknown } | undefined;
  return () => (read ??= { value: decode(payload.encoded) }).value;
}

function replayOf(
  context: ProcessContext,
  root: ProcessRoot,
  before: StoredProcessEvent,
  input: AppendEvent,
  registry: ByRegistry | undefined,
): AppendedEvent {
  if (before.hash !== input.payload.hash) throw replayKeyConflict(root.id, input.replayKey ?? "");
  const declared = declarationOf(root, input, registry);
  // The same payload gives the same text as it did then.
  const wake =
    before.wake === null || declared === undefined
      ? null
      : materialised(context, declared, payloadOf(context, input));
  return {
    event: before,
    wake: wakeOf(before, wake),
    isReplay: true,
    status: root.state.status,
  };
}

function wakeOf(
  event: StoredProcessEvent,
  wake: Materialised | null,
): AppendedProcessEvent["wake"] {
  return event.wake === null ? null : { ...event.wake, input: wake?.input ?? "" };
}

/** What the declaration of a type says about the event, after everything that can be refused. */
function checkedAppend(
  root: ProcessRoot,
  input: AppendEvent,
  value: () => unknown,
  registry: ByRegistry | undefined,
): ProcessEventType {
  const { id, state } = root;
  const { type, replayKey } = input;
  const declared = declarationOf(root, input, registry);
  if (declared === undefined)
    throw isCoreType(type) ? eventTypeReserved(type) : eventTypeUndeclared(id, type);
  const needsKey = declared.terminal !== undefined || type === coreTypes.cancelRequested;
  if (needsKey && (replayKey === null || replayKey === "")) throw replayKeyRequired(id, type);
  const violation = declared.schema && schemaViolation(declared.schema, value());
  if (violation !== undefined) throw payloadInvalid(id, type, violation);
  if (declared.terminal !== undefined && state.status !== "running")
    throw processTerminal(id, state.status);
  return declared;
}

function declarationOf(
  { row }: ProcessRoot,
  { type }: AppendEvent,
  registry: ByRegistry | undefined,
): ProcessEventType | undefined {
  const by = registry === undefined ? "caller" : "registry";
  return declaredType(eventTypesOf(row), type, by);
}

function encodedOutput(
  { encode }: ProcessContext,
  { terminal }: ProcessEventType,
  value: () => unknown,
): Encoded | null {
  if (terminal === undefined) return null;
  const selected = terminal.output === undefined ? value() : select(terminal.output, value());
  return encode(outputOf(terminal.state, selected));
}

interface Materialised {
  readonly input: string;
  readonly dedupeKey: string | null;
}

function materialised(
  context: ProcessContext,
  { wake }: ProcessEventType,
  value: () => unknown,
): Materialised | null {
  if (wake === undefined) return null;
  const payload = value();
  if (wake.when !== undefined && !isTruthy(select(wake.when, payload))) return null;
  const dedupeKey = wake.dedupe === undefined ? null : dedupeKeyOf(context, wake.dedupe, payload);
  return { input: textOf(select(wake.input, payload)), dedupeKey };
}

/** What comes from a payload is kept as a hash: keys are stored as they are, payloads are not. */
function dedupeKeyOf(
  { codec }: ProcessContext,
  selector: PayloadSelector,
  payload: unknown,
): string {
  const key = textOf(select(selector, payload));
  return selector.kind === "constant" ? key : codec.hash("process-dedupe", 1, key);
}

function* wakeDraft(
  { encode }: ProcessContext,
  root: ProcessRoot,
  { input, dedupeKey }: Materialised,
  { type, replayKey, wakeTarget }: AppendEvent,
): Tx<WakeDraft> {
  const target = wakeTarget === undefined ? root.state.wakeTarget : yield* livingScope(wakeTarget);
  const payload: WakePayload = {
    process: root.id,
    type,
    input,
    replayKey,
    causedBy: root.row.caused_by,
    frame: target?.frame ?? null,
  };
  return { payload: encode(payload), dedupeKey, target };
}
