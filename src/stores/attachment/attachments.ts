import { parseBlobHash } from "../../model/blob.ts";
import {
  checkedCount,
  checkedInstant,
  givenList,
  optionsOf,
} from "../../model/shape.ts";
import type { Database } from "../../sql/database.ts";
import { givenDatabase } from "../given.ts";
import { attachmentSurroundings } from "./context.ts";
import { cursorInvalid, cursorPlace, cursorText } from "../cursor.ts";
import { sessionNamed } from "../session/session-name.ts";
import type { AttachmentEnvironment } from "./context.ts";
import type { SessionName } from "../session/session-name.ts";
import { forgetAttachment } from "./forget.ts";
import { listOfSession, listUncommitted } from "./manifest.ts";
import type {
  Attachment,
  AttachmentDescription,
  UncommittedPlace,
} from "./manifest.ts";
import { sessionAttachments } from "./session-attachments.ts";
import type { SessionAttachments } from "./session-attachments.ts";
import { commitAttachments } from "./stamp.ts";
import { removeCondemned, sweep } from "./sweep.ts";
import type { SweepAttachmentsOptions, SweepReport } from "./sweep.ts";
import { getAttachment, putAttachment } from "./transfer.ts";
import type { LoadedAttachment } from "./transfer.ts";

export interface ListAttachmentsOptions {
  /** `next` of the page before. */
  readonly after?: string;
  /** 100 unless told, 1,000 at most. */
  readonly limit?: number;
}

export interface AttachmentPage {
  readonly items: readonly Attachment[];
  /** Where to go on; undefined at the end. */
  readonly next: string | undefined;
}

/** Bytes that belong to sessions: images, documents. */
export interface Attachments {
  /** Whether what is put survives a crash. */
  readonly isDurable: boolean;
  /**
   * Stores bytes for a session. They stay only if a commit of the session
   * stamps them, or `commit` does, before the sweep's time is over.
   * @throws HoldfastError `VALUE_TOO_LARGE`, `SESSION_NOT_FOUND`, `SESSION_DELETED`, `ATTACHMENT_FAILED`, `DISK_FULL`
   */
  put(
    session: SessionName,
    content: Uint8Array,
    description: AttachmentDescription,
  ): Promise<Attachment>;
  /**
   * The bytes of an attachment, verified.
   * @throws HoldfastError `ATTACHMENT_NOT_FOUND`, `CORRUPT_ROW`
   */
  get(session: SessionName, id: string): Promise<LoadedAttachment>;
  /** The attachments of a session in the order of their ids, page by page. */
  list(
    session: SessionName,
    options?: ListAttachmentsOptions,
  ): Promise<AttachmentPage>;
  /** Those up to an instant that no commit has stamped, oldest first. @throws HoldfastError `CURSOR_INVALID` */
  listUncommitted(
    session: SessionName,
    until: number,
    options?: ListAttachmentsOptions,
  ): Promise<AttachmentPage>;
  /** Stamps attachments outside a turn commit; answers with the ids that it cannot: the session does not have them, or their bytes never arrived. */
  commit(
    session: SessionName,
    ids: readonly string[],
  ): Promise<readonly string[]>;
  /** Forgets an attachment that no commit refers to; false when the session has none of that id. @throws HoldfastError `ATTACHMENT_COMMITTED` */
  forget(session: SessionName, id: string): Promise<boolean>;
  /** A session's own view, which remembers what its next commit has to stamp. */
  ofSession(session: SessionName): SessionAttachments;
  /** Removes what was put and never committed. @throws HoldfastError `ABORTED` */
  sweep(options?: SweepAttachmentsOptions): Promise<SweepReport>;
  /** Removes the bytes of what was forgotten already, as after deleting a session. */
  removeForgotten(
    options?: Omit<SweepAttachmentsOptions, "olderThan">,
  ): Promise<SweepReport>;
}

export function attachments(
  database: Database,
  environment?: AttachmentEnvironment,
): Attachments {
  const around = attachmentSurroundings(
    givenDatabase(database),
    optionsOf(environment),
  );
  const limits = { min: 1, max: 1_000 };
  return {
    isDurable: around.bytes.isDurable,
    put: async (session, content, description) =>
      putAttachment(around, sessionNamed(session), content, description),
    get: async (session, id) =>
      getAttachment(around, sessionNamed(session), parseBlobHash(id)),
    async list(session, options) {
      const { after, limit = 100 } = optionsOf(options);
      const items = await database.read(listOfSession, {
        session: sessionNamed(session),
        after: after === undefined ? "" : parseBlobHash(after),
        limit: checkedCount("limit", limit, limits),
      });
      const last = items.length < limit ? undefined : items.at(-1);
      return { items, next: last?.id };
    },
    async listUncommitted(session, until, options) {
      const { after, limit = 100 } = optionsOf(options);
      const items = await database.read(listUncommitted, {
        session: sessionNamed(session),
        after: after === undefined ? undefined : uncommittedPlace(after),
        until: checkedInstant("until", until),
        limit: checkedCount("limit", limit, limits),
      });
      const last = items.length < limit ? undefined : items.at(-1);
      const next = last && cursorText("uncommitted", [last.intentAt, last.id]);
      return { items, next };
    },
    commit: async (session, ids) =>
      database.write(commitAttachments, {
        session: sessionNamed(session),
        ids: checkedIds(ids),
        now: around.clock.now(),
      }),
    forget: async (session, id) =>
      database.write(forgetAttachment, {
        session: sessionNamed(session),
        id: parseBlobHash(id),
      }),
    ofSession: (session) => sessionAttachments(around, sessionNamed(session)),
    sweep: async (options) => sweep(around, optionsOf(options)),
    removeForgotten: async (options) =>
      removeCondemned(around, optionsOf(options)),
  };
}

function uncommittedPlace(cursor: string): UncommittedPlace {
  const [intentAt, id] = cursorPlace("uncommitted", cursor);
  if (!Number.isSafeInteger(intentAt) || typeof id !== "string")
    throw cursorInvalid("malformed");
  return { intentAt: intentAt as number, id };
}

const idsPerCommitMax = 1_000;

function checkedIds(ids: readonly string[]): readonly string[] {
  const { length } = givenList("ids", ids);
  checkedCount("The number of attachments", length, { max: idsPerCommitMax });
  return ids.map(parseBlobHash);
}
