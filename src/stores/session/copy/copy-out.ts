import type { StoredBlob } from "../../../model/blob.ts";
import type { Encoded } from "../../../model/values/encoded.ts";
import type { SessionHandle, SessionMeta, UsageEntry } from "../../../model/session/session.ts";
import { keysOf } from "../../../sql/dialect.ts";
import { row, rows, storeOperation, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import type { SessionContext } from "../context.ts";
import { metaOf } from "../create.ts";
import { graphPage } from "../graph/graph.ts";
import type { GraphPage } from "../graph/graph.ts";
import { leafOf, livingHead } from "../head-row.ts";
import type { SessionHeadRow } from "../head-row.ts";
import { lastUsage } from "../read/usage.ts";
import type { SessionRef } from "../../session-row.ts";
import {
  blobsOf,
  componentRows,
  frameRows,
  type ComponentRow,
  type FrameRow,
} from "../state-row.ts";

/** Reads a session, to be written to another database. */

/** All mutable state as of one moment, and the end of the append-only rest at that moment. */
export interface SessionPicture {
  readonly head: SessionHeadRow;
  readonly meta: SessionMeta;
  readonly frames: readonly FrameRow[];
  readonly components: readonly ComponentRow[];
  readonly blobs: readonly StoredBlob[];
  /** The hash of the turn that its leaf belongs to. */
  readonly leafTurn: string | null;
  /** The keys of the last node and usage entry, and the number of shown nodes. */
  readonly nodesUntil: number;
  readonly nodeCount: number;
  readonly usageUntil: number;
}

/** @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED` */
export const pictureSession = storeOperation("pictureSession", {
  key: (input) => input.id,
  *one(_: SessionContext, ref: SessionRef): Tx<SessionPicture> {
    const head = yield* livingHead(ref);
    leafOf(head);
    const { key, fork_node: forkNode } = head;
    const { createdAt: _createdAt, ...meta } = yield* metaOf(ref);
    const own = yield* row<{ readonly key: number }>(sql`
      SELECT key FROM holdfast_session_node WHERE ${keysOf(key, 0)} ORDER BY session DESC, key DESC LIMIT 1`);
    const leafTurn = yield* row<{ readonly hash: string }>(sql`
      SELECT t.hash FROM holdfast_session_node n JOIN holdfast_session_turn t ON t.session = n.session AND t.turn = n.turn
      WHERE n.key = ${head.leaf ?? 0}`);
    const frames = yield* frameRows(key);
    const components = yield* componentRows(key);
    const blobs = yield* blobsOf([...frames, ...components]);
    return {
      head,
      meta,
      frames,
      components,
      blobs: [...blobs.values()],
      leafTurn: leafTurn?.hash ?? null,
      nodesUntil: Math.max(own?.key ?? 0, forkNode ?? 0),
      nodeCount: head.node_count,
      usageUntil: yield* lastUsage(key),
    };
  },
});

interface CopyPage<After> {
  readonly session: SessionRef;
  readonly after: After;
  readonly limit: number;
}

interface BoundedPage extends CopyPage<number> {
  readonly until: number;
}

/** The nodes of a picture, as far as they are still shown. */
export const nodesOut = storeOperation("sessionNodesOut", {
  key: (input) => input.session.id,
  *one(_: SessionContext, { session, after, limit, until }: BoundedPage): Tx<GraphPage> {
    return yield* graphPage(yield* livingHead(session), after, limit, until);
  },
});

export interface UsageRow extends UsageEntry {
  readonly key: number;
  readonly turn: string;
  readonly ordinal: number;
  readonly at: number;
}

export const usageOut = storeOperation("sessionUsageOut", {
  key: (input) => input.session.id,
  *one(_: SessionContext, { session, after, limit, until }: BoundedPage): Tx<readonly UsageRow[]> {
    const { key } = yield* livingHead(session);
    return yield* rows<UsageRow>(sql`
      SELECT key, turn, ordinal, at, source, model, input_tokens AS "inputTokens", output_tokens AS "outputTokens",
        cache_read_tokens AS "cacheReadTokens", cache_write_tokens AS "cacheWriteTokens",
        reasoning_tokens AS "reasoningTokens"
      FROM holdfast_session_usage
      WHERE ${keysOf(key, after, until)} ORDER BY session, key LIMIT ${limit}`);
  },
});

export interface TurnRow {
  readonly turn: string;
  readonly hash: string;
  readonly parts: Encoded;
  readonly result: string;
  readonly committed_at: number;
}

/** Receipts by the id of their turn, later ones included. */
export const turnsOut = storeOperation("sessionTurnsOut", {
  key: (input) => input.session.id,
  *one(_: SessionContext, { session, after, limit }: CopyPage<string>): Tx<readonly TurnRow[]> {
    const { key } = yield* livingHead(session);
    return yield* rows<TurnRow>(sql`
      SELECT turn, hash, parts, result, committed_at FROM holdfast_session_turn
      WHERE session = ${key} AND turn > ${after} ORDER BY turn LIMIT ${limit}`);
  },
});

/** The live sessions of a database. An export has exactly one. */
export const exportedSessions = storeOperation("exportedSessions", {
  key: () => "",
  *one(_: SessionContext, { limit }: { readonly limit: number }): Tx<readonly SessionHandle[]> {
    return yield* rows<SessionHandle & object>(sql`
      SELECT id, generation FROM holdfast_session WHERE deleted_at IS NULL ORDER BY key LIMIT ${limit}`);
  },
});
