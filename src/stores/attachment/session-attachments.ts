import type { SessionRef } from "../session/session-row.ts";
import { parseBlobHash } from "../../model/blob.ts";
import { givenList } from "../../model/shape.ts";
import type { AttachmentSurroundings } from "./context.ts";
import type { Attachment, AttachmentDescription } from "./manifest.ts";
import { getAttachment, putAttachment } from "./transfer.ts";
import type { LoadedAttachment } from "./transfer.ts";

/** The attachments of one session, as a turn works with them. */
export interface SessionAttachments {
  /** Stores bytes and remembers them for the next commit. */
  put(
    content: Uint8Array,
    description: AttachmentDescription,
  ): Promise<Attachment>;
  get(id: string): Promise<LoadedAttachment>;
  /** What the next commit has to stamp, in the order in which it was put. */
  readonly pending: readonly string[];
  /** Tells that a commit has stamped these; whatever was put since stays pending. */
  committed(ids: readonly string[]): void;
}

export function sessionAttachments(
  around: AttachmentSurroundings,
  session: SessionRef,
): SessionAttachments {
  const pending = new Set<string>();
  return {
    async put(content, description) {
      const attachment = await putAttachment(
        around,
        session,
        content,
        description,
      );
      pending.add(attachment.id);
      return attachment;
    },
    get: async (id) => getAttachment(around, session, parseBlobHash(id)),
    get pending() {
      return [...pending];
    },
    committed(ids) {
      for (const id of givenList("ids", ids)) pending.delete(id);
    },
  };
}
