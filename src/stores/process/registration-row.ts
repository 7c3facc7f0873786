import { corruptRow } from "../../model/corrupt-row.ts";
import type { HashedText } from "../../model/values/encoded.ts";
import type { ExecutionId } from "../../model/ids/execution-id.ts";
import { processConflict } from "../../model/process/errors.ts";
import { coreTypes } from "../../model/process/event-type.ts";
import type { ProcessId } from "../../model/ids/process-id.ts";
import { firstDifference, type RegistrationIdentity } from "../../model/process/registration.ts";
import type { ProcessRecord, SessionScope } from "../../model/process/process.ts";
import { lockRow } from "../../sql/dialect.ts";
import { announce, row, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { holdEnvironment } from "./environment-row.ts";
import { insertEvent, processEvent, type NewEventRow } from "./event-row.ts";
import { keptScope, type EndWakes, type NewProcess } from "./parts.ts";
import { partsOf, processColumns, recordOf, type ProcessRow } from "./process-row.ts";

/** The execution that a spawned process runs as. */
interface OwnExecution {
  readonly key: number;
  readonly id: ExecutionId;
  readonly endWakes: EndWakes;
}

export interface RegisteredProcess<Value = HashedText> {
  readonly key: number;
  readonly id: ProcessId;
  /** True when it was registered already with the same content. */
  readonly existed: boolean;
  readonly record: ProcessRecord<Value>;
}

/**
 * Registers a process, or returns the one that was registered before under the same id with the
 * same content, in any state.
 *
 * @throws HoldfastError `PROCESS_CONFLICT` naming the part that differs, `SESSION_NOT_FOUND` or
 *   `SESSION_DELETED` for its wake target, `BLOB_NOT_FOUND` or `PROCESS_INVALID` for its
 *   environment.
 */
export function* register(input: NewProcess, execution?: OwnExecution): Tx<RegisteredProcess> {
  const found = yield* foundRegistration(input);
  if (found !== undefined) return found;
  const target = input.wakeTarget === null ? null : yield* keptScope(input.wakeTarget);
  if (input.environment !== null) yield* holdEnvironment(input.environment);
  const key = yield* insertProcess(input, target, execution);
  if (key === undefined) {
    const other = yield* foundRegistration(input);
    if (other !== undefined) return other;
    throw corruptRow("holdfast_process", input.id, "has the same id and is unreadable");
  }
  yield* insertEvent(key, registeredEvent(input));
  yield* announce(processEvent, input.id);
  const registered = yield* rowOf(input.id);
  if (registered === undefined) throw new Error("The row was just written.");
  return { key, id: input.id, existed: false, record: recordOf(registered) };
}

function* rowOf(id: ProcessId): Tx<ProcessRow | undefined> {
  return yield* row<ProcessRow>(sql`
    SELECT ${processColumns} FROM holdfast_process p WHERE p.id = ${id}`);
}

/**
 * The process that was registered before with the same content; undefined when none was. It is
 * locked, so its current state is returned and not that of an older snapshot.
 *
 * @throws HoldfastError `PROCESS_CONFLICT`
 */
export function* foundRegistration({
  id,
  identified,
}: NewProcess): Tx<RegisteredProcess | undefined> {
  const found = yield* row<ProcessRow>(sql`
    SELECT ${processColumns} FROM holdfast_process p WHERE p.id = ${id} ${lockRow}`);
  if (found === undefined) return undefined;
  if (found.hash !== identified.hash) throw processConflict(id, differingPart(found, identified));
  return { key: found.key, id, existed: true, record: recordOf(found) };
}

/**
 * Tests whether the process with this id was registered for the same cause, even if other parts
 * differ.
 */
export function* isSameCause({ id, identified }: NewProcess): Tx<boolean> {
  const found = yield* rowOf(id);
  const { causedBy } = identified.parts;
  return found !== undefined && causedBy !== undefined && partsOf(found).causedBy === causedBy;
}

function differingPart(found: ProcessRow, given: RegistrationIdentity): string {
  return firstDifference(partsOf(found), given.parts) ?? "content";
}

function* insertProcess(
  input: NewProcess,
  target: SessionScope | null,
  execution: OwnExecution | undefined,
): Tx<number | undefined> {
  const { id, at, identity, originator, identified } = input;
  const inserted = yield* row<{ readonly key: number }>(sql`
    INSERT INTO holdfast_process
      (id, hash, parts, kind, label, definition, environment, disposition, attempts_max,
       originator_session, originator_generation, originator_frame, caused_by,
       wake_session, wake_generation, wake_frame, event_types, input, execution, execution_id, end_wakes,
       created_at, updated_at, sequence, status, attempts, is_pruning)
    VALUES (${id}, ${identified.hash}, ${JSON.stringify(identified.parts)},
       ${identity.kind}, ${identity.label}, ${identity.definition}, ${input.environment}, ${input.disposition}, ${input.attemptsMax},
       ${originator?.session ?? null}, ${originator?.generation ?? null}, ${originator?.frame ?? null},
       ${input.causedBy},
       ${target?.session ?? null}, ${target?.generation ?? null}, ${target?.frame ?? null},
       ${JSON.stringify(input.eventTypes)}, ${input.input},
       ${execution?.key ?? null}, ${execution?.id ?? null},
       ${execution === undefined ? null : JSON.stringify(execution.endWakes)}, ${at}, ${at}, 0, 'running', 0, 0)
    ON CONFLICT (id) DO NOTHING RETURNING key`);
  return inserted?.key;
}

function registeredEvent({ at, identified }: NewProcess): NewEventRow {
  return {
    sequence: 0,
    at,
    type: coreTypes.registered,
    end: null,
    wait: null,
    ordinal: null,
    replayKey: null,
    hash: identified.hash,
    payload: null,
    output: null,
    wake: null,
    executionVersion: null,
  };
}
