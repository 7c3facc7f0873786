import { row, rows, plainOperation } from "../../sql/operation.ts";
import type { Operation, Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";

/** What attachments take. */
export interface AttachmentSizes {
  readonly attachments: number;
  readonly size: number;
}

/** What the attachments of one session take, shared or not. */
export function* attachmentSizesOf(session: number): Tx<AttachmentSizes> {
  const found = yield* row<AttachmentSizes>(sql`
    SELECT count(*) AS attachments, coalesce(sum(size), 0) AS size
    FROM holdfast_attachment WHERE session = ${session}`);
  return found ?? { attachments: 0, size: 0 };
}

interface SizesAfter {
  readonly after: string;
  readonly limit: number;
}

export interface CopiesPage {
  readonly sizes: AttachmentSizes;
  readonly next: string | undefined;
}

/** What the next stored copies take, of whichever session. */
export const attachmentSizesAfter: Operation<SizesAfter, CopiesPage> =
  plainOperation("attachmentSizesAfter", {
    key: () => "",
    *one({ after, limit }: SizesAfter) {
      const found = yield* rows<{ name: string; state: string; size: number }>(
        sql`
        SELECT name, state, size FROM holdfast_attachment_copy
        WHERE name > ${after} ORDER BY name LIMIT ${limit}`,
      );
      const stored = found.filter(({ state }) => state === "stored");
      return {
        sizes: {
          attachments: stored.length,
          size: stored.reduce((sum, { size }) => sum + size, 0),
        },
        next: found.length < limit ? undefined : found.at(-1)?.name,
      };
    },
  });
