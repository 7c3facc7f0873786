import { corruptRow } from "../../model/blob.ts";
import { HoldfastError, isHoldfastError } from "../../model/errors.ts";
import { checkedBytes } from "../blob/context.ts";
import type { SessionRef } from "../session/session-row.ts";
import { attachmentFailed } from "./byte-store.ts";
import { checkedDescription } from "./context.ts";
import type { AttachmentSurroundings } from "./context.ts";
import { hashed } from "./hashing.ts";
import { locateAttachment, recordIntent, recordStored } from "./manifest.ts";
import type { Attachment, AttachmentDescription, Located } from "./manifest.ts";

/** An attachment with its bytes, which are those that were put. */
export interface LoadedAttachment {
  readonly attachment: Attachment;
  readonly content: Uint8Array;
}

/**
 * Intent, bytes, and that they are stored: whatever crash comes in between is
 * found by the sweep. Bytes that are stored already are looked at: putting
 * them again mends what was lost.
 */
export async function putAttachment(
  around: AttachmentSurroundings,
  session: SessionRef,
  given: Uint8Array,
  description: AttachmentDescription,
): Promise<Attachment> {
  const { database, clock, bytes } = around;
  // A copy, since the caller may change its bytes while they are written.
  const content = new Uint8Array(checkedBytes(given, bytes.bytesMax));
  const id = await hashed(database, content);
  const lost: string[] = [];
  for (;;) {
    const name = around.newName(id);
    const { attachment, stored } = await database.write(recordIntent, {
      session,
      id,
      size: content.length,
      description: checkedDescription(description),
      at: clock.now(),
      store: bytes.kind,
      name,
      lost,
    });
    if (stored === undefined) {
      await writeCopy(around, { id, name, content, lost });
      return attachment;
    }
    const there = await tried(id, bytes.get(stored));
    if (there !== undefined && (await hashed(database, there)) === id)
      return attachment;
    lost.push(stored);
  }
}

async function writeCopy(
  { database, bytes }: AttachmentSurroundings,
  copy: {
    readonly id: string;
    readonly name: string;
    readonly content: Uint8Array;
    readonly lost: readonly string[];
  },
): Promise<void> {
  const { id, name, content, lost } = copy;
  const kept = await tried(id, bytes.put(name, content));
  if (kept !== id)
    throw attachmentFailed(id, `the byte store has kept others, ${kept}`);
  if (await database.write(recordStored, { name, lost })) return;
  await bytes.remove(name);
  throw attachmentFailed(id, "a sweep has given the put up meanwhile");
}

/** What a byte store answers; whatever it throws has a code. */
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
  around: AttachmentSurroundings,
  session: SessionRef,
  id: string,
): Promise<LoadedAttachment> {
  const { database, bytes } = around;
  const locate = async (): Promise<Located & { readonly name: string }> => {
    const wanted = { session, id, store: bytes.kind };
    return whole(id, bytes.kind, await database.read(locateAttachment, wanted));
  };
  let place = await locate();
  for (;;) {
    const { attachment, name } = place;
    const content = await bytes.get(name);
    if (content !== undefined) {
      const isTheirs =
        content.length === attachment.size &&
        (await hashed(database, content)) === id;
      if (isTheirs) return { attachment, content };
      throw corruptCopy(name, "its bytes are not those that were put");
    }
    // Swept and put again since we looked, or lost.
    place = await locate();
    if (place.name === name) throw corruptCopy(name, "its bytes are missing");
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
      `a commit refers to it, and the store "${store}" has no complete copy of its bytes`,
    );
  throw new HoldfastError(
    "ATTACHMENT_NOT_FOUND",
    located === undefined
      ? `The session has no attachment ${id}. Put it first.`
      : `The bytes of attachment ${id} never arrived. Put it again.`,
    { id },
  );
}
