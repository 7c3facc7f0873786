import { corruptRow } from "../../model/corrupt-row.ts";
import type { CheckedText, Encoded } from "../../model/values/encoded.ts";
import { isHoldfastError } from "../../model/errors.ts";
import type { ExecutionId } from "../../model/ids/execution-id.ts";
import type { ProcessId } from "../../model/ids/process-id.ts";
import type { ProcessEnd } from "../../model/process/output.ts";
import {
  afterProcessEvent,
  isSignalType,
  type ProcessEventFacts,
  type ProcessState,
  type ProcessWait,
  type ProcessWake,
  type SessionScope,
  type WakeDelivery,
} from "../../model/process/process.ts";
import type { ValueCodec } from "../../model/values/value-codec.ts";
import { integersOf } from "../../sql/dialect.ts";
import { announce, row, rows, run, type Tx } from "../../sql/operation.ts";
import { sql, type Statement } from "../../sql/statement.ts";
import type { FinishedResult } from "../execution/result-row.ts";
import { enqueueWake, type EnqueueBatch, type NewlyEnqueued } from "../queue/parts.ts";
import { processesOfKeys, writeProcess, type ProcessRoot } from "./process-row.ts";
import type { TurnContext } from "../turn/parts.ts";

/** The topic of waiters for events: the process that the key names has a new event. */
export const processEvent = "process.event";
/** The topic of waiters for an end: the process that the key names has ended. */
export const processEnded = "process.ended";

/** A stored event. */
export interface StoredProcessEvent extends ProcessEventFacts {
  readonly process: ProcessId;
  /** The ordinal among the signals of one name. */
  readonly ordinal: number | null;
  readonly replayKey: string | null;
  readonly hash: string;
  /** Null for an event without a payload, or with a payload in the log of an execution. */
  readonly payload: Encoded | null;
  readonly output: CheckedText | null;
  readonly wake: ProcessWake | null;
  readonly executionVersion: number | null;
}

/** A payload as of the call, since its caller may change the value later. */
export interface ProcessEventPayload {
  readonly encoded: Encoded;
  /** Covers the type too. */
  readonly hash: string;
}

/** @throws HoldfastError `NOT_SERIALIZABLE`, `VALUE_TOO_LARGE` */
export function eventPayload(
  codec: Pick<ValueCodec, "encodeOnce" | "hash">,
  type: string,
  value: unknown,
): ProcessEventPayload {
  const { stored, read } = codec.encodeOnce(value);
  return { encoded: stored as Encoded, hash: eventHash(codec, type, read) };
}

/** Hashes an event; the hash covers its type too. */
export function eventHash(codec: Pick<ValueCodec, "hash">, type: string, value: unknown): string {
  return codec.hash("process-event", 1, [type, value]);
}

/** Tests whether an event has the hash of its type and of the payload that was read. */
export function isHashOfEvent(
  codec: Pick<ValueCodec, "agrees">,
  { type, hash }: Pick<StoredProcessEvent, "type" | "hash">,
  value: unknown,
): boolean {
  return codec.agrees("process-event", 1, [type, value], hash);
}

export interface EventRow {
  readonly id: ProcessId;
  readonly sequence: number;
  readonly at: number;
  readonly type: string;
  readonly ordinal: number | null;
  readonly replay_key: string | null;
  readonly hash: string;
  readonly body: string;
  readonly payload: Encoded | null;
  readonly output: Encoded | null;
  readonly output_checksum: string | null;
  readonly wake: string | null;
  readonly execution_version: number | null;
}

/** The columns of `holdfast_process_event e`. */
export const eventColumns: Statement = sql`
  e.sequence, e.at, e.type, e.ordinal, e.replay_key, e.hash, e.body, e.payload, e.output, e.output_checksum, e.wake, e.execution_version`;

/** The event that ended a process, and the result of its execution if it ended with that. */
export interface StoredEnd {
  readonly event: StoredProcessEvent;
  readonly execution: { readonly id: ExecutionId; readonly result: FinishedResult } | null;
}

interface EventBody {
  readonly end?: ProcessEnd;
  readonly wait?: ProcessWait;
}

/** @throws HoldfastError `CORRUPT_ROW` */
export function eventOf(found: EventRow): StoredProcessEvent {
  const body = parsed(found, found.body) as EventBody;
  return {
    process: found.id,
    sequence: found.sequence,
    at: found.at,
    type: found.type,
    end: body.end ?? null,
    wait: body.wait ?? null,
    ordinal: found.ordinal,
    replayKey: found.replay_key,
    hash: found.hash,
    payload: found.payload,
    output:
      found.output === null ? null : { text: found.output, checksum: found.output_checksum ?? "" },
    wake: found.wake === null ? null : (parsed(found, found.wake) as ProcessWake),
    executionVersion: found.execution_version,
  };
}

