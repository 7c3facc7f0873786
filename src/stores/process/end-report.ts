import { lockRow } from "../../sql/dialect.ts";
import { row, run } from "../../sql/operation.ts";
import type { Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";

/** What the deletion of a session meant for processes. */
export interface SessionProcesses {
  /** Handles that were taken back. */
  readonly revoked: number;
  /** Wakes that were still queued and are gone. */
  readonly wakes: number;
  /** Processes that run on and that no session can address any more. The first 10,000 by id. */
  readonly orphaned: readonly string[];
  /** Processes that run on and that others can address. The first 10,000 by id. */
  readonly preserved: readonly string[];
  /** True when there were more of either than were kept. */
  readonly hasMore: boolean;
}

export const noProcesses: SessionProcesses = {
  revoked: 0,
  wakes: 0,
  orphaned: [],
  preserved: [],
  hasMore: false,
};

/** Ids of each kind that are kept: a row of a megabyte at most, with ids of usual length. */
const idsMax = 10_000;

/** Two reports as one; ids in order and once. */
export function addedProcesses(
  a: SessionProcesses,
  b: SessionProcesses,
): SessionProcesses {
  return summedProcesses([a, b]);
}

/** The same of any number: ids are put in order once. */
export function summedProcesses(
  parts: readonly SessionProcesses[],
): SessionProcesses {
  const orphaned = inOrder(parts.flatMap((part) => part.orphaned));
  const preserved = inOrder(parts.flatMap((part) => part.preserved));
  const isCut = orphaned.length > idsMax || preserved.length > idsMax;
  return {
    revoked: parts.reduce((sum, { revoked }) => sum + revoked, 0),
    wakes: parts.reduce((sum, { wakes }) => sum + wakes, 0),
    orphaned: orphaned.slice(0, idsMax),
    preserved: preserved.slice(0, idsMax),
    hasMore: isCut || parts.some(({ hasMore }) => hasMore),
  };
}

function inOrder(ids: readonly string[]): readonly string[] {
  return [...new Set(ids)].toSorted();
}

/** Adds to what is known about the end of a session, in the transaction that brings it about; answers all of it. */
export function* reportedEnd(
  session: number,
  added: SessionProcesses,
): Tx<SessionProcesses> {
  const isNew = added.revoked > 0 || added.wakes > 0;
  if (isNew)
    yield* run(sql`
      INSERT INTO holdfast_process_session_end (session, report)
      VALUES (${session}, ${JSON.stringify(noProcesses)}) ON CONFLICT (session) DO NOTHING`);
  // Locked after all else, since two may delete one session at once.
  const found = yield* row<{ readonly report: string }>(sql`
    SELECT report FROM holdfast_process_session_end WHERE session = ${session} ${lockRow}`);
  if (found === undefined) return added;
  const all = addedProcesses(readReport(found.report), added);
  if (isNew)
    yield* run(sql`
      UPDATE holdfast_process_session_end SET report = ${JSON.stringify(all)} WHERE session = ${session}`);
  return all;
}

/** One that cannot be read counts as none: it must not hold up a deletion. */
function readReport(text: string): SessionProcesses {
  try {
    const value: unknown = JSON.parse(text);
    if (isReport(value)) return value;
  } catch {
    // Said below.
  }
  return noProcesses;
}

/** Whether a stored report is one. */
export function isReport(value: unknown): value is SessionProcesses {
  if (typeof value !== "object" || value === null) return false;
  const { revoked, wakes, orphaned, preserved, hasMore } =
    value as Partial<SessionProcesses>;
  return (
    typeof hasMore === "boolean" &&
    Number.isSafeInteger(revoked) &&
    Number.isSafeInteger(wakes) &&
    [orphaned, preserved].every(
      (ids: unknown) =>
        Array.isArray(ids) && ids.every((id) => typeof id === "string"),
    )
  );
}
