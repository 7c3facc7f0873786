import { integersOf, lockRow, textsOf } from "../../sql/dialect.ts";
import { plainOperation, row, rows, run, type Tx } from "../../sql/operation.ts";
import { sql, type Statement } from "../../sql/statement.ts";
import type { OwnedRows } from "../removal.ts";
import type { SessionRoot } from "../session-row.ts";

/**
 * The rows of attachments, and the changes that sessions make in their own transactions: a commit
 * stamps them, a fork shares them, a removal forgets them.
 */

/** The caller's description of the bytes. */
export interface AttachmentDescription {
  readonly mediaType: string;
  readonly width?: number;
  readonly height?: number;
  readonly label?: string;
}

/** An attachment of a session. Its id is the SHA-256 of its bytes. */
export interface Attachment extends AttachmentDescription {
  readonly id: string;
  readonly size: number;
  readonly intentAt: number;
  /** The instant at which a commit first referred to it. */
  readonly committedAt: number | undefined;
}

/** The columns of `holdfast_attachment` that operations read. */
export interface ManifestRow {
  readonly id: string;
  readonly size: number;
  readonly intent_at: number;
  readonly committed_at: number | null;
  readonly media_type: string;
  readonly width: number | null;
  readonly height: number | null;
  readonly label: string | null;
}

export const manifestColumns: Statement = sql`
  id, size, intent_at, committed_at, media_type, width, height, label`;

export function attachmentOf(found: ManifestRow): Attachment {
  const { width, height, label } = found;
  return {
    id: found.id,
    size: found.size,
    intentAt: found.intent_at,
    committedAt: found.committed_at ?? undefined,
    mediaType: found.media_type,
    ...(width !== null && { width }),
    ...(height !== null && { height }),
    ...(label !== null && { label }),
  };
}

/** The description of an attachment, for storing its bytes elsewhere. */
export function descriptionOf(attachment: Attachment): AttachmentDescription {
  const { mediaType, width, height, label } = attachment;
  return {
    mediaType,
    ...(width !== undefined && { width }),
    ...(height !== undefined && { height }),
    ...(label !== undefined && { label }),
  };
}

/**
 * Marks attachments of a session as referred to by a commit; the first time stays. For the turn
 * commit, which has locked the session.
 *
 * @returns the ids that it cannot mark, whose rows stay unchanged. The session does not have them:
 *   they were never put, or the commit came after the grace period. Or their bytes are gone or
 *   never arrived.
 */
export function* stampAttachments(
  session: SessionRoot,
  ids: readonly string[],
  now: number,
): Tx<readonly string[]> {
  if (ids.length === 0) return [];
  const gone = new Set(yield* withoutBytes(ids));
  const there = ids.filter((id) => !gone.has(id));
  if (there.length === 0) return ids;
  yield* run(sql`
    UPDATE holdfast_attachment SET committed_at = ${now}
    WHERE session = ${session.key} AND id IN ${textsOf(there)} AND committed_at IS NULL`);
  const found = yield* rows<{ readonly id: string }>(sql`
    SELECT id FROM holdfast_attachment WHERE session = ${session.key} AND id IN ${textsOf(there)}`);
  const stamped = new Set(found.map(({ id }) => id));
  return ids.filter((id) => !stamped.has(id));
}

/** The given attachments without a complete copy in any store. */
function* withoutBytes(ids: readonly string[]): Tx<readonly string[]> {
  const found = yield* rows<{ readonly id: string }>(sql`
    SELECT DISTINCT id FROM holdfast_attachment_copy
    WHERE id IN ${textsOf(ids)} AND state = 'stored'`);
  const stored = new Set(found.map(({ id }) => id));
  return ids.filter((id) => !stored.has(id));
}

/**
 * Restarts the time to commit of the attachments of a locked session: its turn has ended without
 * another one, and a retry needs them.
 */
export function* restartIntents(session: number, at: number): Tx<void> {
  yield* run(sql`
    UPDATE holdfast_attachment SET intent_at = ${at}
    WHERE session = ${session} AND committed_at IS NULL AND intent_at < ${at}`);
}

/** Counts the attachments of a session that commits refer to. */
export function* committedAttachments(session: number): Tx<number> {
  const found = yield* row<{ readonly count: number }>(sql`
    SELECT COUNT(*) AS count FROM holdfast_attachment
    WHERE session = ${session} AND committed_at IS NOT NULL`);
  return found?.count ?? 0;
}

/**
 * Gives a fork the committed attachments of its source, since its history refers to them. Both
 * sessions are locked, so nothing is forgotten in between; the bytes are shared.
 */
export function* shareAttachments(
  from: Pick<SessionRoot, "key">,
  to: Pick<SessionRoot, "key">,
): Tx<number> {
  return yield* run(sql`
    INSERT INTO holdfast_attachment (session, id, intent_at, committed_at, size, media_type, width, height, label)
    SELECT CAST(${to.key} AS BIGINT), id, intent_at, committed_at, size, media_type, width, height, label
    FROM holdfast_attachment WHERE session = ${from.key} AND committed_at IS NOT NULL
    ON CONFLICT (session, id) DO NOTHING`);
}

