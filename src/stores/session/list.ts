import type { Encoded } from "../../model/encoded.ts";
import type { SessionId } from "../../model/session-id.ts";
import type { SessionHandle, SessionMeta } from "../../model/session.ts";
import { rows, plainOperation } from "../../sql/operation.ts";
import type { Operation } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { relationOf } from "./create.ts";

export interface ListSessions {
  readonly parent: SessionId | undefined;
  /** The last session of the page before. */
  readonly before: SessionPlace | undefined;
  readonly limit: number;
}

/** A place in the order of last activity. */
export interface SessionPlace {
  readonly activeAt: number;
  readonly id: string;
}

/** What a list shows of a session. All of it is in columns, none read from the graph. */
export interface SessionSummary<Value = string> extends SessionHandle {
  readonly meta: SessionMeta;
  readonly createdAt: number;
  readonly activeAt: number;
  readonly revision: number;
  readonly nodeCount: number;
  readonly userMessageCount: number;
  /** The text of the first message of a user; empty when there is none. */
  readonly firstUserMessage: Value;
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
}

/** Sorts after every id: no id begins with it. */
const afterAllIds = "\u{10ffff}";

/** Living sessions, the latest active first. One more than the limit says that there are more. */
export const listSessions: Operation<
  ListSessions,
  readonly SessionSummary<Encoded | null>[]
> = plainOperation("listSessions", {
  key: (input: ListSessions) => input.parent ?? "",
  *one({ parent, before, limit }) {
    const { activeAt, id } = before ?? {
      activeAt: Number.MAX_SAFE_INTEGER,
      id: afterAllIds,
    };
    const filter =
      parent === undefined
        ? sql`deleted_at IS NULL`
        : sql`deleted_at IS NULL AND parent IS NOT NULL AND parent = ${parent}`;
    const found = yield* rows<SummaryRow>(sql`
      SELECT id, generation, name, model, cwd, parent, caused_by, created_at, active_at, revision,
        node_count, user_message_count, first_user_message
      FROM holdfast_session
      WHERE ${filter} AND (active_at, id) < (${activeAt}, ${id})
      ORDER BY active_at DESC, id DESC LIMIT ${limit + 1}`);
    return found.map(summaryOf);
  },
});

function summaryOf(found: SummaryRow): SessionSummary<Encoded | null> {
  const { id, generation, name, model, cwd } = found;
  return {
    id,
    generation,
    meta: { name, model, cwd, relation: relationOf(found) },
    createdAt: found.created_at,
    activeAt: found.active_at,
    revision: found.revision,
    nodeCount: found.node_count,
    userMessageCount: found.user_message_count,
    firstUserMessage: found.first_user_message,
  };
}
