import type { Encoded, HashedText } from "../../model/values/encoded.ts";
import type { ExecutionId } from "../../model/ids/execution-id.ts";
import { corruptRow } from "../../model/corrupt-row.ts";
import { processNotFound } from "../../model/process/errors.ts";
import type { ProcessEventType } from "../../model/process/event-type.ts";
import type { RegistrationPartHashes } from "../../model/process/registration.ts";
import type { ProcessId } from "../../model/ids/process-id.ts";
import type {
  ProcessDisposition,
  ProcessOrigin,
  ProcessRecord,
  ProcessState,
  ProcessStatus,
  ProcessSummary,
  ProcessWait,
  SessionScope,
} from "../../model/process/process.ts";
import type { SessionId } from "../../model/ids/session-id.ts";
import { integersOf, lockRoot, textsOf } from "../../sql/dialect.ts";
import { row, rows, run } from "../../sql/operation.ts";
import type { Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import type { Statement } from "../../sql/statement.ts";

/** The columns that lists read. */
export interface SummaryRow {
  readonly key: number;
  readonly id: ProcessId;
  readonly hash: string;
  readonly kind: string;
  readonly label: string | null;
  readonly definition: string | null;
  readonly environment: string | null;
  readonly disposition: ProcessDisposition;
  readonly attempts_max: number | null;
  readonly originator_session: SessionId | null;
  readonly originator_generation: number | null;
  readonly originator_frame: string | null;
  readonly caused_by: string | null;
  readonly wake_session: SessionId | null;
  readonly wake_generation: number | null;
  readonly wake_frame: string | null;
  readonly execution: number | null;
  readonly execution_id: ExecutionId | null;
  readonly created_at: number;
  readonly updated_at: number;
  readonly sequence: number;
  readonly status: ProcessStatus;
  readonly started_at: number | null;
  readonly attempts: number;
  readonly cancel_requested_at: number | null;
  readonly wait: string | null;
  readonly external_sequence: number | null;
  readonly ended_at: number | null;
  readonly ended_sequence: number | null;
  readonly pruned_at: number | null;
}

/**
 * The columns that every change of a process reads. The input is not among them, since it may be
 * large.
 */
export interface RootRow extends SummaryRow {
  readonly event_types: string | null;
  readonly end_wakes: string | null;
}

/** All columns of a process. */
export interface ProcessRow extends RootRow {
  readonly parts: string;
  readonly input: Encoded | null;
  readonly external_ref: Encoded | null;
  readonly external_hash: string | null;
}

const shortColumns: Statement = sql`
  p.key, p.id, p.hash, p.kind, p.label, p.definition, p.environment, p.disposition, p.attempts_max,
  p.originator_session, p.originator_generation, p.originator_frame, p.wake_session, p.wake_generation, p.wake_frame, p.execution, p.execution_id,
  p.created_at, p.updated_at, p.sequence, p.status, p.started_at, p.attempts, p.cancel_requested_at, p.wait,
  p.external_sequence, p.ended_at, p.ended_sequence, p.pruned_at`;

export const summaryColumns: Statement = sql`${shortColumns}, p.caused_by`;

/** The row, without its cause when that is large. */
export interface SizedSummary {
  readonly bytes: number;
}

/** A cause may take thousands of bytes; the other columns are names and numbers. */
export function sizedSummaryColumns(smallMax: number): Statement {
  return sql`${shortColumns}, COALESCE(octet_length(p.caused_by), 0) AS bytes,
    CASE WHEN octet_length(p.caused_by) <= ${smallMax} THEN p.caused_by END AS caused_by`;
}

const rootColumns: Statement = sql`${summaryColumns}, p.event_types, p.end_wakes`;

const rootLocked = lockRoot({
  table: "holdfast_process p",
  unchanged: "sequence",
  columns: rootColumns,
});

export const processColumns: Statement = sql`
  ${rootColumns}, p.parts, p.input,
  (SELECT x.payload FROM holdfast_process_event x
    WHERE x.process = p.key AND x.sequence = p.external_sequence) AS external_ref,
  (SELECT x.hash FROM holdfast_process_event x
    WHERE x.process = p.key AND x.sequence = p.external_sequence) AS external_hash`;

/** The root of a process, with its mutable state. */
export interface ProcessRoot {
  readonly key: number;
  readonly id: ProcessId;
  readonly row: RootRow;
  readonly state: ProcessState;
}

/**
 * Locks a process until the transaction ends, so that its changes happen in sequence. Calls that
 * change its lease or its handles come through here too (see `lockRoot`).
 *
 * @throws HoldfastError `PROCESS_NOT_FOUND`, `CORRUPT_ROW`
 */
export function* lockedProcess(id: ProcessId): Tx<ProcessRoot> {
  return rootOf(id, yield* row<RootRow>(rootLocked(sql`p.id = ${id}`)));
}

/** Locks the process that a read is about. The read reports a missing one. */
export function* lockReadProcess({ process }: { readonly process: ProcessId }): Tx<void> {
  yield* row(rootLocked(sql`p.id = ${process}`));
}

/** Locks a process by its key, for callers that got the key. */
export function* lockedProcessByKey(key: number): Tx<ProcessRoot | undefined> {
  const found = yield* row<RootRow>(rootLocked(sql`p.key = ${key}`));
  return found === undefined ? undefined : rootOf(found.id, found);
}

/**
 * Locks several processes in the order of their keys, as every caller that locks several does.
 * @throws HoldfastError `PROCESS_NOT_FOUND`, `CORRUPT_ROW`
 */
export function* lockedProcesses(ids: readonly ProcessId[]): Tx<readonly ProcessRoot[]> {
  if (ids.length === 0) return [];
  const keys = yield* rows<{ readonly key: number }>(sql`
    SELECT key FROM holdfast_process WHERE id IN ${textsOf(ids)} ORDER BY key`);
  const locked: ProcessRoot[] = [];
  for (const { key } of keys) {
    const root = yield* lockedProcessByKey(key);
    if (root !== undefined) locked.push(root);
  }
  const missing = ids.find((id) => !locked.some((root) => root.id === id));
  if (missing !== undefined) throw processNotFound(missing);
  return locked;
}

/** Finds a process for reads, and locks nothing. */
export function* foundProcess(id: ProcessId): Tx<ProcessRoot> {
  return rootOf(
    id,
    yield* row<RootRow>(sql`
      SELECT ${rootColumns} FROM holdfast_process p WHERE p.id = ${id}`),
  );
}

/** A process as rows of other stores refer to it. */
export interface ProcessMention {
  readonly key: number;
  readonly id: ProcessId;
  readonly execution: number | null;
  readonly pruned_at: number | null;
}

/** Processes by their keys, for rows that refer to them. */
export function* processesOfKeys(keys: readonly number[]): Tx<ReadonlyMap<number, ProcessMention>> {
  if (keys.length === 0) return new Map();
  const found = yield* rows<ProcessMention>(sql`
    SELECT key, id, execution, pruned_at FROM holdfast_process WHERE key IN ${integersOf(keys)}`);
  return new Map(found.map((each) => [each.key, each]));
}

/** The existing ids among some. */
export function* processIdsThere(ids: readonly string[]): Tx<ReadonlySet<string>> {
  if (ids.length === 0) return new Set();
  const found = yield* rows<{ readonly id: string }>(sql`
    SELECT id FROM holdfast_process WHERE id IN ${textsOf(ids)}`);
  return new Set(found.map(({ id }) => id));
}

/**
 * A condition for the id of a process that may not have ended. An unreadable row counts as one that
 * may still be running.
 */
export function isUnended(id: Statement): Statement {
  return sql`EXISTS (
    SELECT 1 FROM holdfast_process p WHERE p.id = ${id} AND (p.ended_sequence IS NULL
      OR p.status NOT IN ('completed', 'failed', 'cancelled', 'abandoned')))`;
}

function rootOf(id: ProcessId, found: RootRow | undefined): ProcessRoot {
  if (found === undefined) throw processNotFound(id);
  return { key: found.key, id: found.id, row: found, state: stateOf(found) };
}

const statuses: readonly string[] = [
  "running",
  "completed",
  "failed",
  "cancelled",
  "abandoned",
] satisfies ProcessStatus[];
const dispositions: readonly string[] = [
  "rerunnable",
  "ownerBound",
  "external",
] satisfies ProcessDisposition[];

/** @throws HoldfastError `CORRUPT_ROW` */
export function stateOf(found: SummaryRow): ProcessState {
  if (!statuses.includes(found.status)) throw corrupt(found, "has an unknown status");
  if ((found.status === "running") !== (found.ended_sequence === null))
    throw corrupt(found, "has an end without its event, or an event without the end");
  return {
    sequence: found.sequence,
    updatedAt: found.updated_at,
    status: found.status,
    startedAt: found.started_at,
    attempts: found.attempts,
    cancelRequestedAt: found.cancel_requested_at,
    wait: found.wait === null ? null : (jsonOf(found, "wait", found.wait) as ProcessWait),
    externalSequence: found.external_sequence,
    wakeTarget: wakeTargetOf(found),
    endedAt: found.ended_at,
    endedSequence: found.ended_sequence,
    prunedAt: found.pruned_at,
  };
}

function wakeTargetOf(found: SummaryRow): SessionScope | null {
  const { wake_session: session, wake_generation: generation } = found;
  if (session === null) return null;
  if (generation === null) throw corrupt(found, "wakes a session without a generation");
  return { session, generation, frame: found.wake_frame };
}

/** The event types that a process declared. @throws HoldfastError `CORRUPT_ROW` */
export function eventTypesOf(found: RootRow): readonly ProcessEventType[] {
  if (found.event_types === null) return [];
  const types = jsonOf(found, "event_types", found.event_types);
  if (!Array.isArray(types)) throw corrupt(found, "has invalid declarations");
  return types as ProcessEventType[];
}

/** @throws HoldfastError `CORRUPT_ROW` */
export function recordOf(found: ProcessRow): ProcessRecord<HashedText> {
  const { input, external_ref: ref, external_hash: hash } = found;
  return {
    ...summaryOf(found),
    eventTypes: eventTypesOf(found),
    input: input === null ? null : { text: input, hash: partsOf(found).input ?? "" },
    externalRef: ref === null ? null : { text: ref, hash: hash ?? "" },
  };
}

/** The hashes of the registered parts, which pruning keeps. @throws HoldfastError `CORRUPT_ROW` */
export function partsOf(found: ProcessRow): RegistrationPartHashes {
  try {
    return JSON.parse(found.parts) as RegistrationPartHashes;
  } catch {
    throw corrupt(found, "has parts that are not JSON");
  }
}

/** @throws HoldfastError `CORRUPT_ROW` */
export function summaryOf(found: SummaryRow): ProcessSummary {
  const { kind, label, definition, disposition } = found;
  if (!dispositions.includes(disposition)) throw corrupt(found, "has an unknown disposition");
  return {
    id: found.id,
    hash: found.hash,
    identity: { kind, label, definition },
    environment: found.environment,
    disposition,
    attemptsMax: found.attempts_max,
    originator: originatorOf(found),
    causedBy: found.caused_by,
    execution: found.execution_id,
    createdAt: found.created_at,
    ...stateOf(found),
  };
}

function originatorOf(found: SummaryRow): ProcessOrigin | null {
  const { originator_session: session } = found;
  if (session === null) return null;
  return {
    session,
    generation: found.originator_generation,
    frame: found.originator_frame,
  };
}

function jsonOf(found: SummaryRow, column: string, text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw corrupt(found, `has a ${column} that is not JSON`);
  }
}

