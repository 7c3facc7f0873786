import type { Encoded } from "../../../model/values/encoded.ts";
import type { ExecutionId } from "../../../model/ids/execution-id.ts";
import { parseSessionId, type SessionId } from "../../../model/ids/session-id.ts";
import { parseAgent } from "../../../model/session/agent.ts";
import type { SessionHandle, SessionMeta, SessionTurns } from "../../../model/session/session.ts";
import { textsOf } from "../../../sql/dialect.ts";
import { rows, type Tx } from "../../../sql/operation.ts";
import { sql, type Statement } from "../../../sql/statement.ts";
import { cursorInvalid } from "../../cursor.ts";
import {
  list,
  pageOf,
  slicedFitting,
  type List,
  type PageOptions,
  type Place,
  type Slice,
  type SliceBounds,
} from "../../list.ts";
import { turnsOf } from "../../session-row.ts";
import type { SessionContext } from "../context.ts";
import { relationOf } from "../create.ts";

export interface ListSessionsOptions extends PageOptions {
  /** Only sessions whose turns this agent takes. */
  readonly agent?: string;
  /** Only children of this session. */
  readonly parent?: string;
}

/** A session as lists show it. All of it is in columns; nothing is read from the graph. */
export interface SessionSummary extends SessionHandle, SessionTurns {
  readonly meta: SessionMeta;
  readonly createdAt: number;
  readonly activeAt: number;
  readonly revision: number;
  readonly nodeCount: number;
  readonly userMessageCount: number;
  /** The text of the first message of a user; empty when there is none. */
  readonly firstUserMessage: string;
}

interface SummaryRow {
  readonly id: SessionId;
  readonly generation: number;
  readonly name: string;
  readonly model: string | null;
  readonly cwd: string | null;
  readonly parent: SessionId | null;
  readonly caused_by: string | null;
  readonly created_at: number;
  readonly active_at: number;
  readonly revision: number;
  readonly node_count: number;
  readonly user_message_count: number;
  readonly first_user_message: Encoded | null;
  readonly agent: string | null;
  readonly turns: number;
  readonly open_turn: ExecutionId | null;
  readonly stop_turn: ExecutionId | null;
}

/** The row, without its long texts when they are large. */
interface SizedRow extends SummaryRow {
  readonly bytes: number;
}

interface SessionFilter {
  readonly parent: SessionId | undefined;
  readonly agent: string | undefined;
}

/** Live sessions, most recently active first. */
export const sessionList: List<SessionContext, [options?: ListSessionsOptions], SessionSummary> =
  list("listSessions", {
    table: "holdfast_session",
    given(_: SessionContext, options?: ListSessionsOptions) {
      const { filter, page } = pageOf(options, ["parent", "agent"]);
      const { parent, agent } = filter;
      return {
        filter: {
          parent: parent === undefined ? undefined : parseSessionId(parent),
          agent: agent === undefined ? undefined : parseAgent(agent),
        },
        page,
      };
    },
    slice: sessionSlice,
    keyOf: ({ id }: SummaryRow) => id,
    itemOf: summaryOf,
  });

/** Sorts after every id, since no id begins with it. */
const afterAllIds = "\u{10ffff}";

function* sessionSlice(
  _: SessionContext,
  { parent, agent }: SessionFilter,
  bounds: SliceBounds,
): Tx<Slice<SummaryRow>> {
  const ofAgent = agent === undefined ? sql`1 = 1` : sql`agent IS NOT NULL AND agent = ${agent}`;
  const filter =
    parent === undefined
      ? sql`deleted_at IS NULL AND ${ofAgent}`
      : sql`deleted_at IS NULL AND parent IS NOT NULL AND parent = ${parent} AND ${ofAgent}`;
  return yield* slicedFitting<SizedRow, SummaryRow>(
    bounds,
    ({ active_at: activeAt, id }) => [activeAt, id],
    function* (after, count, smallMax) {
      const { activeAt, id } = placeOf(after);
      return yield* rows<SizedRow>(sql`
        SELECT ${shortColumns}, ${longBytes} AS bytes,
          CASE WHEN ${longBytes} <= ${smallMax} THEN cwd END AS cwd,
          CASE WHEN ${longBytes} <= ${smallMax} THEN caused_by END AS caused_by,
          CASE WHEN ${longBytes} <= ${smallMax} THEN first_user_message END AS first_user_message
        FROM holdfast_session
        WHERE ${filter} AND (active_at, id) < (${activeAt}, ${id})
        ORDER BY active_at DESC, id DESC LIMIT ${count}`);
    },
    function* (large) {
      return yield* rows<SummaryRow>(sql`
        SELECT ${shortColumns}, cwd, caused_by, first_user_message FROM holdfast_session
        WHERE deleted_at IS NULL AND id IN ${textsOf(large.map(({ id }) => id))}
        ORDER BY active_at DESC, id DESC`);
    },
  );
}

const shortColumns: Statement = sql`
  id, generation, name, model, parent, created_at, active_at, revision, node_count, user_message_count,
  agent, turns, open_turn, stop_turn`;

/** Paths, causes and messages may have thousands of bytes each. */
const longBytes: Statement = sql`
  COALESCE(octet_length(cwd), 0) + COALESCE(octet_length(caused_by), 0) + COALESCE(octet_length(first_user_message), 0)`;

function placeOf(after: Place | undefined): {
  readonly activeAt: number;
  readonly id: string;
} {
  const [activeAt, id] = after ?? [Number.MAX_SAFE_INTEGER, afterAllIds];
  if (typeof activeAt !== "number" || typeof id !== "string") throw cursorInvalid("malformed");
  return { activeAt, id };
}

function summaryOf({ decode }: SessionContext, found: SummaryRow): SessionSummary {
  const { id, generation, name, model, cwd } = found;
  const { first_user_message: message } = found;
  return {
    id,
    generation,
    meta: { name, model, cwd, relation: relationOf(found) },
    createdAt: found.created_at,
    activeAt: found.active_at,
    revision: found.revision,
    nodeCount: found.node_count,
    userMessageCount: found.user_message_count,
    firstUserMessage: message === null ? "" : String(decode(message)),
    ...turnsOf(found),
  };
}
