import { coreTypes } from "../../model/process-event-type.ts";
import type { ProcessId } from "../../model/process-id.ts";
import { lockRow } from "../../sql/dialect.ts";
import { row, rows, run, plainOperation } from "../../sql/operation.ts";
import type { Operation, Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { isDamage } from "../damage.ts";
import { removeWakes } from "../queue/batch-row.ts";
import { sessionByKey } from "../session/session-row.ts";
import type { SessionRoot } from "../session/session-row.ts";
import { appendToProcess } from "./append-to.ts";
import {
  addedProcesses,
  noProcesses,
  reportedEnd,
  summedProcesses,
} from "./end-report.ts";
import type { SessionProcesses } from "./end-report.ts";
import { lockedProcessByKey } from "./process-row.ts";

export interface ForgetProcesses {
  /** The key of a deleted session. */
  readonly session: number;
  readonly at: number;
  readonly rowsMax: number;
}

export interface ForgottenProcesses {
  /** Of this and all slices before, whoever did them. */
  readonly report: SessionProcesses;
  readonly isDone: boolean;
}

/**
 * Takes back the handles of a deleted session, its wakes, and itself as the
 * one to be woken: at most about so many rows. Nothing is cancelled.
 */
export const forgetProcesses: Operation<ForgetProcesses, ForgottenProcesses> =
  plainOperation("forgetProcesses", {
    key: (input: ForgetProcesses) => String(input.session),
    *one({ session, at, rowsMax }) {
      const root = yield* sessionByKey(session);
      if (root === undefined) return { report: noProcesses, isDone: true };
      const slice = yield* forgetProcessesOf(root, at, rowsMax);
      return { ...slice, report: yield* reportedEnd(session, slice.report) };
    },
  });

/** The same for a session whose row is known. */
function* forgetProcessesOf(
  session: SessionRoot,
  at: number,
  rowsMax: number,
): Tx<ForgottenProcesses> {
  const held = yield* heldProcesses(session, rowsMax);
  const parts: SessionProcesses[] = [];
  for (const process of held) parts.push(yield* revokeAll(session, process));
  const report = summedProcesses(parts);
  // A transaction of its own for each pass: both lock processes in the order
  // of their keys, and after one of them that order would begin anew.
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

/** Processes that a session has handles of, in the one order of all who lock several: found by frames, since the index is. */
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

function* revokeAll(
  { id, generation }: SessionRoot,
  process: number,
): Tx<SessionProcesses> {
  // Only what is needed of the row, so that a damaged one holds up nothing.
  const root = yield* row<{
    readonly id: ProcessId;
    readonly status: string;
  }>(sql`
    SELECT id, status FROM holdfast_process WHERE key = ${process} ${lockRow}`);
  const revoked = yield* run(sql`
    DELETE FROM holdfast_process_grant
    WHERE process = ${process} AND session = ${id} AND generation = ${generation}`);
  if (root?.status !== "running" || revoked === 0)
    return { ...noProcesses, revoked };
  const left = yield* row(sql`
    SELECT session FROM holdfast_process_grant WHERE process = ${process} LIMIT 1`);
  return left === undefined
    ? { ...noProcesses, revoked, orphaned: [root.id] }
    : { ...noProcesses, revoked, preserved: [root.id] };
}

function* clearTarget(
  { id, generation }: SessionRoot,
  process: number,
  at: number,
): Tx<void> {
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
