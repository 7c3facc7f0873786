import { handleNotGranted, processPruned } from "../../model/process-errors.ts";
import type { ProcessId } from "../../model/process-id.ts";
import type { SessionScope } from "../../model/process.ts";
import { row, run, plainOperation } from "../../sql/operation.ts";
import type { Operation, Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import type { Statement } from "../../sql/statement.ts";
import { lockedProcess, lockedProcesses } from "./process-row.ts";
import type { ProcessRoot } from "./process-row.ts";
import { keptScope, livingScope } from "./scope.ts";
import type { SessionScopeRef } from "./scope.ts";

/** What the holder of a handle calls it. */
export interface ProcessHandleDescriptor {
  readonly kind: string | null;
  readonly label: string | null;
}

export interface GrantHandle {
  readonly process: ProcessId;
  readonly scope: SessionScopeRef;
  readonly descriptor: ProcessHandleDescriptor;
  readonly at: number;
}

/**
 * Lets a session, or one frame of it, address a process. Granting again
 * replaces what the handle is called.
 *
 * @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
 */
export const grantHandle: Operation<GrantHandle, SessionScope> = plainOperation(
  "grantHandle",
  {
    key: (input: GrantHandle) => input.process,
    *one({ process, scope, descriptor, at }) {
      const { key, id, state } = yield* lockedProcess(process);
      if (state.prunedAt !== null) throw processPruned(id);
      const granted = yield* keptScope(scope);
      yield* writeGrant(key, granted, descriptor, at);
      return granted;
    },
  },
);

function* writeGrant(
  process: number,
  { session, generation, frame }: SessionScope,
  { kind, label }: ProcessHandleDescriptor,
  at: number,
): Tx<void> {
  yield* run(sql`
    INSERT INTO holdfast_process_grant (process, session, generation, frame, kind, label, granted_at)
    VALUES (${process}, ${session}, ${generation}, ${frame ?? ""}, ${kind}, ${label}, ${at})
    ON CONFLICT (process, session, generation, frame)
    DO UPDATE SET kind = excluded.kind, label = excluded.label`);
}

export interface RevokeHandle {
  readonly process: ProcessId;
  readonly scope: SessionScopeRef;
}

/** Takes a handle back; false when there was none. @throws HoldfastError `PROCESS_NOT_FOUND`, `SESSION_NOT_FOUND`, `SESSION_DELETED` */
export const revokeHandle: Operation<RevokeHandle, boolean> = plainOperation(
  "revokeHandle",
  {
    key: (input: RevokeHandle) => input.process,
    *one({ process, scope }) {
      const { key } = yield* lockedProcess(process);
      const held = yield* livingScope(scope);
      const removed = yield* run(sql`
        DELETE FROM holdfast_process_grant WHERE ${isGrant(key, held)}`);
      return removed > 0;
    },
  },
);

/** One grant, in a WHERE. */
export function isGrant(
  process: number,
  { session, generation, frame }: SessionScope,
): Statement {
  return sql`process = ${process} AND session = ${session} AND generation = ${generation} AND frame = ${frame ?? ""}`;
}

export interface TransferHandles {
  readonly from: SessionScopeRef;
  readonly to: SessionScopeRef;
  readonly processes: readonly ProcessId[];
}

/**
 * Moves handles from one session to another: all of them, or none. What they
 * are called goes along, and replaces what the target called them. May be
 * repeated.
 *
 * @throws HoldfastError `HANDLE_NOT_GRANTED`, `PROCESS_NOT_FOUND`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
 */
export const transferHandles: Operation<TransferHandles, SessionScope> =
  plainOperation("transferHandles", {
    key: (input: TransferHandles) => input.from.session.id,
    *one({ from, to, processes }) {
      const roots = yield* lockedProcesses(processes);
      const target = yield* keptScope(to);
      const source = yield* livingScope(from);
      for (const root of roots) yield* moveGrant(root, source, target);
      return target;
    },
  });

function* moveGrant(
  { id, key }: ProcessRoot,
  source: SessionScope,
  target: SessionScope,
): Tx<void> {
  const { session, generation, frame } = target;
  const moved = yield* run(sql`
    INSERT INTO holdfast_process_grant (process, session, generation, frame, kind, label, granted_at)
    SELECT process, ${session}, CAST(${generation} AS BIGINT), ${frame ?? ""}, kind, label, granted_at
    FROM holdfast_process_grant WHERE ${isGrant(key, source)}
    ON CONFLICT (process, session, generation, frame)
    DO UPDATE SET kind = excluded.kind, label = excluded.label`);
  if (moved === 0) {
    // Moving again what was moved is moving it once.
    const there = yield* row(sql`
      SELECT process FROM holdfast_process_grant WHERE ${isGrant(key, target)}`);
    if (there === undefined) throw handleNotGranted(id, source.session);
    return;
  }
  const isSame =
    source.session === session &&
    source.generation === generation &&
    source.frame === frame;
  if (!isSame)
    yield* run(sql`
      DELETE FROM holdfast_process_grant WHERE ${isGrant(key, source)}`);
}
