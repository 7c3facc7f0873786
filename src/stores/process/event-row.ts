import type { Encoded } from "../../model/encoded.ts";
import { corruptRow } from "../../model/corrupt-row.ts";
import type { ProcessId } from "../../model/process-id.ts";
import type { ProcessEnd } from "../../model/process-output.ts";
import type {
  ProcessEventFacts,
  ProcessWait,
  ProcessWake,
} from "../../model/process.ts";
import { row, run } from "../../sql/operation.ts";
import type { Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import type { Statement } from "../../sql/statement.ts";

/** An event as it is stored. */
export interface StoredProcessEvent extends ProcessEventFacts {
  readonly process: ProcessId;
  /** The number among the signals of one name. */
  readonly ordinal: number | null;
  readonly replayKey: string | null;
  readonly hash: string;
  /** Null when the event has none, or when it is in the log of an execution. */
  readonly payload: Encoded | null;
  readonly output: Encoded | null;
  readonly wake: ProcessWake | null;
  readonly executionVersion: number | null;
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
  readonly wake: string | null;
  readonly execution_version: number | null;
}

/** Of `holdfast_process_event e`. */
export const eventColumns: Statement = sql`
  e.sequence, e.at, e.type, e.ordinal, e.replay_key, e.hash, e.body, e.payload, e.output, e.wake, e.execution_version`;

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
    output: found.output,
    wake:
      found.wake === null ? null : (parsed(found, found.wake) as ProcessWake),
    executionVersion: found.execution_version,
  };
}

function parsed(found: EventRow, text: string): object {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null) return value;
  } catch {
    // Said below.
  }
  throw corruptRow(
    "holdfast_process_event",
    `${found.id}:${found.sequence}`,
    "has a body that makes no sense",
  );
}

/** What an event is by itself; `EventRow` without the name of its process. */
export type NewEventRow = Omit<StoredProcessEvent, "process">;

export function* insertEvent(process: number, event: NewEventRow): Tx<void> {
  const { end, wait } = event;
  const body: EventBody = { ...(end && { end }), ...(wait && { wait }) };
  yield* run(sql`
    INSERT INTO holdfast_process_event
      (process, sequence, at, type, ordinal, replay_key, hash, body, payload, output, wake, execution_version)
    VALUES (${process}, ${event.sequence}, ${event.at}, ${event.type}, ${event.ordinal}, ${event.replayKey},
      ${event.hash}, ${JSON.stringify(body)}, ${event.payload}, ${event.output},
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

/** The number that the next signal of a name gets. */
export function* nextOrdinal(process: number, type: string): Tx<number> {
  const last = yield* row<{ readonly ordinal: number | null }>(sql`
    SELECT MAX(ordinal) AS ordinal FROM holdfast_process_event
    WHERE process = ${process} AND type = ${type} AND ordinal IS NOT NULL`);
  return (last?.ordinal ?? 0) + 1;
}