/**
 * Forgets attachments, and condemns the copies of those that no session has any longer. Each step
 * is a separate statement, and the order matters:
 *
 * 1. Lock the copies. A put of the same bytes has then either recorded its intent, or it waits,
 *    finds them condemned and writes a new copy.
 * 2. Forget the given attachments. An intent may be newer than the locks.
 * 3. Read the copies again, which includes those of a newer intent.
 * 4. Read the manifest last: every copy found before had its intent by then.
 */
export function* forgetWith(
  ids: readonly string[],
  forget: () => Tx<number>,
  session: number | null,
): Tx<number> {
  yield* lockedCopies(ids);
  const forgotten = yield* forget();
  const copies = yield* lockedCopies(ids);
  const kept = yield* rows<{ readonly id: string }>(sql`
    SELECT DISTINCT id FROM holdfast_attachment WHERE id IN ${textsOf(ids)}`);
  const isKept = new Set(kept.map(({ id }) => id));
  yield* condemn(
    copies.filter(({ id }) => !isKept.has(id)).map(({ name }) => name),
    session,
  );
  return forgotten;
}

function* lockedCopies(
  ids: readonly string[],
): Tx<readonly { readonly name: string; readonly id: string }[]> {
  return yield* rows<{ name: string; id: string }>(sql`
    SELECT name, id FROM holdfast_attachment_copy
    WHERE id IN ${textsOf(ids)} AND state <> 'condemned' ORDER BY name ${lockRow}`);
}

export function* condemn(names: readonly string[], session: number | null): Tx<void> {
  if (names.length === 0) return;
  yield* run(sql`
    UPDATE holdfast_attachment_copy SET state = 'condemned', condemned_for = ${session}
    WHERE name IN ${textsOf(names)} AND state <> 'condemned'`);
}

/**
 * Forgets up to `rowsMax` attachments of a session that is being deleted. Fewer means that none are
 * left. The next sweep removes their bytes.
 */
export function* forgetAttachments(session: number, rowsMax: number): Tx<number> {
  const found = yield* rows<{ readonly id: string }>(sql`
    SELECT id FROM holdfast_attachment WHERE session = ${session} ORDER BY id LIMIT ${rowsMax}`);
  if (found.length === 0) return 0;
  const ids = found.map(({ id }) => id);
  return yield* forgetWith(
    ids,
    () =>
      run(sql`
        DELETE FROM holdfast_attachment WHERE session = ${session} AND id IN ${textsOf(ids)}`),
    session,
  );
}

/**
 * Does the same as `forgetAttachments`, and removes bytes in the database. Bytes in files are
 * removed by `removeForgotten` of the `attachments` with that folder.
 */
function* removeWithBytes(session: number, rowsMax: number): Tx<number> {
  const found = yield* rows<{ readonly id: string }>(sql`
    SELECT id FROM holdfast_attachment WHERE session = ${session} ORDER BY id LIMIT ${rowsMax}`);
  if (found.length === 0) return 0;
  const forgotten = yield* forgetAttachments(session, rowsMax);
  const copies = yield* rows<{ readonly name: string }>(sql`
    SELECT name FROM holdfast_attachment_copy
    WHERE id IN ${textsOf(found.map(({ id }) => id))} AND store = 'database' AND state = 'condemned'`);
  if (copies.length === 0) return forgotten;
  const names = textsOf(copies.map(({ name }) => name));
  yield* run(sql`DELETE FROM holdfast_attachment_bytes WHERE name IN ${names}`);
  yield* run(sql`DELETE FROM holdfast_attachment_copy WHERE name IN ${names}`);
  return forgotten;
}

/** Counts the copies with remaining bytes that only the given sessions had. */
export function* pendingCopies(sessions: readonly number[]): Tx<number> {
  const found = yield* row<{ readonly count: number }>(sql`
    SELECT COUNT(*) AS count FROM holdfast_attachment_copy
    WHERE state = 'condemned' AND condemned_for IN ${integersOf(sessions)}`);
  return found?.count ?? 0;
}

/** The attachment rows that are removed with their session. */
export const attachmentsOwned: readonly OwnedRows[] = [
  { table: "holdfast_attachment", remove: removeWithBytes },
];

/** The storage of attachments. */
export interface AttachmentSizes {
  readonly attachments: number;
  readonly size: number;
}

/** Measures the attachments of one session, shared or not. */
export function* attachmentSizesOf(session: number): Tx<AttachmentSizes> {
  const found = yield* row<AttachmentSizes>(sql`
    SELECT count(*) AS attachments, coalesce(sum(size), 0) AS size
    FROM holdfast_attachment WHERE session = ${session}`);
  return found ?? { attachments: 0, size: 0 };
}

interface SizesAfter {
  readonly after: string;
  readonly limit: number;
}

export interface CopiesPage {
  readonly sizes: AttachmentSizes;
  readonly next: string | undefined;
}

/** Measures the next stored copies, of any session. */
export const attachmentSizesAfter = plainOperation("attachmentSizesAfter", {
  key: () => "",
  *one({ after, limit }: SizesAfter): Tx<CopiesPage> {
    const found = yield* rows<{ name: string; state: string; size: number }>(
      sql`
        SELECT name, state, size FROM holdfast_attachment_copy
        WHERE name > ${after} ORDER BY name LIMIT ${limit}`,
    );
    const stored = found.filter(({ state }) => state === "stored");
    return {
      sizes: {
        attachments: stored.length,
        size: stored.reduce((sum, { size }) => sum + size, 0),
      },
      next: found.length < limit ? undefined : found.at(-1)?.name,
    };
  },
});
