import { checkedBytes, parseBlobHash } from "../../model/blob.ts";
import { corruptRow } from "../../model/corrupt-row.ts";
import { HoldfastError, isHoldfastError } from "../../model/errors.ts";
import { givenList } from "../../model/shape.ts";
import { sessionNamed, type SessionName } from "../session-name.ts";
import type { Attachment, AttachmentDescription } from "./attachment-row.ts";
import { attachmentFailed, hashed } from "./byte-store.ts";
import { checkedDescription, newName, type AttachmentContext } from "./context.ts";
import { locateAttachment, recordIntent, recordStored, type Located } from "./manifest.ts";

/** An attachment with its verified bytes. */
export interface LoadedAttachment {
  readonly attachment: Attachment;
  readonly content: Uint8Array;
}

/**
 * Records the intent, writes the bytes, and records that they are stored. The sweep finds the
 * remains of a crash at any point in between. Bytes that are stored already are verified: putting
 * them again repairs a lost copy.
 */
export async function putAttachment(
  context: AttachmentContext,
  named: SessionName,
  given: Uint8Array,
  draft: AttachmentDescription,
): Promise<Attachment> {
  const { database, clock, bytes } = context;
  const session = sessionNamed(named);
  const description = checkedDescription(draft);
  // A copy, since the caller may change its bytes during the write.
  const content = new Uint8Array(checkedBytes(given, bytes.bytesMax));
  const id = await hashed(database, content);
  const lost: string[] = [];
  for (;;) {
    const name = newName(context, id);
    const { attachment, stored } = await database.write(recordIntent, {
      session,
      id,
      size: content.length,
      description,
      at: clock.now(),
      store: bytes.kind,
      name,
      lost,
    });
    if (stored === undefined) {
      await writeCopy(context, { id, name, content, lost });
      return attachment;
    }
    const there = await tried(id, bytes.get(stored));
    if (there !== undefined && (await hashed(database, there)) === id) return attachment;
    lost.push(stored);
  }
}

async function writeCopy(
  { database, bytes }: AttachmentContext,
  copy: {
    readonly id: string;
    readonly name: string;
    readonly content: Uint8Array;
    readonly lost: readonly string[];
  },
): Promise<void> {
  const { id, name, content, lost } = copy;
  const kept = await tried(id, bytes.put(name, content));
  if (kept !== id) throw attachmentFailed(id, `the byte store has stored other bytes, ${kept}`);
  if (await database.write(recordStored, { name, lost })) return;
  await bytes.remove(name);
  throw attachmentFailed(id, "a sweep abandoned the put in the meantime");
}

/** Awaits a byte store, and gives its error a code. */
async function tried<T>(id: string, answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    if (isHoldfastError(error)) throw error;
    throw attachmentFailed(id, "the byte store failed", error);
  }
}

/** @throws HoldfastError `ATTACHMENT_NOT_FOUND`, `CORRUPT_ROW` */
export async function getAttachment(
  context: AttachmentContext,
  named: SessionName,
  hash: string,
): Promise<LoadedAttachment> {
  const { database, bytes } = context;
  const session = sessionNamed(named);
  const id = parseBlobHash(hash);
  const locate = async (): Promise<Located & { readonly name: string }> => {
    const input = { session, id, store: bytes.kind };
    return whole(id, bytes.kind, await database.read(locateAttachment, input));
  };
  let place = await locate();
  for (;;) {
    const { attachment, name } = place;
    const content = await bytes.get(name);
    if (content !== undefined) {
      const isTheirs =
        content.length === attachment.size && (await hashed(database, content)) === id;
      if (isTheirs) return { attachment, content };
      throw corruptCopy(name, "has different bytes from those that were put");
    }
    // Swept and put again since the lookup, or lost.
    place = await locate();
    if (place.name === name) throw corruptCopy(name, "has no bytes");
  }
}

function corruptCopy(name: string, why: string): HoldfastError {
  return corruptRow("holdfast_attachment_copy", name, why);
}

function whole(
  id: string,
  store: string,
  located: Located | undefined,
): Located & { readonly name: string } {
  if (located?.name !== undefined) return { ...located, name: located.name };
  if (located?.attachment.committedAt !== undefined)
    throw corruptRow(
      "holdfast_attachment",
      id,
      `is committed but has no complete copy of its bytes in the store "${store}"`,
    );
  throw new HoldfastError(
    "ATTACHMENT_NOT_FOUND",
    located === undefined
      ? `The session has no attachment ${id}. Put it first.`
      : `The bytes of attachment ${id} never arrived. Put it again.`,
    { id },
  );
}

/** The attachments of one session, as a turn works with them. */
export interface SessionAttachments {
  /** Stores bytes and remembers them for the next commit. */
  put(content: Uint8Array, description: AttachmentDescription): Promise<Attachment>;
  get(id: string): Promise<LoadedAttachment>;
  /** The ids that the next commit must stamp, in the order of their puts. */
  readonly pending: readonly string[];
  /** Reports that a commit has stamped these. Attachments put since then stay pending. */
  committed(ids: readonly string[]): void;
}

export function sessionAttachments(
  context: AttachmentContext,
  named: SessionName,
): SessionAttachments {
  const session = sessionNamed(named);
  const pending = new Set<string>();
  return {
    async put(content, description) {
      const attachment = await putAttachment(context, session, content, description);
      pending.add(attachment.id);
      return attachment;
    },
    get: async (id) => getAttachment(context, session, id),
    get pending() {
      return [...pending];
    },
    committed(ids) {
      for (const id of givenList("ids", ids)) pending.delete(id);
    },
  };
}
