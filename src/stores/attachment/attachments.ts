import type { Database, WaitOptions } from "../../sql/database.ts";
import { lists, type Page, type PageOptions } from "../list.ts";
import { writes, type Method } from "../method.ts";
import type { SweepOptions } from "../removal.ts";
import type { SessionName } from "../session-name.ts";
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
  /** Whether what is put survives a crash. */
  readonly isDurable: boolean;
  /**
   * Stores bytes for a session. They stay only if a commit of the session
   * stamps them, or `commit` does, before the sweep's time is over.
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
   * The bytes of an attachment, verified.
   * @throws HoldfastError `ATTACHMENT_NOT_FOUND`, `CORRUPT_ROW`, `ID_MALFORMED`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  get(session: SessionName, id: string): Promise<LoadedAttachment>;
  /**
   * The attachments of a session, in the order of their ids.
   * @throws HoldfastError `CURSOR_INVALID`, `OPTION_INVALID`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  readonly list: Method<[session: SessionName, options?: PageOptions], Page<Attachment>>;
  /**
   * Those put up to an instant that no commit has stamped, oldest first.
   * @throws HoldfastError `CURSOR_INVALID`, `OPTION_INVALID`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  readonly listUncommitted: Method<
    [session: SessionName, until: number, options?: PageOptions],
    Page<Attachment>
  >;
  /**
   * Stamps attachments outside a turn commit, 1,000 at most; answers with the
   * ids that it cannot stamp: the session does not have them, or their bytes
   * never arrived.
   * @throws HoldfastError `ID_MALFORMED`, `OPTION_INVALID`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  readonly commit: Method<
    [session: SessionName, ids: readonly string[], wait?: WaitOptions],
    readonly string[]
  >;
  /**
   * Forgets an attachment that no commit refers to; false when the session has
   * none of that id.
   * @throws HoldfastError `ATTACHMENT_COMMITTED`, `ID_MALFORMED`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  readonly forget: Method<[session: SessionName, id: string, wait?: WaitOptions], boolean>;
  /** A session's own view, which remembers what its next commit has to stamp. */
  ofSession(session: SessionName): SessionAttachments;
  /**
   * Removes what was put and never committed, in small transactions.
   * @throws HoldfastError `ABORTED`, `OPTION_INVALID`, `DURATION_INVALID`
   */
  sweep(options?: SweepAttachmentsOptions): Promise<SweepReport>;
  /**
   * Removes the bytes of what was forgotten already, as after deleting a
   * session whose attachments are in files.
   * @throws HoldfastError `ABORTED`, `OPTION_INVALID`
   */
  removeForgotten(options?: SweepOptions<SweepReport>): Promise<SweepReport>;
}

/**
 * Bytes as they are given: encrypt first what must not be readable.
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
    list: lists(context, attachmentList),
    listUncommitted: lists(context, uncommittedList),
    commit: writes(context, commitAttachments, givenCommit),
    forget: writes(context, forgetAttachment, givenForget),
    ofSession: (session) => sessionAttachments(context, session),
    sweep: async (given) => sweepAttachments(context, given),
    removeForgotten: async (given) => removeCondemned(context, given),
  };
}
