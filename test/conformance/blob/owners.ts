import { type Clock, row, rows, run, type Tx, sql, type Database } from "../../../src/kernel.ts";
import { prepareBlob } from "../../../src/model/blob.ts";
import type { BlobKind, NewBlob } from "../../../src/model/blob.ts";
import { putBlobs } from "../../../src/stores/blob/blob-row.ts";

/** What keeps blobs, and what has attachments, as tests need it: by hand, without a turn commit. */

/** The SHA-256 of the texts that the tests store, from another program. */
export const hashes = {
  abc: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
  one: "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed",
  two: "3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3",
  three: "8b5b9db0c13db24256c829aa364aa90c6d2eba318b9232a4ab9313b954d3555f",
} as const;

export function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

export function textOf(bytes: Uint8Array | undefined): string | undefined {
  return bytes && new TextDecoder().decode(bytes);
}

/** A session's root row; its key. */
export async function createSession(
  database: Database,
  id: string,
  generation = 1,
): Promise<number> {
  const made = await database.write("createSession", () =>
    row<{ readonly key: number }>(sql`
      INSERT INTO holdfast_session (id, generation, created_at, revision, node_count, user_message_count, active_at)
      VALUES (${id}, ${generation}, ${1}, ${0}, ${0}, ${0}, ${1}) RETURNING key`),
  );
  return made?.key ?? 0;
}

export function blobOf(
  database: Database,
  text: string,
  clock: Clock,
  kind: BlobKind = { name: "test", isCompressible: false },
): NewBlob {
  return prepareBlob(database.bytes, {
    content: bytesOf(text),
    kind,
    profile: "balanced",
    at: clock.now(),
  });
}

/** A component of a checkpoint, with its blob, as a commit writes it. */
export function* addComponent(session: number, name: string, blob: NewBlob): Tx<void> {
  yield* putBlobs([blob]);
  yield* referFromComponent(session, name, blob.hash);
}

export function* referFromComponent(session: number, name: string, hash: string): Tx<void> {
  yield* run(sql`
    INSERT INTO holdfast_session_component (session, name, version, revision, hash, blob)
    VALUES (${session}, ${name}, ${1}, ${1}, '', ${hash})`);
}

/** A frame with its state. */
export function* addFrame(session: number, id: string, blob: NewBlob): Tx<void> {
  yield* putBlobs([blob]);
  yield* run(sql`
    INSERT INTO holdfast_session_frame (session, id, ordinal, hash, payload, blob)
    VALUES (${session}, ${id}, ${1}, ${"hash of frame"}, ${"{}"}, ${blob.hash})`);
}

/** The blobs there are, as the texts they hold. */
export async function storedTexts(database: Database): Promise<readonly string[]> {
  const found = await database.read("storedTexts", () =>
    rows<{ readonly content: Uint8Array }>(sql`
      SELECT content FROM holdfast_blob ORDER BY key`),
  );
  return found.map(({ content }) => textOf(content) ?? "");
}

/** Everything of ours about blobs and attachments, for "nothing changed". */
export function dump(database: Database): Promise<unknown> {
  return database.read("dump", function* () {
    return {
      blobs: yield* rows(sql`SELECT * FROM holdfast_blob ORDER BY key`),
      keeps: yield* rows(sql`SELECT * FROM holdfast_blob_keep ORDER BY hash, owner`),
      artifacts: yield* rows(sql`SELECT * FROM holdfast_artifact ORDER BY namespace, name`),
      manifest: yield* rows(sql`SELECT * FROM holdfast_attachment ORDER BY session, id`),
      copies: yield* rows(sql`SELECT * FROM holdfast_attachment_copy ORDER BY name`),
      bytes: yield* rows(sql`SELECT * FROM holdfast_attachment_bytes ORDER BY name`),
    };
  });
}
