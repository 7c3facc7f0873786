import type { ProcessId } from "../../model/process-id.ts";
import type { ProcessSummary, SessionScope } from "../../model/process.ts";
import type { SessionId } from "../../model/session-id.ts";
import { row, rows, plainOperation } from "../../sql/operation.ts";
import type { Operation, Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { sift } from "../damage.ts";
import type { Damaged } from "../damage.ts";
import { isGrant } from "./grant.ts";
import type { ProcessHandleDescriptor } from "./grant.ts";
import { foundProcess, summaryColumns, summaryOf } from "./process-row.ts";
import type { SummaryRow } from "./process-row.ts";
import { livingScope } from "./scope.ts";
import type { SessionScopeRef } from "./scope.ts";

/** Who holds a handle, and what they call it. */
export interface ProcessGrant extends SessionScope, ProcessHandleDescriptor {
  readonly grantedAt: number;
}

interface GrantRow {
  readonly session: SessionId;
  readonly generation: number;
  readonly frame: string;
  readonly grant_kind: string | null;
  readonly grant_label: string | null;
  readonly granted_at: number;
}

const grantColumns = sql`
  g.session, g.generation, g.frame, g.kind AS grant_kind, g.label AS grant_label, g.granted_at`;

function grantOf(found: GrantRow): ProcessGrant {
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

export interface ReadGrant {
  readonly process: ProcessId;
  readonly scope: SessionScopeRef;
}

/** Whether a session, or one frame of it, has a handle. @throws HoldfastError `PROCESS_NOT_FOUND`, `SESSION_NOT_FOUND`, `SESSION_DELETED` */
export const readGrant: Operation<ReadGrant, boolean> = plainOperation(
  "readGrant",
  {
    key: (input: ReadGrant) => input.process,
    *one({ process, scope }) {
      const { key } = yield* foundProcess(process);
      const held = yield* livingScope(scope);
      const found = yield* row(sql`
      SELECT process FROM holdfast_process_grant WHERE ${isGrant(key, held)}`);
      return found !== undefined;
    },
  },
);

/** A place among the grants of a process. */
export interface GrantPlace {
  readonly session: string;
  readonly generation: number;
  /** Empty for none. */
  readonly frame: string;
}

export interface ListGrants {
  readonly process: ProcessId;
  readonly after: GrantPlace | undefined;
  readonly limit: number;
}

export interface StoredGrantPage {
  readonly items: readonly ProcessGrant[];
  /** Where to go on; undefined at the end. */
  readonly next: GrantPlace | undefined;
}

/** Who has handles of a process, by session and frame. @throws HoldfastError `PROCESS_NOT_FOUND` */
export const listGrants: Operation<ListGrants, StoredGrantPage> =
  plainOperation("listGrants", {
    key: (input: ListGrants) => input.process,
    *one({ process, after, limit }) {
      const { key } = yield* foundProcess(process);
      const found = yield* grantRows(key, after, limit + 1);
      const page = found.slice(0, limit);
      return {
        items: page.map(grantOf),
        next: found.length > limit ? page.at(-1) : undefined,
      };
    },
  });

function* grantRows(
  process: number,
  after: GrantPlace | undefined,
  rowsMax: number,
): Tx<readonly GrantRow[]> {
  const behind =
    after === undefined
      ? sql``
      : sql`AND (g.session, g.generation, g.frame) > (${after.session}, ${after.generation}, ${after.frame})`;
  return yield* rows<GrantRow>(sql`
    SELECT ${grantColumns} FROM holdfast_process_grant g
    WHERE g.process = ${process} ${behind}
    ORDER BY g.session, g.generation, g.frame LIMIT ${rowsMax}`);
}

export interface ListHandles {
  readonly scope: SessionScopeRef;
  /** Only of processes that run. */
  readonly isLive: boolean;
  /** The key of the last process of the page before; 0 for the first page. */
  readonly after: number;
  readonly limit: number;
}

/** A handle with the process it leads to. */
export interface ProcessHandle {
  readonly grant: ProcessGrant;
  readonly process: ProcessSummary;
}

export interface StoredHandlePage {
  readonly items: readonly ProcessHandle[];
  readonly damaged: readonly Damaged[];
  /** The key to go on after; undefined at the end. */
  readonly next: number | undefined;
}

/** The handles of a session, or of one frame of it, in the order in which their processes were registered. @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED` */
export const listHandles: Operation<ListHandles, StoredHandlePage> =
  plainOperation("listHandles", {
    key: (input: ListHandles) => input.scope.session.id,
    *one({ scope, isLive, after, limit }) {
      const held = yield* livingScope(scope);
      const found = yield* handleRows(held, { isLive, after }, limit + 1);
      const page = found.slice(0, limit);
      return {
        ...sift(
          "holdfast_process",
          page,
          ({ id }) => id,
          (item) => ({ grant: grantOf(item), process: summaryOf(item) }),
        ),
        next: found.length > limit ? page.at(-1)?.key : undefined,
      };
    },
  });

export function* handleRows(
  { session, generation, frame }: SessionScope,
  { isLive, after }: Pick<ListHandles, "isLive" | "after">,
  rowsMax: number,
): Tx<readonly (SummaryRow & GrantRow)[]> {
  const live = isLive ? sql`AND p.status = 'running'` : sql``;
  return yield* rows<SummaryRow & GrantRow>(sql`
    SELECT ${summaryColumns}, ${grantColumns}
    FROM holdfast_process_grant g JOIN holdfast_process p ON p.key = g.process
    WHERE g.session = ${session} AND g.generation = ${generation} AND g.frame = ${frame ?? ""}
      AND g.process > ${after} ${live}
    ORDER BY g.process LIMIT ${rowsMax}`);
}