function parsed(found: EventRow, text: string): object {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null) return value;
  } catch {
    // Reported below.
  }
  throw corruptRow(
    "holdfast_process_event",
    `${found.id}:${found.sequence}`,
    "has an invalid body",
  );
}

/** An event without the name of its process. */
export type NewEventRow = Omit<StoredProcessEvent, "process">;

/** Inserts only the event and changes nothing else: see `appendToProcess`. */
export function* insertEvent(process: number, event: NewEventRow): Tx<void> {
  const { end, wait } = event;
  const body: EventBody = { ...(end && { end }), ...(wait && { wait }) };
  yield* run(sql`
    INSERT INTO holdfast_process_event
      (process, sequence, at, type, ordinal, replay_key, hash, body, payload, output, output_checksum, wake,
       execution_version)
    VALUES (${process}, ${event.sequence}, ${event.at}, ${event.type}, ${event.ordinal}, ${event.replayKey},
      ${event.hash}, ${JSON.stringify(body)}, ${event.payload}, ${event.output?.text ?? null}, ${event.output?.checksum ?? null},
      ${event.wake === null ? null : JSON.stringify(event.wake)}, ${event.executionVersion})`);
}

/** The event under a replay key. */
export function* replayed(
  { key, id }: { readonly key: number; readonly id: ProcessId },
  replayKey: string,
): Tx<StoredProcessEvent | undefined> {
  const found = yield* row<EventRow>(sql`
    SELECT ${eventColumns} FROM holdfast_process_event e
    WHERE e.process = ${key} AND e.replay_key = ${replayKey}`);
  return found === undefined ? undefined : eventOf({ ...found, id });
}

/** The ordinal of the next signal of a name. */
function* nextOrdinal(process: number, type: string): Tx<number> {
  const last = yield* row<{ readonly ordinal: number | null }>(sql`
    SELECT MAX(ordinal) AS ordinal FROM holdfast_process_event
    WHERE process = ${process} AND type = ${type} AND ordinal IS NOT NULL`);
  return (last?.ordinal ?? 0) + 1;
}

/** An event that passed all checks. */
export interface DecidedEvent {
  readonly type: string;
  readonly at: number;
  readonly hash: string;
  readonly replayKey?: string | null;
  readonly payload?: Encoded | null;
  readonly end?: ProcessEnd | null;
  readonly output?: CheckedText | null;
  readonly wait?: ProcessWait | null;
  readonly wake?: WakeDraft | null;
  readonly executionVersion?: number | null;
}

export interface WakeDraft {
  /** The queue item of the session. */
  readonly payload: CheckedText;
  /** Null when every wake is distinct. */
  readonly dedupeKey: string | null;
  /** Null when it is claimed by itself. */
  readonly mergeKey?: string | null;
  readonly target: SessionScope | null;
  /** For the turn that the wake may start. */
  readonly context: TurnContext;
}

interface Appended {
  readonly event: StoredProcessEvent;
  readonly state: ProcessState;
}

/** The kind of the queue item of a woken session. */
const wakeItemKind = "process.wake";

/**
 * Appends an event to a process that the transaction has locked. Updates its state, puts the wake
 * into the queue of its session, and notifies waiters.
 */
export function* appendToProcess(root: ProcessRoot, draft: DecidedEvent): Tx<Appended> {
  const sequence = root.state.sequence + 1;
  const { type, at, hash } = draft;
  const wake =
    draft.wake === undefined || draft.wake === null
      ? null
      : yield* enqueuedWake(root, sequence, at, draft.wake);
  const event: StoredProcessEvent = {
    process: root.id,
    sequence,
    at,
    type,
    end: draft.end ?? null,
    wait: draft.wait ?? null,
    ordinal: isSignalType(type) ? yield* nextOrdinal(root.key, type) : null,
    replayKey: draft.replayKey ?? null,
    hash,
    payload: draft.payload ?? null,
    output: draft.output ?? null,
    wake,
    executionVersion: draft.executionVersion ?? null,
  };
  yield* insertEvent(root.key, event);
  const state = afterProcessEvent(root.state, event);
  yield* writeProcess(root.key, root.state, state);
  yield* announce(processEvent, root.id);
  if (event.end !== null) yield* announce(processEnded, root.id);
  return { event, state };
}

