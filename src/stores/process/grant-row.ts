import { processPruned } from "../../model/process/errors.ts";
import type { ProcessId } from "../../model/ids/process-id.ts";
import type { ProcessSummary, SessionScope } from "../../model/process/process.ts";
import type { SessionId } from "../../model/ids/session-id.ts";
import { run, type Tx } from "../../sql/operation.ts";
import { sql, type Statement } from "../../sql/statement.ts";
import { keptScope, type ProcessHandleDescriptor, type SessionScopeRef } from "./parts.ts";
import { lockedProcess } from "./process-row.ts";

/** The holder of a handle, and its name for it. */
export interface ProcessGrant extends SessionScope {
  readonly kind: string | null;
  readonly label: string | null;
  readonly grantedAt: number;
}

/** A handle with the process that it leads to. */
export interface ProcessHandle {
  readonly grant: ProcessGrant;
  readonly process: ProcessSummary;
}

export interface GrantRow {
  readonly session: SessionId;
  readonly generation: number;
  readonly frame: string;
  readonly grant_kind: string | null;
  readonly grant_label: string | null;
  readonly granted_at: number;
}

/** The columns of `holdfast_process_grant g`. */
export const grantColumns: Statement = sql`
  g.session, g.generation, g.frame, g.kind AS grant_kind, g.label AS grant_label, g.granted_at`;

export function grantOf(found: GrantRow): ProcessGrant {
  const { session, generation, frame } = found;
  return {
    session,
    generation,
    frame: frame === "" ? null : frame,
    kind: found.grant_kind,
    label: found.grant_label,
    grantedAt: found.granted_at,
  };
}

/** A WHERE condition for one grant. */
export function isGrant(process: number, { session, generation, frame }: SessionScope): Statement {
  return sql`process = ${process} AND session = ${session} AND generation = ${generation} AND frame = ${frame ?? ""}`;
}

export interface GrantHandle {
  readonly process: ProcessId;
  readonly scope: SessionScopeRef;
  readonly descriptor: ProcessHandleDescriptor;
  readonly at: number;
}

/**
 * Grants a session, or one frame of it, a handle to address a process. A repeated grant replaces
 * the handle's label.
 *
 * @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`, `SESSION_NOT_FOUND`,
 *   `SESSION_DELETED`
 */
export function* grant({ process, scope, descriptor: { kind, label }, at }: GrantHandle): Tx<void> {
  const { key, id, state } = yield* lockedProcess(process);
  if (state.prunedAt !== null) throw processPruned(id);
  const { session, generation, frame } = yield* keptScope(scope);
  yield* run(sql`
    INSERT INTO holdfast_process_grant (process, session, generation, frame, kind, label, granted_at)
    VALUES (${key}, ${session}, ${generation}, ${frame ?? ""}, ${kind}, ${label}, ${at})
    ON CONFLICT (process, session, generation, frame)
    DO UPDATE SET kind = excluded.kind, label = excluded.label`);
}
