import { parseBlobHash } from "../../model/blob.ts";
import { givenList } from "../../model/shape.ts";
import type { WaitOptions } from "../../sql/database.ts";
import { storeOperation, type Tx } from "../../sql/operation.ts";
import { onlyWait, type Call } from "../method.ts";
import { sessionNamed, type SessionName } from "../session-name.ts";
import { lockedSession, type SessionRef } from "../session-row.ts";
import { stampAttachments } from "./attachment-row.ts";
import type { AttachmentContext } from "./context.ts";

interface CommitAttachments {
  readonly session: SessionRef;
  readonly ids: readonly string[];
  /** The instant of the commit. */
  readonly at: number;
}

const idsPerCommitMax = 1_000;

/** @throws HoldfastError `ID_MALFORMED`, `OPTION_INVALID` */
export function givenCommit(
  { clock }: AttachmentContext,
  session: SessionName,
  ids: readonly string[],
  wait?: WaitOptions,
): Call<CommitAttachments> {
  const input = {
    session: sessionNamed(session),
    ids: givenList("ids", ids, idsPerCommitMax).map(parseBlobHash),
    at: clock.now(),
  };
  return { input, wait: onlyWait(wait) };
}

/**
 * Stamps attachments outside a turn commit.
 * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`
 */
export const commitAttachments = storeOperation("commitAttachments", {
  key: (input) => input.session.id,
  *one(_: AttachmentContext, { session, ids, at }: CommitAttachments): Tx<readonly string[]> {
    return yield* stampAttachments(yield* lockedSession(session), ids, at);
  },
});
