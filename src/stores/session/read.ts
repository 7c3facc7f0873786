import type { StoredBlob } from "../../model/blob.ts";
import { plainOperation } from "../../sql/operation.ts";
import type { Operation, Tx } from "../../sql/operation.ts";
import { readBlobs } from "../blob/blob-row.ts";
import { pathOf } from "./graph/graph.ts";
import type { PathPage } from "./graph/graph.ts";
import { livingHead } from "./head-row.ts";
import type { SessionHeadRow } from "./head-row.ts";
import type { SessionRef } from "./session-row.ts";
import { componentRows } from "./turn/turn-components.ts";
import type { ComponentRow } from "./turn/turn-components.ts";
import { frameRows } from "./turn/turn-frames.ts";
import type { FrameRow } from "./turn/turn-frames.ts";

/** The head as it is stored, with the blobs it refers to. */
export interface StoredHead {
  readonly head: SessionHeadRow;
  readonly frames: readonly FrameRow[];
  readonly blobs: ReadonlyMap<string, StoredBlob>;
}

/** Revision, config and frames. @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED` */
export const readHead: Operation<SessionRef, StoredHead> = plainOperation(
  "readSessionHead",
  {
    key: (input: SessionRef) => input.id,
    *one(ref) {
      const head = yield* livingHead(ref);
      const frames = yield* frameRows(head.key);
      return { head, frames, blobs: yield* blobsOf(frames) };
    },
  },
);

export interface StoredCheckpoint {
  readonly components: readonly ComponentRow[];
  readonly blobs: ReadonlyMap<string, StoredBlob>;
}

/** All parts of the checkpoint. @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED` */
export const readCheckpoint: Operation<SessionRef, StoredCheckpoint> =
  plainOperation("readCheckpoint", {
    key: (input: SessionRef) => input.id,
    *one(ref) {
      const { key } = yield* livingHead(ref);
      const components = yield* componentRows(key);
      return { components, blobs: yield* blobsOf(components) };
    },
  });

export interface ReadSession {
  readonly session: SessionRef;
  readonly leaf: string | undefined;
  readonly limit: number;
}

export interface StoredSession extends StoredHead {
  readonly path: PathPage;
  readonly components: readonly ComponentRow[];
}

/** Head, active path and checkpoint, as they were at one moment. */
export const readSession: Operation<ReadSession, StoredSession> =
  plainOperation("readSession", {
    key: (input: ReadSession) => input.session.id,
    *one({ session, leaf, limit }) {
      const head = yield* livingHead(session);
      const path = yield* pathOf(head, leaf, limit);
      const frames = yield* frameRows(head.key);
      const components = yield* componentRows(head.key);
      const blobs = yield* blobsOf([...frames, ...components]);
      return { head, path, frames, components, blobs };
    },
  });

export function* blobsOf(
  owners: readonly { readonly blob: string | null }[],
): Tx<ReadonlyMap<string, StoredBlob>> {
  const hashes = new Set(owners.flatMap(({ blob }) => blob ?? []));
  if (hashes.size === 0) return new Map();
  const found = yield* readBlobs([...hashes]);
  return new Map(found.map((blob) => [blob.hash, blob]));
}
