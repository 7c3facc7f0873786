import { lockRow, textsOf } from "../../sql/dialect.ts";
import { plainOperation, row, rows, run, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { livingSession, lockedSession, type SessionRef } from "../session-row.ts";
import {
  attachmentOf,
  manifestColumns,
  type Attachment,
  type AttachmentDescription,
  type ManifestRow,
} from "./attachment-row.ts";

export interface Intent {
  readonly session: SessionRef;
  readonly id: string;
  readonly size: number;
  readonly description: AttachmentDescription;
  readonly at: number;
  /** The store for the bytes, unless they are stored already. */
  readonly store: string;
  readonly name: string;
  /** Copies that were found lost, which do not count as stored. */
  readonly lost?: readonly string[];
}

export interface Intended {
  readonly attachment: Attachment;
  /** A stored copy of the bytes; undefined when they must be written under the new name. */
  readonly stored: string | undefined;
}

/**
 * Records that a session is about to have an attachment, before its bytes are written. If the bytes
 * are stored already, their copy is locked first. A sweep that would remove it then either sees the
 * intent, or has condemned it already. In that case the bytes are written again under another name.
 *
 * A repeated intent restarts the time to commit. The description of a committed attachment stays.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`
 */
export const recordIntent = plainOperation("recordIntent", {
  key: (input) => input.session.id,
  *one(intent: Intent): Tx<Intended> {
    const { id, store, name, size, at, lost = [] } = intent;
    const { key: session } = yield* lockedSession(intent.session);
    const copies = yield* rows<{ readonly name: string }>(sql`
      SELECT name FROM holdfast_attachment_copy
      WHERE id = ${id} AND store = ${store} AND state = 'stored' ORDER BY name ${lockRow}`);
    const stored = copies.find((copy) => !lost.includes(copy.name));
    if (stored === undefined)
      yield* run(sql`
        INSERT INTO holdfast_attachment_copy (name, id, store, state, size, made_at)
        VALUES (${name}, ${id}, ${store}, 'writing', ${size}, ${at})`);
    return {
      attachment: yield* writeManifest(session, intent),
      stored: stored?.name,
    };
  },
});

function* writeManifest(session: number, { id, size, at, description }: Intent): Tx<Attachment> {
  const { mediaType, width, height, label } = description;
  yield* run(sql`
    INSERT INTO holdfast_attachment (session, id, intent_at, committed_at, size, media_type, width, height, label)
    VALUES (${session}, ${id}, ${at}, NULL, ${size}, ${mediaType}, ${width ?? null}, ${height ?? null}, ${label ?? null})
    ON CONFLICT (session, id) DO UPDATE SET intent_at = excluded.intent_at, media_type = excluded.media_type,
      width = excluded.width, height = excluded.height, label = excluded.label
      WHERE holdfast_attachment.committed_at IS NULL`);
  const found = yield* manifestRow(session, id);
  if (found === undefined) throw new Error("An intent vanished while locked.");
  return attachmentOf(found);
}

function* manifestRow(session: number, id: string): Tx<ManifestRow | undefined> {
  return yield* row<ManifestRow>(sql`
    SELECT ${manifestColumns} FROM holdfast_attachment WHERE session = ${session} AND id = ${id}`);
}

interface StoredCopy {
  readonly name: string;
  /** Copies that it replaces. */
  readonly lost?: readonly string[];
}

interface Copy {
  readonly name: string;
  readonly id: string;
  readonly store: string;
  readonly state: string;
}

/**
 * Records that the bytes of a copy are stored. False when a sweep has abandoned the put: the bytes
 * must then be removed and put again. Of two copies of the same bytes, the later one is condemned
 * at once. All copies are locked in the order of their names, and then read again. A statement that
 * waited for a lock would not see copies that came in between. Later calls wait for this one. Lost
 * copies are condemned only now, so that a committed attachment is never without a copy.
 */
export const recordStored = plainOperation("recordStored", {
  key: (input) => input.name,
  *one({ name, lost = [] }: StoredCopy): Tx<boolean> {
    const put = yield* row<{ readonly id: string }>(sql`
      SELECT id FROM holdfast_attachment_copy WHERE name = ${name}`);
    if (put === undefined) return false;
    yield* rows(sql`
      SELECT name FROM holdfast_attachment_copy WHERE id = ${put.id} ORDER BY name ${lockRow}`);
    const copies = yield* rows<Copy>(sql`
      SELECT name, id, store, state FROM holdfast_attachment_copy WHERE id = ${put.id} ORDER BY name`);
    const own = copies.find((copy) => copy.name === name);
    if (own?.state !== "writing") return false;
    const isThere = copies.some(
      (copy) => copy.store === own.store && copy.state === "stored" && !lost.includes(copy.name),
    );
    if (lost.length > 0)
      yield* run(sql`
        UPDATE holdfast_attachment_copy SET state = 'condemned'
        WHERE name IN ${textsOf(lost)} AND id = ${own.id} AND state = 'stored'`);
    yield* run(sql`
      UPDATE holdfast_attachment_copy SET state = ${isThere ? "condemned" : "stored"} WHERE name = ${name}`);
    return true;
  },
});

export interface Located {
  readonly attachment: Attachment;
  /** Undefined when no copy of the bytes is complete. */
  readonly name: string | undefined;
}

interface Locate {
  readonly session: SessionRef;
  readonly id: string;
  readonly store: string;
}

/**
 * Returns an attachment and the place of its bytes; undefined when the session has none with that
 * id.
 */
export const locateAttachment = plainOperation("locateAttachment", {
  key: (input) => input.session.id,
  *one({ session, id, store }: Locate): Tx<Located | undefined> {
    const { key } = yield* livingSession(session);
    const found = yield* manifestRow(key, id);
    if (found === undefined) return undefined;
    const copy = yield* row<{ readonly name: string }>(sql`
      SELECT name FROM holdfast_attachment_copy
      WHERE id = ${id} AND store = ${store} AND state = 'stored' ORDER BY name LIMIT 1`);
    return { attachment: attachmentOf(found), name: copy?.name };
  },
});
