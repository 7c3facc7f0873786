import { coreTypes } from "../../model/process/event-type.ts";
import type { ProcessId } from "../../model/ids/process-id.ts";
import { lockRow } from "../../sql/dialect.ts";
import { plainOperation, row, rows, run, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { isDamage } from "../damage.ts";
import { removeWakes } from "../queue/batch-row.ts";
import { sessionByKey, type SessionRoot } from "../session-row.ts";
import { appendToProcess } from "./event-row.ts";
import { lockedProcessByKey } from "./process-row.ts";

/** The effects of a session's deletion on processes. */
export interface SessionProcesses {
  /** Revoked handles. */
  readonly revoked: number;
  /** Queued wakes that were removed. */
  readonly wakes: number;
  /**
   * Processes that still run and that no session can address any longer. The first 10,000 by id.
   */
  readonly orphaned: readonly string[];
  /** Processes that still run and that other sessions can address. The first 10,000 by id. */
  readonly preserved: readonly string[];
  /** True when either list was cut. */
  readonly hasMore: boolean;
}

export const noProcesses: SessionProcesses = {
  revoked: 0,
  wakes: 0,
  orphaned: [],
  preserved: [],
  hasMore: false,
};

/**
 * The largest number of ids of each kind in a report: a row of a megabyte at most, with ids of
 * usual length.
 */
const idsMax = 10_000;

/** Merges two reports, with distinct ids in order. */
export function addedProcesses(a: SessionProcesses, b: SessionProcesses): SessionProcesses {
  return summedProcesses([a, b]);
}

/** Merges any number of reports, and sorts the ids once. */
function summedProcesses(parts: readonly SessionProcesses[]): SessionProcesses {
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

/**
 * Adds to the report on the end of a session, in the transaction that ends it. Returns the whole
 * report.
 */
function* addToReport(session: number, added: SessionProcesses): Tx<SessionProcesses> {
  const isNew = added.revoked > 0 || added.wakes > 0;
  if (isNew)
    yield* run(sql`
      INSERT INTO holdfast_process_session_end (session, report)
      VALUES (${session}, ${JSON.stringify(noProcesses)}) ON CONFLICT (session) DO NOTHING`);
  // Locked last, since two calls may delete one session at once.
  const found = yield* row<{ readonly report: string }>(sql`
    SELECT report FROM holdfast_process_session_end WHERE session = ${session} ${lockRow}`);
  if (found === undefined) return added;
  const all = addedProcesses(readReport(found.report), added);
  if (isNew)
    yield* run(sql`
      UPDATE holdfast_process_session_end SET report = ${JSON.stringify(all)} WHERE session = ${session}`);
  return all;
}

/** An unreadable report counts as none: it must not block a deletion. */
function readReport(text: string): SessionProcesses {
  try {
    const value: unknown = JSON.parse(text);
    if (isReport(value)) return value;
  } catch {
    // Handled below.
  }
  return noProcesses;
}

/** Tests whether a stored report is valid. */
export function isReport(value: unknown): value is SessionProcesses {
  if (typeof value !== "object" || value === null) return false;
  const { revoked, wakes, orphaned, preserved, hasMore } = value as Partial<SessionProcesses>;
  return (
    typeof hasMore === "boolean" &&
    Number.isSafeInteger(revoked) &&
    Number.isSafeInteger(wakes) &&
    [orphaned, preserved].every(
      (ids: unknown) => Array.isArray(ids) && ids.every((id) => typeof id === "string"),
    )
  );
}

interface ForgetProcesses {
  /** The key of a deleted session. */
  readonly session: number;
  readonly at: number;
  readonly rowsMax: number;
}

export interface ForgottenProcesses {
  /** The totals of this and all earlier slices, in any process. */
  readonly report: SessionProcesses;
  readonly isDone: boolean;
}

/**
 * Removes the handles of a deleted session, its wakes, and itself as a wake target, about `rowsMax`
 * rows at most. Cancels nothing.
 */
export const forgetProcesses = plainOperation("forgetProcesses", {
  key: (input) => String(input.session),
  *one({ session, at, rowsMax }: ForgetProcesses): Tx<ForgottenProcesses> {
    const root = yield* sessionByKey(session);
    if (root === undefined) return { report: noProcesses, isDone: true };
    const slice = yield* forgetProcessesOf(root, at, rowsMax);
    return { ...slice, report: yield* addToReport(session, slice.report) };
  },
});

/** Does the same for a session whose row is known. */
function* forgetProcessesOf(
  session: SessionRoot,
  at: number,
  rowsMax: number,
): Tx<ForgottenProcesses> {
  const held = yield* heldProcesses(session, rowsMax);
  const parts: SessionProcesses[] = [];
  for (const process of held) parts.push(yield* revokeAll(session, process));
  const report = summedProcesses(parts);
  // Each pass has its own transaction. Both lock processes in the order of their keys, and the
  // second pass would start that order again.
  if (held.length > 0) return { report, isDone: false };
  const aimed = yield* rows<{ readonly key: number }>(sql`
    SELECT key FROM holdfast_process
    WHERE wake_session = ${session.id} AND wake_generation = ${session.generation}
    ORDER BY key LIMIT ${rowsMax}`);
  for (const { key } of aimed) yield* clearTarget(session, key, at);
  if (aimed.length > 0) return { report, isDone: false };
  const wakes = yield* removeWakes(session.key, rowsMax);
  return {
    report: addedProcesses(report, { ...noProcesses, wakes }),
    isDone: wakes < rowsMax,
  };
}

/**
 * Processes that a session has handles of, in the common order of locks. They are found by frames,
 * as the index is.
 */
export function* heldProcesses(
  { id, generation }: Pick<SessionRoot, "id" | "generation">,
  rowsMax: number,
): Tx<readonly number[]> {
  const found = yield* rows<{ readonly process: number }>(sql`
    SELECT process FROM holdfast_process_grant
    WHERE session = ${id} AND generation = ${generation}
    ORDER BY frame, process LIMIT ${rowsMax}`);
  const processes = new Set(found.map(({ process }) => process));
  return [...processes].toSorted((a, b) => a - b);
}

function* revokeAll({ id, generation }: SessionRoot, process: number): Tx<SessionProcesses> {
  // Reads only the needed part of the row, so that a damaged one blocks nothing.
  const root = yield* row<{
    readonly id: ProcessId;
    readonly status: string;
  }>(sql`
    SELECT id, status FROM holdfast_process WHERE key = ${process} ${lockRow}`);
  const revoked = yield* run(sql`
    DELETE FROM holdfast_process_grant
    WHERE process = ${process} AND session = ${id} AND generation = ${generation}`);
  if (root?.status !== "running" || revoked === 0) return { ...noProcesses, revoked };
  const left = yield* row(sql`
    SELECT session FROM holdfast_process_grant WHERE process = ${process} LIMIT 1`);
  return left === undefined
    ? { ...noProcesses, revoked, orphaned: [root.id] }
    : { ...noProcesses, revoked, preserved: [root.id] };
}

function* clearTarget({ id, generation }: SessionRoot, process: number, at: number): Tx<void> {
  try {
    const root = yield* lockedProcessByKey(process);
    const target = root?.state.wakeTarget;
    if (root === undefined || target?.session !== id) return;
    if (target.generation !== generation) return;
    const type = coreTypes.wakeTargetCleared;
    yield* appendToProcess(root, { type, at, hash: "" });
  } catch (error) {
    if (!isDamage(error)) throw error;
    yield* run(sql`
      UPDATE holdfast_process SET wake_session = NULL, wake_generation = NULL WHERE key = ${process}`);
  }
}
