import type { StoredBlob } from "../../../model/blob.ts";
import { corruptRow } from "../../../model/corrupt-row.ts";
import type {
  SessionComponent,
  SessionFrame,
  SessionTurns,
} from "../../../model/session/session.ts";
import { storeOperation, type Tx } from "../../../sql/operation.ts";
import { changedRow, readValue } from "../../damage.ts";
import type { SessionContext } from "../context.ts";
import {
  pathRows,
  shownPath,
  type PathRows,
  type ReadPath,
  type SessionPath,
} from "../graph/graph.ts";
import { leafOf, livingHead, type SessionHeadRow } from "../head-row.ts";
import { turnsOf, type SessionRef } from "../../session-row.ts";
import {
  blobMissing,
  blobsOf,
  componentRows,
  frameRows,
  type ComponentRow,
  type FrameRow,
} from "../state-row.ts";

/** The current state of a session. */
export interface SessionHead extends SessionTurns {
  readonly id: string;
  readonly generation: number;
  readonly revision: number;
  readonly config: unknown;
  readonly frames: readonly SessionFrame[];
  readonly currentFrame: string | null;
  readonly leaf: string | null;
  readonly nodeCount: number;
}

export type SessionComponents = Readonly<Record<string, SessionComponent>>;

/** A session as of one moment. */
export interface LoadedSession {
  readonly head: SessionHead;
  readonly path: SessionPath;
  readonly components: SessionComponents;
}

/** The stored head, with the blobs that it refers to. */
interface StoredHead {
  readonly head: SessionHeadRow;
  readonly frames: readonly FrameRow[];
  readonly blobs: ReadonlyMap<string, StoredBlob>;
}

/**
 * Reads revision, config and frames.
 * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`
 */
export const readHead = storeOperation("readSessionHead", {
  key: (input) => input.id,
  *one(_: SessionContext, ref: SessionRef): Tx<StoredHead> {
    const head = yield* livingHead(ref);
    const frames = yield* frameRows(head.key);
    return { head, frames, blobs: yield* blobsOf(frames) };
  },
});

interface StoredCheckpoint {
  readonly components: readonly ComponentRow[];
  readonly blobs: ReadonlyMap<string, StoredBlob>;
}

/**
 * Reads all parts of the checkpoint.
 * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`
 */
export const readCheckpoint = storeOperation("readCheckpoint", {
  key: (input) => input.id,
  *one(_: SessionContext, ref: SessionRef): Tx<StoredCheckpoint> {
    const { key } = yield* livingHead(ref);
    const components = yield* componentRows(key);
    return { components, blobs: yield* blobsOf(components) };
  },
});

interface StoredSession extends StoredHead {
  readonly path: PathRows;
  readonly components: readonly ComponentRow[];
}

/** Reads head, active path and checkpoint as of one moment. */
export const readSession = storeOperation("readSession", {
  key: (input) => input.session.id,
  *one(_: SessionContext, { session, leaf, limit }: ReadPath): Tx<StoredSession> {
    const head = yield* livingHead(session);
    const path = yield* pathRows(head, leaf, limit);
    const frames = yield* frameRows(head.key);
    const components = yield* componentRows(head.key);
    const blobs = yield* blobsOf([...frames, ...components]);
    return { head, path, frames, components, blobs };
  },
});

export function shownSession(context: SessionContext, found: StoredSession): LoadedSession {
  return {
    head: shownHead(context, found),
    path: shownPath(context, found.path),
    components: shownComponents(context, found),
  };
}

export function shownHead(
  context: SessionContext,
  { head, frames, blobs }: StoredHead,
): SessionHead {
  const { config } = head;
  return {
    id: head.id,
    generation: head.generation,
    revision: head.revision,
    config:
      config === null
        ? null
        : readValue("holdfast_session", head.key, () => context.decode(config)),
    frames: frames.map((frame) => frameOf(context, head.key, frame, blobs)),
    currentFrame: head.current_frame,
    leaf: leafOf(head)?.id ?? null,
    nodeCount: head.node_count,
    ...turnsOf(head),
  };
}

function frameOf(
  context: SessionContext,
  session: number,
  { id, payload, hash, blob }: FrameRow,
  blobs: ReadonlyMap<string, StoredBlob>,
): SessionFrame {
  const table = "holdfast_session_frame";
  const key = `${session}/${id}`;
  const read = readValue(table, key, () => context.decode(payload));
  if (!context.codec.agrees("session-frame", 1, read, hash)) throw changedRow(table, key);
  if (!isFramePayload(read)) throw corruptRow(table, key, "has no reason and no data");
  return {
    id,
    reason: read.reason,
    data: read.data,
    state: blob === null ? null : valueOf(context, blobs.get(blob), table, key),
  };
}

function isFramePayload(
  value: unknown,
): value is { readonly reason: string; readonly data: unknown } {
  return (
    typeof value === "object" &&
    value !== null &&
    "data" in value &&
    "reason" in value &&
    typeof value.reason === "string"
  );
}

export function shownComponents(
  context: SessionContext,
  { components, blobs }: StoredCheckpoint,
): SessionComponents {
  return Object.fromEntries(
    components.map(({ name, version, revision, blob }) => {
      const table = "holdfast_session_component";
      const value = valueOf(context, blobs.get(blob), table, name);
      return [name, { version, revision, value }];
    }),
  );
}

function valueOf(
  context: SessionContext,
  blob: StoredBlob | undefined,
  table: string,
  key: string,
): unknown {
  if (blob === undefined) throw blobMissing(table, key);
  return readValue(table, key, () => context.readBlob(blob));
}
