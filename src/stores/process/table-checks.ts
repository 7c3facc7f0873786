import { isOutput } from "../../model/process/output.ts";
import { changedPart } from "../../model/process/registration.ts";
import type { NamedScope } from "../../model/process/registration.ts";
import { integersOf } from "../../sql/dialect.ts";
import { rows } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { blobsThere } from "../blob/blob-row.ts";
import { isUnchanged } from "../context.ts";
import { resultHashesAt } from "../execution/parts.ts";
import { leaseStateOf } from "../lease/lease-row.ts";
import type { LeaseRow } from "../lease/lease-row.ts";
import { generationsThere } from "../session-row.ts";
import { inSessions } from "../session-checks.ts";
import { distinct, groupedBy, tableCheck } from "../table-check.ts";
import type { CheckTools, TableCheck } from "../table-check.ts";
import { eventColumns, eventOf, isHashOfEvent, type EventRow } from "./event-row.ts";
import { isReport } from "./session-end-row.ts";
import { partsOf, processColumns, processesOfKeys, recordOf } from "./process-row.ts";
import type { ProcessRow } from "./process-row.ts";

const process = tableCheck<ProcessRow>({
  table: "holdfast_process",
  select: sql`SELECT ${processColumns}`,
  from: sql`FROM holdfast_process p`,
  order: sql`p.key`,
  behind: ({ key }) => sql`p.key > ${key}`,
  weight: sql`COALESCE(length(p.input), 0) + COALESCE(length(p.event_types), 0) + COALESCE(length(p.end_wakes), 0)
    + COALESCE((SELECT length(x.payload) FROM holdfast_process_event x
        WHERE x.process = p.key AND x.sequence = p.external_sequence), 0)`,
  keyOf: ({ id }) => id,
  judge(row, tools) {
    recordOf(row);
    if (row.end_wakes !== null) JSON.parse(row.end_wakes);
    return faultOfRegistration(row, tools);
  },
  *partners(found) {
    const events = yield* rows<EdgeEvent>(sql`
      SELECT e.process, e.sequence, e.hash FROM holdfast_process p JOIN holdfast_process_event e ON e.process = p.key
        AND (e.sequence = 0 OR e.sequence = p.sequence OR e.sequence = p.sequence + 1 OR e.sequence = p.ended_sequence OR e.sequence = p.external_sequence)
      WHERE p.key IN ${integersOf(found.map(({ key }) => key))} ORDER BY e.process, e.sequence`);
    const eventsOf = groupedBy(events, (each) => each.process);
    const there = yield* blobsThere(distinct(found, ({ environment }) => environment));
    return (row) =>
      row.environment !== null && !there.has(row.environment)
        ? "The blob of its environment is missing."
        : faultOfLog(row, eventsOf(row.key));
  },
});

/** The hash of what was registered, and of those parts that the row still has. */
function faultOfRegistration(row: ProcessRow, { decode, agrees }: CheckTools): string | undefined {
  const parts = partsOf(row);
  if (!agrees("process", 1, [row.id, parts], row.hash)) return "Its parts do not match its hash.";
  const { kind, definition, disposition, attempts_max: attemptsMax } = row;
  const kept = { kind, definition, disposition, attemptsMax };
  const facts =
    row.pruned_at !== null || row.input === null
      ? kept
      : {
          ...kept,
          label: row.label,
          environment: row.environment,
          causedBy: row.caused_by,
          input: decode(row.input),
          eventTypes: jsonOf(row.event_types),
          originator: originatorOf(row),
        };
  const differing = changedPart(agrees, facts, parts);
  return differing && `Its ${differing} does not match its hash.`;
}

function jsonOf(text: string | null): unknown {
  return text === null ? null : (JSON.parse(text) as unknown);
}

/** The originator as named in the registration. */
function originatorOf(row: ProcessRow): NamedScope | null {
  const { originator_session: session } = row;
  if (session === null) return null;
  return {
    session,
    generation: row.originator_generation,
    frame: row.originator_frame,
  };
}

interface EdgeEvent {
  readonly process: number;
  readonly sequence: number;
  readonly hash: string;
}

/**
 * Checks that the log ends at the row's sequence and has the events that the row refers to. A
 * pruned process has its last event.
 */
function faultOfLog(row: ProcessRow, events: readonly EdgeEvent[]): string | undefined {
  if (events.at(-1)?.sequence !== row.sequence) return "Its log does not end at its sequence.";
  if (row.pruned_at !== null) return undefined;
  if (events[0]?.sequence !== 0 || events[0].hash !== row.hash)
    return "Its log does not begin with its registration.";
  const there = new Set(events.map(({ sequence }) => sequence));
  if (row.ended_sequence !== null && !there.has(row.ended_sequence))
    return "The event that ended it is missing.";
  return row.external_sequence !== null && !there.has(row.external_sequence)
    ? "The event that named its external work is missing."
    : undefined;
}

interface OwnedEvent extends Omit<EventRow, "id"> {
  readonly key: number;
  readonly process: number;
  readonly id: EventRow["id"] | null;
  readonly last: number | null;
  readonly pruned_at: number | null;
  readonly execution: number | null;
}

