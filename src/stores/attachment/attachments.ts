import type { Database, WaitOptions } from "../../sql/database.ts";
import { lists, type Page, type PageOptions } from "../list.ts";
import { writes, type Method } from "../method.ts";
import type { SweepOptions } from "../removal.ts";
import type { SessionName } from "../session-name.ts";
import { lockReadSession } from "../session-row.ts";
import type { Attachment, AttachmentDescription } from "./attachment-row.ts";
import { commitAttachments, givenCommit } from "./commit.ts";
import { attachmentContext, type AttachmentOptions } from "./context.ts";
import { forgetAttachment, givenForget } from "./forget.ts";
import { attachmentList, uncommittedList } from "./list.ts";
import {
  removeCondemned,
  sweepAttachments,
  type SweepAttachmentsOptions,
  type SweepReport,
} from "./sweep.ts";
import {
  getAttachment,
  putAttachment,
  sessionAttachments,
  type LoadedAttachment,
  type SessionAttachments,
} from "./transfer.ts";

/** Bytes that belong to sessions: images, documents. */
export interface Attachments {
  /** True when stored bytes survive a crash. */
  readonly isDurable: boolean;
  /**
   * Stores bytes for a session. They stay only if a commit of the session, or `commit`, stamps them
   * before the sweep's time is over.
   * @throws HoldfastError `VALUE_TOO_LARGE`, `SESSION_NOT_FOUND`, `SESSION_DELETED`, `ATTACHMENT_FAILED`, `DISK_FULL`, `OPTION_INVALID`, `NAME_INVALID`
   * @example
   * const { id } = await files.put("chat-7", png, { mediaType: "image/png" });
   * await store.commit(chat, { turn: "t1", fence, nodes, attachments: [id] });
   */
  put(
    session: SessionName,
    content: Uint8Array,
    description: AttachmentDescription,
  ): Promise<Attachment>;
  /**
   * Returns the verified bytes of an attachment.
   * @throws HoldfastError `ATTACHMENT_NOT_FOUND`, `CORRUPT_ROW`, `ID_MALFORMED`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  get(session: SessionName, id: string): Promise<LoadedAttachment>;
  /**
   * The attachments of a session, in the order of their ids.
   * @throws HoldfastError `CURSOR_INVALID`, `OPTION_INVALID`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  readonly list: Method<[session: SessionName, options?: PageOptions], Page<Attachment>>;
  /**
   * Attachments stored up to an instant and not yet stamped by a commit, oldest first.
   * @throws HoldfastError `CURSOR_INVALID`, `OPTION_INVALID`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  readonly listUncommitted: Method<
    [session: SessionName, until: number, options?: PageOptions],
    Page<Attachment>
  >;
  /**
   * Stamps up to 1,000 attachments outside a turn commit. Returns the ids that it cannot stamp: the
   * session does not have them, or their bytes never arrived.
   * @throws HoldfastError `ID_MALFORMED`, `OPTION_INVALID`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  readonly commit: Method<
    [session: SessionName, ids: readonly string[], wait?: WaitOptions],
    readonly string[]
  >;
  /**
   * Removes an attachment that no commit refers to; false when the session has none with that id.
   * @throws HoldfastError `ATTACHMENT_COMMITTED`, `ID_MALFORMED`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  readonly forget: Method<[session: SessionName, id: string, wait?: WaitOptions], boolean>;
  /** A session's own view, which remembers the attachments that its next commit must stamp. */
  ofSession(session: SessionName): SessionAttachments;
  /**
   * Removes attachments that were never committed, in small transactions.
   * @throws HoldfastError `ABORTED`, `OPTION_INVALID`, `DURATION_INVALID`
   */
  sweep(options?: SweepAttachmentsOptions): Promise<SweepReport>;
  /**
   * Removes the bytes of attachments that are forgotten already. Deleting a session whose
   * attachments are in files leaves such bytes.
   * @throws HoldfastError `ABORTED`, `OPTION_INVALID`
   */
  removeForgotten(options?: SweepOptions<SweepReport>): Promise<SweepReport>;
}

/**
 * Attachments are stored exactly as given: encrypt confidential bytes first.
 *
 * @throws HoldfastError `OPTION_INVALID`
 * @example const files = attachments(database, { bytes: attachmentFiles("/var/lib/app/files") });
 */
export function attachments(database: Database, options?: AttachmentOptions): Attachments {
  const context = attachmentContext(database, options);
  return {
    isDurable: context.bytes.isDurable,
    put: async (session, content, description) =>
      putAttachment(context, session, content, description),
    get: async (session, id) => getAttachment(context, session, id),
    list: lists(context, attachmentList, lockReadSession),
    listUncommitted: lists(context, uncommittedList, lockReadSession),
    commit: writes(context, commitAttachments, givenCommit),
    forget: writes(context, forgetAttachment, givenForget),
    ofSession: (session) => sessionAttachments(context, session),
    sweep: async (given) => sweepAttachments(context, given),
    removeForgotten: async (given) => removeCondemned(context, given),
  };
}
