import type { StoredBlob } from "../../model/blob.ts";
import { corruptRow } from "../../model/corrupt-row.ts";
import type { Encoded } from "../../model/values/encoded.ts";
import { textsOf } from "../../sql/dialect.ts";
import { row, rows, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { readBlobs } from "../blob/blob-row.ts";
import type { BlobRoots } from "../blob/root-row.ts";

/** Checkpoints and frames of sessions, and the blobs that hold their content. */

export interface ComponentRow {
  readonly name: string;
  readonly version: number;
  readonly revision: number;
  readonly hash: string;
  readonly blob: string;
}

export function* componentRows(session: number): Tx<readonly ComponentRow[]> {
  return yield* rows<ComponentRow>(sql`
    SELECT name, version, revision, hash, blob FROM holdfast_session_component
    WHERE session = ${session} ORDER BY name`);
}

export interface FrameRow {
  readonly id: string;
  readonly ordinal: number;
  readonly hash: string;
  readonly payload: Encoded;
  readonly blob: string | null;
}

export function* frameRows(session: number): Tx<readonly FrameRow[]> {
  return yield* rows<FrameRow>(sql`
    SELECT id, ordinal, hash, payload, blob FROM holdfast_session_frame
    WHERE session = ${session} ORDER BY ordinal, id`);
}

/** The blobs that some rows refer to, by their hashes. */
export function* blobsOf(
  owners: readonly { readonly blob: string | null }[],
): Tx<ReadonlyMap<string, StoredBlob>> {
  const hashes = new Set(owners.flatMap(({ blob }) => blob ?? []));
  if (hashes.size === 0) return new Map();
  const found = yield* readBlobs([...hashes]);
  return new Map(found.map((blob) => [blob.hash, blob]));
}

/** The error for a missing blob that a row refers to. */
export function blobMissing(table: string, key: string): Error {
  return corruptRow(table, key, "refers to a blob that does not exist");
}

interface Hash {
  readonly blob: string;
}

/** The components of every checkpoint keep their blobs. */
const componentRoots: BlobRoots = {
  *usedOf(hashes) {
    const found = yield* rows<Hash>(sql`
      SELECT DISTINCT blob FROM holdfast_session_component WHERE blob IN ${textsOf(hashes)}`);
    return found.map(({ blob }) => blob);
  },
  *page(after, limit) {
    const found = yield* rows<Hash>(
      after === null
        ? sql`SELECT DISTINCT blob FROM holdfast_session_component ORDER BY blob LIMIT ${limit}`
        : sql`SELECT DISTINCT blob FROM holdfast_session_component WHERE blob > ${after} ORDER BY blob LIMIT ${limit}`,
    );
    return found.map(({ blob }) => blob);
  },
  *rootOf(hash) {
    const found = yield* row<{ session: number; name: string }>(sql`
      SELECT session, name FROM holdfast_session_component WHERE blob = ${hash} ORDER BY session, name LIMIT 1`);
    return {
      table: "holdfast_session_component",
      key: `${found?.session}/${found?.name}`,
    };
  },
};

/** Every frame keeps its blobs, current or not. */
const frameRoots: BlobRoots = {
  *usedOf(hashes) {
    const found = yield* rows<Hash>(sql`
      SELECT DISTINCT blob FROM holdfast_session_frame WHERE blob IN ${textsOf(hashes)}`);
    return found.map(({ blob }) => blob);
  },
  *page(after, limit) {
    const found = yield* rows<Hash>(
      after === null
        ? sql`SELECT DISTINCT blob FROM holdfast_session_frame WHERE blob IS NOT NULL ORDER BY blob LIMIT ${limit}`
        : sql`SELECT DISTINCT blob FROM holdfast_session_frame WHERE blob > ${after} ORDER BY blob LIMIT ${limit}`,
    );
    return found.map(({ blob }) => blob);
  },
  *rootOf(hash) {
    const found = yield* row<{ session: number; id: string }>(sql`
      SELECT session, id FROM holdfast_session_frame WHERE blob = ${hash} ORDER BY session, id LIMIT 1`);
    return {
      table: "holdfast_session_frame",
      key: `${found?.session}/${found?.id}`,
    };
  },
};

/** The rows of sessions that keep blobs: checkpoints and frames, including those of forks. */
export const sessionRoots: readonly BlobRoots[] = [componentRoots, frameRoots];

/**
 * The distinct blobs of one session, in order, after `after` or from the beginning ("" is not a hash).
 */
export function* blobsOfSession(
  session: number,
  after: string,
  limit: number,
): Tx<readonly string[]> {
  const found = yield* rows<Hash>(sql`
    SELECT blob FROM holdfast_session_component WHERE session = ${session} AND blob > ${after}
    UNION
    SELECT blob FROM holdfast_session_frame WHERE session = ${session} AND blob > ${after}
    ORDER BY blob LIMIT ${limit}`);
  return found.map(({ blob }) => blob);
}