const event = tableCheck<OwnedEvent>({
  table: "holdfast_process_event",
  select: sql`SELECT e.key, e.process, p.id, p.sequence AS last, p.pruned_at, p.execution, ${eventColumns}`,
  from: sql`FROM holdfast_process_event e LEFT JOIN holdfast_process p ON p.key = e.process`,
  order: sql`e.key`,
  behind: ({ key }) => sql`e.key > ${key}`,
  weight: sql`length(e.body) + COALESCE(length(e.payload), 0) + COALESCE(length(e.output), 0)`,
  keyOf: (row) => `${row.id ?? row.process}:${row.sequence}`,
  judge(row, tools) {
    if (row.id === null) return "Its process is missing.";
    if (row.sequence > (row.last ?? 0)) return "It comes after the last event of its process.";
    eventOf({ ...row, id: row.id });
    return faultOfContent(row, tools);
  },
  *partners(found) {
    const followers = yield* rows<{ readonly key: number }>(sql`
      SELECT e.key FROM holdfast_process_event e
        JOIN holdfast_process_event b ON b.process = e.process AND b.sequence = e.sequence - 1
      WHERE e.key IN ${integersOf(found.map(({ key }) => key))}`);
    const follows = new Set(followers.map(({ key }) => key));
    const results = yield* resultHashesAt(
      found.flatMap(({ execution, execution_version: version }) =>
        execution === null || version === null ? [] : { execution, version },
      ),
    );
    return (row) => {
      // Pruning removes events from the first on.
      if (row.pruned_at !== null) return undefined;
      if (row.sequence > 0 && !follows.has(row.key)) return "The event before it is missing.";
      const { execution, execution_version: version } = row;
      if (execution === null || version === null) return undefined;
      return results.get(`${execution}#${version}`) === row.hash
        ? undefined
        : "The result in the log of its run is missing or differs.";
    };
  },
});

function faultOfContent(
  row: OwnedEvent,
  { decode, agrees, bytes }: CheckTools,
): string | undefined {
  const { output: text, output_checksum: checksum } = row;
  if (text !== null && !isUnchanged({ bytes }, { text, checksum: checksum ?? "" }))
    return "Its output does not match its hash.";
  if (text !== null && !isOutput(decode(text))) return "It ended the process without output.";
  if (row.payload === null) return undefined;
  return isHashOfEvent({ agrees }, row, decode(row.payload))
    ? undefined
    : "Its payload does not match its hash.";
}

interface GrantRow {
  readonly process: number;
  readonly session: string;
  readonly generation: number;
  readonly frame: string;
}

const grant = tableCheck<GrantRow>({
  table: "holdfast_process_grant",
  select: sql`SELECT t.process, t.session, t.generation, t.frame, t.kind, t.label, t.granted_at`,
  from: sql`FROM holdfast_process_grant t`,
  order: sql`t.process, t.session, t.generation, t.frame`,
  behind: (last) => sql`(t.process, t.session, t.generation, t.frame) >
    (${last.process}, ${last.session}, ${last.generation}, ${last.frame})`,
  keyOf: (row) => `${row.process}/${row.session}/${row.generation}/${row.frame}`,
  *partners(found) {
    const processes = yield* processesOfKeys(distinct(found, (row) => row.process));
    const sessions = yield* generationsThere(distinct(found, ({ session }) => session));
    return (row) => {
      if (!processes.has(row.process)) return "Its process is missing.";
      return sessions.has(`${row.session}/${row.generation}`)
        ? undefined
        : "The session that has it is missing.";
    };
  },
});

interface OwnedLease extends LeaseRow {
  readonly key: number;
}

const lease = tableCheck<OwnedLease>({
  table: "holdfast_process_lease",
  select: sql`
    SELECT t.process AS key, t.fence, t.given_back, t.owner, t.incarnation, t.owner_process AS process, t.token,
      t.claimed_at, t.renewed_at, t.expires_at`,
  from: sql`FROM holdfast_process_lease t`,
  order: sql`t.process`,
  behind: ({ key }) => sql`t.process > ${key}`,
  keyOf: ({ key }) => String(key),
  judge: (row) =>
    leaseStateOf(row) === undefined ? "It has a token but lacks other parts." : undefined,
  *partners(found) {
    const processes = yield* processesOfKeys(found.map(({ key }) => key));
    return (row) => (processes.has(row.key) ? undefined : "Its process is missing.");
  },
});

interface EndRow {
  readonly session: number;
  readonly report: string;
}

const sessionEnd = tableCheck<EndRow>({
  table: "holdfast_process_session_end",
  select: sql`SELECT t.session, t.report`,
  from: sql`FROM holdfast_process_session_end t`,
  order: sql`t.session`,
  behind: ({ session }) => sql`t.session > ${session}`,
  weight: sql`length(t.report)`,
  keyOf: ({ session }) => String(session),
  judge: (row) => (isReport(JSON.parse(row.report)) ? undefined : "It is not a valid report."),
  partners: (found) => inSessions(found),
});

export const processChecks: readonly TableCheck[] = [process, event, grant, lease, sessionEnd];
