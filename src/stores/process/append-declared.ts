import { instantOf } from "../../model/clock.ts";
import type { ProvenDeath } from "../../model/lease.ts";
import type { Encoded } from "../../model/encoded.ts";
import { schemaViolation } from "../../model/payload-schema.ts";
import {
  eventTypeReserved,
  eventTypeUndeclared,
  payloadInvalid,
  processPruned,
  processTerminal,
  replayKeyConflict,
  replayKeyRequired,
  replayKeyReserved,
} from "../../model/process-errors.ts";
import {
  coreTypes,
  declaredType,
  isCoreType,
} from "../../model/process-event-type.ts";
import type { ProcessEventType } from "../../model/process-event-type.ts";
import { outputOf } from "../../model/process-output.ts";
import { isForeignKey } from "../../model/process-replay-key.ts";
import { isTruthy, select, textOf } from "../../model/selector.ts";
import type { PayloadSelector } from "../../model/selector.ts";
import type { Tx } from "../../sql/operation.ts";
import type {
  AppendedProcessEvent,
  AppendProcessEvent,
  MaterialisedWake,
  WakePayload,
} from "./append-event.ts";
import { appendToProcess } from "./append-to.ts";
import type { WakeDraft } from "./append-to.ts";
import { replayed } from "./event-row.ts";
import type { StoredProcessEvent } from "./event-row.ts";
import { assertProcessFence, assertUnattended } from "./fence.ts";
import { eventTypesOf } from "./process-row.ts";
import type { ProcessRoot } from "./process-row.ts";
import { livingScope } from "./scope.ts";

/** What the registry itself appends, which callers may not. */
export interface ByRegistry {
  /** A holder of the lease that was seen, and whose process has provably died since. */
  readonly death: ProvenDeath | undefined;
}

/** Appends an event to a process that the transaction has locked, and does what its type says. */
export function* appendDeclared(
  root: ProcessRoot,
  input: AppendProcessEvent,
  registry?: ByRegistry,
): Tx<AppendedProcessEvent> {
  const { type, payload, replayKey, fence } = input;
  const now = instantOf(input.now);
  if (root.state.prunedAt !== null) throw processPruned(root.id);
  if (
    replayKey !== null &&
    isForeignKey(replayKey, { type, hash: payload.hash })
  )
    throw replayKeyReserved(root.id, replayKey);
  const before =
    replayKey === null ? undefined : yield* replayed(root, replayKey);
  if (before !== undefined) return replayOf(root, before, input, registry);
  if (fence !== undefined) yield* assertProcessFence(root, fence, now);
  const value = payloadOf(input);
  const declared = checkedAppend(root, input, value, registry);
  const end = declared.terminal?.state ?? null;
  if (end !== null && fence === undefined)
    yield* assertUnattended(root, now, registry?.death);
  const wake = materialised(declared, input, value);
  const { event, state } = yield* appendToProcess(root, {
    type,
    at: now,
    hash: payload.hash,
    replayKey,
    payload: payload.encoded,
    end,
    output: end === null ? null : encodedOutput(declared, input, value),
    wake: wake === null ? null : yield* wakeDraft(root, wake, input),
  });
  return {
    event,
    wake: wakeOf(event, wake),
    isReplay: false,
    status: state.status,
  };
}

/** Reads the payload as it was given, once and only if it is asked for. */
function payloadOf({ payload, codec }: AppendProcessEvent): () => unknown {
  let read: { readonly value: unknown } | undefined;
  return () => (read ??= { value: codec.decode(payload.encoded) }).value;
}

function replayOf(
  root: ProcessRoot,
  before: StoredProcessEvent,
  input: AppendProcessEvent,
  registry: ByRegistry | undefined,
): AppendedProcessEvent {
  if (before.hash !== input.payload.hash)
    throw replayKeyConflict(root.id, input.replayKey ?? "");
  const declared = declarationOf(root, input, registry);
  // The same payload gives the same text as it did then.
  const wake =
    before.wake === null || declared === undefined
      ? null
      : materialised(declared, input, payloadOf(input));
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
): MaterialisedWake | null {
  return event.wake === null
    ? null
    : { ...event.wake, input: wake?.input ?? "" };
}

/** What the declaration of a type says about the event, after everything that can be refused. */
function checkedAppend(
  root: ProcessRoot,
  input: AppendProcessEvent,
  value: () => unknown,
  registry: ByRegistry | undefined,
): ProcessEventType {
  const { id, state } = root;
  const { type, replayKey } = input;
  const declared = declarationOf(root, input, registry);
  if (declared === undefined)
    throw isCoreType(type)
      ? eventTypeReserved(type)
      : eventTypeUndeclared(id, type);
  const needsKey =
    declared.terminal !== undefined || type === coreTypes.cancelRequested;
  if (needsKey && (replayKey === null || replayKey === ""))
    throw replayKeyRequired(id, type);
  const violation =
    declared.schema && schemaViolation(declared.schema, value());
  if (violation !== undefined) throw payloadInvalid(id, type, violation);
  if (declared.terminal !== undefined && state.status !== "running")
    throw processTerminal(id, state.status);
  return declared;
}

function declarationOf(
  { row }: ProcessRoot,
  { type }: AppendProcessEvent,
  registry: ByRegistry | undefined,
): ProcessEventType | undefined {
  const by = registry === undefined ? "caller" : "registry";
  return declaredType(eventTypesOf(row), type, by);
}

function encodedOutput(
  { terminal }: ProcessEventType,
  { codec }: AppendProcessEvent,
  value: () => unknown,
): Encoded | null {
  if (terminal === undefined) return null;
  const selected =
    terminal.output === undefined ? value() : select(terminal.output, value());
  return codec.encode(outputOf(terminal.state, selected));
}

interface Materialised {
  readonly input: string;
  readonly dedupeKey: string | null;
}

function materialised(
  { wake }: ProcessEventType,
  { codec }: AppendProcessEvent,
  value: () => unknown,
): Materialised | null {
  if (wake === undefined) return null;
  const payload = value();
  if (wake.when !== undefined && !isTruthy(select(wake.when, payload)))
    return null;
  const dedupeKey =
    wake.dedupe === undefined ? null : dedupeKeyOf(wake.dedupe, payload, codec);
  return { input: textOf(select(wake.input, payload)), dedupeKey };
}

/** What comes from a payload is kept as a hash: keys are stored as they are, payloads are not. */
function dedupeKeyOf(
  selector: PayloadSelector,
  payload: unknown,
  { hash }: AppendProcessEvent["codec"],
): string {
  const key = textOf(select(selector, payload));
  return selector.kind === "constant" ? key : hash("process-dedupe", 1, key);
}

function* wakeDraft(
  root: ProcessRoot,
  { input, dedupeKey }: Materialised,
  { type, replayKey, wakeTarget, codec }: AppendProcessEvent,
): Tx<WakeDraft> {
  const target =
    wakeTarget === undefined
      ? root.state.wakeTarget
      : yield* livingScope(wakeTarget);
  const payload: WakePayload = {
    process: root.id,
    type,
    input,
    replayKey,
    causedBy: root.row.caused_by,
    frame: target?.frame ?? null,
  };
  return { payload: codec.encode(payload), dedupeKey, target };
}