function corrupt(found: SummaryRow, why: string): Error {
  return corruptRow("holdfast_process", found.id, why);
}

/** Writes the state of a process after an event. */
export function* writeProcess(key: number, before: ProcessState, state: ProcessState): Tx<void> {
  // Most events change nothing else, and unwritten columns need no new index entries.
  if (isQuiet(before, state)) {
    yield* run(sql`
      UPDATE holdfast_process SET updated_at = ${state.updatedAt}, sequence = ${state.sequence} WHERE key = ${key}`);
    return;
  }
  const target = state.wakeTarget;
  yield* run(sql`
    UPDATE holdfast_process SET
      updated_at = ${state.updatedAt}, sequence = ${state.sequence}, status = ${state.status},
      started_at = ${state.startedAt}, attempts = ${state.attempts},
      cancel_requested_at = ${state.cancelRequestedAt},
      wait = ${state.wait === null ? null : JSON.stringify(state.wait)},
      external_sequence = ${state.externalSequence},
      wake_session = ${target?.session ?? null}, wake_generation = ${target?.generation ?? null},
      wake_frame = ${target?.frame ?? null},
      ended_at = ${state.endedAt}, ended_sequence = ${state.endedSequence}, pruned_at = ${state.prunedAt}
    WHERE key = ${key}`);
}

/** True when only the number of events has changed. */
function isQuiet(before: ProcessState, after: ProcessState): boolean {
  const { sequence, updatedAt } = before;
  const same = { ...after, sequence, updatedAt };
  return (Object.keys(same) as (keyof ProcessState)[]).every((part) => same[part] === before[part]);
}
