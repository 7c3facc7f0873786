import { HoldfastError } from "../../../model/errors.ts";
import { pointAfter } from "../../../model/session/ancestry.ts";
import type { NodePoint } from "../../../model/session/ancestry.ts";
import { sessionExists } from "../../../model/session/errors.ts";
import type { SessionId } from "../../../model/ids/session-id.ts";
import type { SessionHandle } from "../../../model/session/session.ts";
import { textsOf } from "../../../sql/dialect.ts";
import { row, rows, run, storeOperation, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { committedAttachments } from "../../attachment/attachment-row.ts";
import { putBlobs } from "../../blob/blob-row.ts";
import type { SessionPicture, TurnRow, UsageRow } from "./copy-out.ts";
import type { SessionContext } from "../context.ts";
import { createdAndDeleted, insertSession } from "../create.ts";
import type { NodeRow } from "../node-row.ts";

/**
 * Writes a session that was read from another database. Until it is complete it looks deleted,
 * under a generation below 0 that only the copy knows. The remains of an interrupted copy are
 * removed once it has written nothing for long.
 */

interface BeginCopy {
  readonly id: SessionId;
  /** A random number below 0. */
  readonly generation: number;
  readonly at: number;
  readonly picture: SessionPicture;
}

/** @throws HoldfastError `SESSION_EXISTS` */
export const beginCopy = storeOperation("beginSessionCopy", {
  key: (input) => input.id,
  *one(
    _: SessionContext,
    { id, generation, at, picture }: BeginCopy,
  ): Tx<{ readonly key: number }> {
    yield* refuseLiving(id);
    const { meta, frames, components } = picture;
    const created = yield* insertSession({ id, at, meta, agent: null }, generation);
    if (created === undefined) throw createdAndDeleted(id);
    const { key } = created;
    yield* putBlobs(
      picture.blobs.map((blob) => ({
        ...blob,
        encoding: blob.encoding === "deflate" ? "deflate" : "identity",
        at,
      })),
    );
    for (const frame of frames)
      yield* run(sql`
        INSERT INTO holdfast_session_frame (session, id, ordinal, hash, payload, blob)
        VALUES (${key}, ${frame.id}, ${frame.ordinal}, ${frame.hash}, ${frame.payload}, ${frame.blob})`);
    for (const part of components)
      yield* run(sql`
        INSERT INTO holdfast_session_component (session, name, version, revision, hash, blob)
        VALUES (${key}, ${part.name}, ${part.version}, ${part.revision}, ${part.hash}, ${part.blob})`);
    return { key };
  },
});

function* refuseLiving(id: SessionId): Tx<void> {
  const living = yield* row(sql`
    SELECT key FROM holdfast_session WHERE id = ${id} AND deleted_at IS NULL`);
  if (living !== undefined) throw sessionExists(id);
}

interface IntoCopy<Row> {
  readonly session: number;
  readonly at: number;
  readonly rows: readonly Row[];
}

/** A node whose parent was not copied becomes a root. */
export const nodesIn = storeOperation("sessionNodesIn", {
  key: (input) => String(input.session),
  *one(_: SessionContext, { session, at, rows: nodes }: IntoCopy<NodeRow>): Tx<void> {
    yield* lockCopy(session, at);
    const parents = nodes.flatMap((node) => node.parent_id ?? []);
    const found = yield* rows<NodePoint & { readonly id: string }>(sql`
      SELECT id, key, depth, skip, far, messages FROM holdfast_session_node
      WHERE session = ${session} AND id IN ${textsOf(parents)}`);
    const places = new Map<string, NodePoint>(found.map((node) => [node.id, node]));
    for (const node of nodes) {
      const parent = places.get(node.parent_id ?? "");
      const point = pointAfter(parent, node);
      const inserted = yield* row<{ readonly key: number }>(sql`
        INSERT INTO holdfast_session_node
          (session, id, parent, depth, skip, far, messages, turn, at, kind, role, frame, caused_by, payload,
           checksum)
        VALUES (${session}, ${node.id}, ${parent?.key ?? null}, ${point.depth}, ${point.skip}, ${point.far},
          ${point.messages}, ${node.turn}, ${node.at},
          ${node.kind}, ${node.role}, ${node.frame}, ${node.caused_by}, ${node.payload},
          ${node.checksum})
        RETURNING key`);
      places.set(node.id, { key: inserted?.key ?? 0, ...point });
    }
  },
});

export const usageIn = storeOperation("sessionUsageIn", {
  key: (input) => String(input.session),
  *one(_: SessionContext, { session, at, rows: entries }: IntoCopy<UsageRow>): Tx<void> {
    yield* lockCopy(session, at);
    for (const entry of entries)
      yield* run(sql`
        INSERT INTO holdfast_session_usage
          (session, turn, ordinal, at, source, model,
           input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens)
        VALUES (${session}, ${entry.turn}, ${entry.ordinal}, ${entry.at}, ${entry.source}, ${entry.model},
          ${entry.inputTokens}, ${entry.outputTokens}, ${entry.cacheReadTokens}, ${entry.cacheWriteTokens}, ${entry.reasoningTokens})`);
  },
});

export const turnsIn = storeOperation("sessionTurnsIn", {
  key: (input) => String(input.session),
  *one(_: SessionContext, { session, at, rows: turns }: IntoCopy<TurnRow>): Tx<void> {
    yield* lockCopy(session, at);
    for (const turn of turns)
      yield* run(sql`
        INSERT INTO holdfast_session_turn (session, turn, hash, parts, result, committed_at)
        VALUES (${session}, ${turn.turn}, ${turn.hash}, ${turn.parts}, ${turn.result}, ${turn.committed_at})`);
  },
});

/** Records that the copy is alive, before a long step. */
export const touchCopy = storeOperation("touchSessionCopy", {
  key: (input) => String(input.session),
  *one(_: SessionContext, { session, at }: Omit<IntoCopy<never>, "rows">): Tx<void> {
    yield* lockCopy(session, at);
  },
});

/** Abandons a copy, so that its rows can be removed at once. */
export const giveUpCopy = storeOperation("giveUpSessionCopy", {
  key: (input) => String(input.session),
  *one(_: SessionContext, { session }: { readonly session: number }): Tx<void> {
    yield* run(sql`
      UPDATE holdfast_session SET importing_at = NULL WHERE key = ${session} AND importing_at IS NOT NULL`);
  },
});

interface FindCopy {
  readonly id: SessionId;
  readonly origin: string;
}

/** The live session of an id, if it came from this very origin. */
export const findCopy = storeOperation("findSessionCopy", {
  key: (input) => input.id,
  *one(_: SessionContext, { id, origin }: FindCopy): Tx<SessionHandle | undefined> {
    return yield* row<SessionHandle & object>(sql`
      SELECT id, generation FROM holdfast_session
      WHERE id = ${id} AND deleted_at IS NULL AND origin = ${origin}`);
  },
});

interface EndCopy {
  readonly session: number;
  readonly origin: string;
  readonly id: SessionId;
  readonly at: number;
  readonly picture: SessionPicture;
  /** The number of usage entries and receipts that were written. */
  readonly usage: number;
  readonly turns: number;
  /** The number of attachments that were committed to it. */
  readonly attachments: number;
}

/**
 * Makes a complete copy the live session of its id, as the generation after all existing ones.
 *
 * @throws HoldfastError `SESSION_EXISTS`, `TRANSACTION_CONFLICT`
 */
export const endCopy = storeOperation("endSessionCopy", {
  key: (input) => input.id,
  *one(_: SessionContext, input: EndCopy): Tx<SessionHandle> {
    const { session, id, at, origin, picture } = input;
    yield* lockCopy(session, at);
    yield* assertComplete(input);
    const generation = yield* takenGeneration(id, at, picture);
    const { head, nodeCount } = picture;
    yield* run(sql`
      UPDATE holdfast_session SET generation = ${generation}, deleted_at = NULL, importing_at = NULL, origin = ${origin},
        created_at = ${head.created_at}, active_at = ${head.active_at},
        revision = ${head.revision}, config = ${head.config}, current_frame = ${head.current_frame},
        leaf = (SELECT n.key FROM holdfast_session_node n WHERE n.session = ${session} AND n.id = ${head.leaf_id}),
        node_count = ${nodeCount}, user_message_count = ${head.user_message_count},
        first_user_message = ${head.first_user_message}
      WHERE key = ${session}`);
    return { id, generation };
  },
});

/**
 * The next generation. A row that is inserted and removed in this transaction holds it until the
 * end. A call that creates the id at this moment waits and then finds the copy.
 */
function* takenGeneration(id: SessionId, at: number, { meta }: SessionPicture): Tx<number> {
  yield* refuseLiving(id);
  const taken = yield* insertSession({ id, at, meta, agent: null });
  if (taken === undefined) {
    yield* refuseLiving(id);
    throw createdAndDeleted(id);
  }
  yield* run(sql`DELETE FROM holdfast_session WHERE key = ${taken.key}`);
  return taken.generation;
}

function* assertComplete(end: EndCopy): Tx<void> {
  const { session, picture, usage, turns } = end;
  const counted = yield* row<{
    nodes: number;
    usage: number;
    components: number;
    frames: number;
    turns: number;
  }>(sql`
    SELECT (SELECT COUNT(*) FROM holdfast_session_node WHERE session = ${session}) AS nodes,
      (SELECT COUNT(*) FROM holdfast_session_usage WHERE session = ${session}) AS usage,
      (SELECT COUNT(*) FROM holdfast_session_component WHERE session = ${session}) AS components,
      (SELECT COUNT(*) FROM holdfast_session_frame WHERE session = ${session}) AS frames,
      (SELECT COUNT(*) FROM holdfast_session_turn WHERE session = ${session}) AS turns`);
  const isComplete =
    counted?.nodes === picture.nodeCount &&
    counted.usage === usage &&
    counted.components === picture.components.length &&
    counted.frames === picture.frames.length &&
    counted.turns === turns &&
    (yield* committedAttachments(session)) === end.attachments;
  if (!isComplete) throw copyDisturbed();
}

function* lockCopy(session: number, at: number): Tx<void> {
  const touched = yield* run(sql`
    UPDATE holdfast_session SET importing_at = ${at} WHERE key = ${session} AND importing_at IS NOT NULL`);
  if (touched === 0) throw copyDisturbed();
}

/**
 * The error when nodes of the source, or parts of the unfinished copy, were removed during the
 * copy.
 */
export function copyDisturbed(): HoldfastError {
  return new HoldfastError(
    "TRANSACTION_CONFLICT",
    "The session changed during the copy in a way that a copy cannot follow: nodes or attachments were removed, or it was deleted. None of the copy remains. Retry it.",
  );
}
