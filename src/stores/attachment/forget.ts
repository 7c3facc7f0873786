import { parseBlobHash } from "../../model/blob.ts";
import { HoldfastError } from "../../model/errors.ts";
import type { WaitOptions } from "../../sql/database.ts";
import { row, run, storeOperation, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { onlyWait, type Call } from "../method.ts";
import { sessionNamed, type SessionName } from "../session-name.ts";
import { lockedSession, type SessionRef } from "../session-row.ts";
import { forgetWith } from "./attachment-row.ts";
import type { AttachmentContext } from "./context.ts";

interface ForgetAttachment {
  readonly session: SessionRef;
  readonly id: string;
}

/** @throws HoldfastError `ID_MALFORMED`, `OPTION_INVALID` */
export function givenForget(
  _: AttachmentContext,
  session: SessionName,
  id: string,
  wait?: WaitOptions,
): Call<ForgetAttachment> {
  const input = { session: sessionNamed(session), id: parseBlobHash(id) };
  return { input, wait: onlyWait(wait) };
}

/**
 * Forgets one attachment that no commit refers to; false when it is unknown. Committed attachments
 * are removed with their session.
 *
 * @throws HoldfastError `ATTACHMENT_COMMITTED`
 */
export const forgetAttachment = storeOperation("forgetAttachment", {
  key: (input) => input.session.id,
  *one(_: AttachmentContext, { session, id }: ForgetAttachment): Tx<boolean> {
    const { key } = yield* lockedSession(session);
    const forgotten = yield* forgetWith(
      [id],
      () =>
        run(sql`
          DELETE FROM holdfast_attachment WHERE session = ${key} AND id = ${id} AND committed_at IS NULL`),
      key,
    );
    if (forgotten > 0) return true;
    const kept = yield* row(sql`
      SELECT id FROM holdfast_attachment WHERE session = ${key} AND id = ${id}`);
    if (kept !== undefined) throw attachmentCommitted(id);
    return false;
  },
});

function attachmentCommitted(id: string): HoldfastError {
  return new HoldfastError(
    "ATTACHMENT_COMMITTED",
    `A commit refers to attachment ${id}, so it stays as long as its session. Nothing was changed. Delete or erase the session to remove it.`,
    { id },
  );
}