function* enqueuedWake(
  root: ProcessRoot,
  sequence: number,
  at: number,
  wake: WakeDraft,
): Tx<ProcessWake> {
  const { target, dedupeKey } = wake;
  return {
    dedupeKey: dedupeKey ?? `${root.id}:${sequence}`,
    delivery:
      target === null
        ? { kind: "noTarget" }
        : yield* delivered(root, sequence, at, { ...wake, target }),
  };
}

function* delivered(
  { key, id }: ProcessRoot,
  sequence: number,
  now: number,
  wake: WakeDraft & { readonly target: SessionScope },
): Tx<WakeDelivery> {
  const { payload, dedupeKey, mergeKey = null, target } = wake;
  const outcome = yield* unlessGone(wake.context, {
    session: { id: target.session, generation: target.generation },
    id: wakeBatchId(key, sequence),
    source: { process: id, sequence },
    policy: wakePolicy(mergeKeyIn(target, mergeKey)),
    availableAt: 0,
    items: [{ kind: wakeItemKind, payload }],
    at: now,
    dedupeKey: dedupeKey === null ? null : keyInFrame(target, dedupeKey),
  });
  return outcome === undefined
    ? { kind: "targetGone" }
    : { kind: outcome.kind, batch: outcome.batch.id, ...target };
}

/**
 * Frames of one session are woken separately, so a wake of one frame never stands for another
 * frame's.
 */
function keyInFrame({ frame }: SessionScope, dedupeKey: string): string {
  return JSON.stringify([frame, dedupeKey]);
}

/** Wakes of different frames are not merged. The session itself uses keys as its queue does. */
function mergeKeyIn(target: SessionScope, mergeKey: string | null): string | null {
  return mergeKey === null || target.frame === null ? mergeKey : keyInFrame(target, mergeKey);
}

function wakePolicy(mergeKey: string | null): EnqueueBatch["policy"] {
  return {
    class: "turn",
    delivery: "earliestSafeBoundary",
    slot: mergeKey === null ? "exclusive" : "join",
    mergeKey,
  };
}

/** Undefined when the session to wake is gone: the event is recorded all the same. */
function* unlessGone(
  context: TurnContext,
  wake: Parameters<typeof enqueueWake>[1],
): Tx<NewlyEnqueued | undefined> {
  try {
    return yield* enqueueWake(context, wake);
  } catch (error) {
    if (isGone(error)) return undefined;
    throw error;
  }
}

function isGone(error: unknown): boolean {
  return (
    isHoldfastError(error) &&
    (error.code === "SESSION_NOT_FOUND" || error.code === "SESSION_DELETED")
  );
}

/** The id of the batch by which an event wakes its session. */
function wakeBatchId(process: number, sequence: number): string {
  return `wake_${process}_${sequence}`;
}

const wakeBatchForm = /^wake_(\d+)_(\d+)$/;

/**
 * Tests whether queued batches that are named like wakes belong to existing events with such a
 * wake. Events of pruned processes are gone.
 */
export function* wakesOf(batches: readonly string[]): Tx<(batch: string) => boolean> {
  const processes = new Set<number>();
  for (const batch of batches) {
    const [, process] = wakeBatchForm.exec(batch) ?? [];
    if (process !== undefined) processes.add(Number(process));
  }
  if (processes.size === 0) return () => true;
  const keys = [...processes];
  const known = yield* processesOfKeys(keys);
  const sequences = batches.flatMap((batch) => {
    const [, , sequence] = wakeBatchForm.exec(batch) ?? [];
    return sequence === undefined ? [] : Number(sequence);
  });
  const found = yield* rows<{
    readonly process: number;
    readonly sequence: number;
    readonly wake: string;
  }>(sql`
    SELECT process, sequence, wake FROM holdfast_process_event
    WHERE process IN ${integersOf(keys)} AND sequence IN ${integersOf(sequences)} AND wake IS NOT NULL`);
  const waking = new Map(
    found.map((event) => [wakeBatchId(event.process, event.sequence), event.wake]),
  );
  return (batch) => {
    const [, process] = wakeBatchForm.exec(batch) ?? [];
    if (process === undefined) return true;
    const woken = known.get(Number(process));
    if (woken === undefined) return false;
    return woken.pruned_at !== null || waking.get(batch)?.includes(JSON.stringify(batch)) === true;
  };
}
