import { isBlobHash } from "../../model/blob.ts";
import { corruptRow } from "../../model/corrupt-row.ts";
import { checkedInstant } from "../../model/shape.ts";
import { rows, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import {
  list,
  pageOf,
  sliced,
  type List,
  type PageOptions,
  type Slice,
  type SliceBounds,
} from "../list.ts";
import { sessionNamed, type SessionName } from "../session-name.ts";
import { livingSession, type SessionRef } from "../session-row.ts";
import {
  attachmentOf,
  manifestColumns,
  type Attachment,
  type ManifestRow,
} from "./attachment-row.ts";
import type { AttachmentContext } from "./context.ts";

const table = "holdfast_attachment";

const keyOf = ({ id }: ManifestRow): string => id;

/** @throws HoldfastError `CORRUPT_ROW` */
function itemOf(_: AttachmentContext, found: ManifestRow): Attachment {
  if (isBlobHash(found.id)) return attachmentOf(found);
  throw corruptRow(table, found.id, "has an id that is not a hash");
}

/**
 * The attachments of a session, in the order of their ids.
 * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`
 */
export const attachmentList: List<
  AttachmentContext,
  [session: SessionName, options?: PageOptions],
  Attachment
> = list("listAttachments", {
  table,
  given(_: AttachmentContext, session: SessionName, options?: PageOptions) {
    const { page } = pageOf(options, []);
    return { filter: { session: sessionNamed(session) }, page };
  },
  slice: attachmentSlice,
  keyOf,
  itemOf,
});

function* attachmentSlice(
  _: AttachmentContext,
  { session }: { readonly session: SessionRef },
  bounds: SliceBounds,
): Tx<Slice<ManifestRow>> {
  const { key } = yield* livingSession(session);
  return yield* sliced(
    bounds,
    ({ id }: ManifestRow) => [id],
    function* (after, count) {
      return yield* rows<ManifestRow>(sql`
        SELECT ${manifestColumns} FROM holdfast_attachment
        WHERE session = ${key} AND id > ${after?.[0] ?? ""} ORDER BY id LIMIT ${count}`);
    },
  );
}

interface UncommittedFilter {
  readonly session: SessionRef;
  readonly until: number;
}

/**
 * Unstamped intents of a session up to an instant, oldest first.
 * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`
 */
export const uncommittedList: List<
  AttachmentContext,
  [session: SessionName, until: number, options?: PageOptions],
  Attachment
> = list("listUncommitted", {
  table,
  given(_: AttachmentContext, session: SessionName, until: number, options?: PageOptions) {
    const { page } = pageOf(options, []);
    const filter = {
      session: sessionNamed(session),
      until: checkedInstant("until", until),
    };
    return { filter, page };
  },
  slice: uncommittedSlice,
  keyOf,
  itemOf,
});

function* uncommittedSlice(
  _: AttachmentContext,
  { session, until }: UncommittedFilter,
  bounds: SliceBounds,
): Tx<Slice<ManifestRow>> {
  const { key } = yield* livingSession(session);
  return yield* sliced(
    bounds,
    (found: ManifestRow) => [found.intent_at, found.id],
    function* (after, count) {
      const [intentAt, id] = after ?? [-1, ""];
      return yield* rows<ManifestRow>(sql`
        SELECT ${manifestColumns} FROM holdfast_attachment
        WHERE session = ${key} AND committed_at IS NULL AND intent_at <= ${until}
          AND (intent_at, id) > (${intentAt ?? -1}, ${id ?? ""}) ORDER BY intent_at, id LIMIT ${count}`);
    },
  );
}
