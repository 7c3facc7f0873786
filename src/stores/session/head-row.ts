import type { Encoded } from "../../model/values/encoded.ts";
import { corruptRow } from "../../model/corrupt-row.ts";
import { row } from "../../sql/operation.ts";
import type { Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import type { NamedPoint } from "./node-row.ts";
import { foundSession, lockedSession } from "../session-row.ts";
import type { SessionRef, SessionRoot } from "../session-row.ts";

/** The root row with everything that a commit or a read needs. */
export interface SessionHeadRow extends SessionRoot {
  readonly created_at: number;
  readonly active_at: number;
  readonly forked_from: number | null;
  /** The newest node shared with the session that it was forked from. */
  readonly fork_node: number | null;
  /** The oldest shared node. */
  readonly fork_top: number | null;
  /** Always a node that the session shows: hiding it moves the leaf. */
  readonly leaf: number | null;
  readonly leaf_id: string | null;
  readonly leaf_depth: number | null;
  readonly leaf_skip: number | null;
  readonly leaf_far: number | null;
  readonly leaf_messages: number | null;
  readonly config: Encoded | null;
  readonly current_frame: string | null;
  readonly node_count: number;
  readonly user_message_count: number;
  readonly first_user_message: Encoded | null;
}

const headRow = sql`
  SELECT s.key, s.id, s.generation, s.revision, s.agent, s.turns, s.open_turn, s.turn_due_at, s.turn_batch, s.stop_turn,
     s.created_at, s.active_at, s.forked_from, s.fork_node, s.fork_top,
    s.leaf, n.id AS leaf_id, n.depth AS leaf_depth, n.skip AS leaf_skip, n.far AS leaf_far,
    n.messages AS leaf_messages, s.config, s.current_frame, s.node_count, s.user_message_count, s.first_user_message
  FROM holdfast_session s LEFT JOIN holdfast_session_node n ON n.key = s.leaf`;

/**
 * Locks like `lockedSession` and reads the rest of the row. A separate statement reads it: the
 * statement that waited for the lock would not see nodes that were appended during the wait.
 */
export function* lockedHead(ref: SessionRef): Tx<SessionHeadRow> {
  const { key } = yield* lockedSession(ref);
  return foundSession(ref, yield* row<SessionHeadRow>(sql`${headRow} WHERE s.key = ${key}`));
}

/** Reads like `livingSession`, with the rest of the row. */
export function* livingHead(ref: SessionRef): Tx<SessionHeadRow> {
  return foundSession(
    ref,
    yield* row<SessionHeadRow>(sql`
      ${headRow} WHERE s.id = ${ref.id} AND s.deleted_at IS NULL`),
  );
}

/**
 * The leaf of the conversation; undefined for an empty one.
 * @throws HoldfastError `CORRUPT_ROW` for a missing node
 */
export function leafOf(head: SessionHeadRow): NamedPoint | undefined {
  const { leaf, leaf_id: id, leaf_depth: depth } = head;
  if (leaf === null) return undefined;
  if (id === null || depth === null)
    throw corruptRow("holdfast_session", head.key, `has leaf ${leaf}, which does not exist`);
  const { leaf_skip: skip, leaf_far: far, leaf_messages: messages } = head;
  return { key: leaf, id, depth, skip, far, messages: messages ?? 0 };
}
