import { instantOf } from "../../model/time/clock.ts";
import type { CheckedText } from "../../model/values/encoded.ts";
import type { LeaseFence, ProvenDeath } from "../../model/lease.ts";
import { schemaViolation } from "../../model/trigger/payload-schema.ts";
import {
  eventTypeReserved,
  eventTypeUndeclared,
  payloadInvalid,
  processPruned,
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
import type { AppendedProcessEvent, ProcessContext } from "./context.ts";
import {
  appendToProcess,
  replayed,
  type ProcessEventPayload,
  type StoredProcessEvent,
  type WakeDraft,
} from "./event-row.ts";
import { assertProcessFence, assertUnattended, refuseSpawned } from "./lease.ts";
import { livingScope, type SessionScopeRef } from "./parts.ts";
import { eventTypesOf, type ProcessRoot } from "./process-row.ts";

/**
 * Callers append events of types that the registration of the process declares. A type declares the
 * schema of the payload, whether the event ends the process, and whether and with what it wakes the
 * session. All of that happens in one transaction. A wake is a queue batch whose source is
 * (process, number of the event). Under a dedupe key it joins a queued batch that is neither claimed
 * nor held back.
 */

/** An event of a declared type, ready to be appended. */
export interface AppendEvent {
  readonly process: ProcessId;
  readonly type: string;
  readonly payload: ProcessEventPayload;
  /** Appending twice under one key appends once. */
  readonly replayKey: string | null;
  /** Passed by a worker: the call is refused unless it holds the lease of the process. */
  readonly fence?: LeaseFence | undefined;
  /** The session to wake, if the event wakes; defaults to the wake target of the process. */
  readonly wakeTarget?: SessionScopeRef | undefined;
}

/** The queue item of a woken session. Its source names the event. */
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
  /** True when the event existed already. */
  readonly isReplay: boolean;
  /** The status of the process after the event. */
  readonly status: ProcessStatus;
}

/** Options for events that only the registry itself may append. */
interface ByRegistry {
  /** The holder that was seen with the lease, if its process is now proven dead. */
  readonly death: ProvenDeath | undefined;
}

/**
 * Appends an event to a process that the transaction has locked, and applies the effects of its
 * type.
 */
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
  if (end !== null) yield* refuseSpawned(root);
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
 * Accepts only the worker on a process, or any caller while it has no worker. Returns the instant
 * at which that was judged.
 */
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

/** Decodes the given payload, once and only on demand. */
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
  // The same payload gives the same text as the first time.
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

/** Returns the declaration of the event's type, after every check that can refuse the event. */
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
  { encodeChecked }: ProcessContext,
  { terminal }: ProcessEventType,
  value: () => unknown,
): CheckedText | null {
  if (terminal === undefined) return null;
  const selected = terminal.output === undefined ? value() : select(terminal.output, value());
  return encodeChecked(outputOf(terminal.state, selected));
}

interface Materialised {
  readonly input: string;
  readonly dedupeKey: string | null;
  readonly mergeKey: string | null;
}

function materialised(
  context: ProcessContext,
  { wake }: ProcessEventType,
  value: () => unknown,
): Materialised | null {
  if (wake === undefined) return null;
  const payload = value();
  if (wake.when !== undefined && !isTruthy(select(wake.when, payload))) return null;
  return {
    input: textOf(select(wake.input, payload)),
    dedupeKey: keyOf(context, "process-dedupe", wake.dedupe, payload),
    mergeKey: keyOf(context, "process-merge", wake.merge, payload),
  };
}

/** Hashes a key that comes from a payload: keys are stored in the clear, payloads are not. */
function keyOf(
  { codec }: ProcessContext,
  purpose: "process-dedupe" | "process-merge",
  selector: PayloadSelector | undefined,
  payload: unknown,
): string | null {
  if (selector === undefined) return null;
  const key = textOf(select(selector, payload));
  return selector.kind === "constant" ? key : codec.hash(purpose, 1, key);
}

function* wakeDraft(
  context: ProcessContext,
  root: ProcessRoot,
  { input, dedupeKey, mergeKey }: Materialised,
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
  return { payload: context.encodeChecked(payload), dedupeKey, mergeKey, target, context };
}
