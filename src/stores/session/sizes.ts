import { keysOf } from "../../sql/dialect.ts";
import { row, rows, plainOperation } from "../../sql/operation.ts";
import type { Operation } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { attachmentSizesOf } from "../attachment/attachment-row.ts";
import { sizesOfBlobs } from "../blob/blob-row.ts";
import { blobsOfSession } from "./roots.ts";
import { livingSession } from "./session-row.ts";
import type { SessionRef } from "./session-row.ts";

/** How many there are, and the bytes of their content. */
export interface Sized {
  readonly count: number;
  readonly bytes: number;
}

interface MeasureNodes {
  readonly session: SessionRef;
  readonly after: number;
  readonly limit: number;
}

/** Own nodes, also hidden ones, in pages: a long conversation is not measured at once. */
export const measureNodes: Operation<
  MeasureNodes,
  Sized & { readonly last: number | undefined }
> = plainOperation("measureSessionNodes", {
  key: (input: MeasureNodes) => input.session.id,
  *one({ session, after, limit }) {
    const { key } = yield* livingSession(session);
    const found = yield* row<{
      readonly count: number;
      readonly bytes: number | null;
      readonly last: number | null;
    }>(sql`
      SELECT COUNT(*) AS count, CAST(SUM(bytes) AS BIGINT) AS bytes, MAX(key) AS last FROM (
        SELECT key, OCTET_LENGTH(payload) AS bytes FROM holdfast_session_node
        WHERE ${keysOf(key, after)} ORDER BY session, key LIMIT ${limit}) AS page`);
    const count = found?.count ?? 0;
    return {
      count,
      bytes: found?.bytes ?? 0,
      last: count < limit ? undefined : (found?.last ?? undefined),
    };
  },
});

export interface SmallParts {
  readonly frames: Sized;
  readonly components: Sized;
  readonly turns: Sized;
  readonly usage: Sized;
  /** The content of frames and components, as stored; what is shared counts for each. */
  readonly blobs: Sized;
  /** Shared ones count for each too. */
  readonly attachments: Sized;
}

/** Everything but the nodes. */
export const measureParts: Operation<SessionRef, SmallParts> = plainOperation(
  "measureSessionParts",
  {
    key: (input: SessionRef) => input.id,
    *one(ref) {
      const { key } = yield* livingSession(ref);
      const found = yield* rows<{
        readonly part: string;
        readonly count: number;
        readonly bytes: number | null;
      }>(sql`
        SELECT 'frames' AS part, COUNT(*) AS count, CAST(SUM(OCTET_LENGTH(payload)) AS BIGINT) AS bytes
        FROM holdfast_session_frame WHERE session = ${key}
        UNION ALL
        SELECT 'components', COUNT(*), CAST(SUM(OCTET_LENGTH(name)) AS BIGINT)
        FROM holdfast_session_component WHERE session = ${key}
        UNION ALL
        SELECT 'turns', COUNT(*), CAST(SUM(OCTET_LENGTH(parts) + OCTET_LENGTH(result)) AS BIGINT)
        FROM holdfast_session_turn WHERE session = ${key}
        UNION ALL
        SELECT 'usage', COUNT(*), CAST(SUM(OCTET_LENGTH(source) + OCTET_LENGTH(model)) AS BIGINT)
        FROM holdfast_session_usage WHERE session = ${key}`);
      const sized = (part: string): Sized => {
        const { count = 0, bytes = 0 } =
          found.find((other) => other.part === part) ?? {};
        return { count, bytes: bytes ?? 0 };
      };
      const hashes = yield* blobsOfSession(key, "", blobsMax);
      const blobs = yield* sizesOfBlobs(hashes);
      const files = yield* attachmentSizesOf(key);
      return {
        frames: sized("frames"),
        components: sized("components"),
        turns: sized("turns"),
        usage: sized("usage"),
        blobs: {
          count: blobs.length,
          bytes: blobs.reduce((sum, { stored }) => sum + stored, 0),
        },
        attachments: { count: files.attachments, bytes: files.size },
      };
    },
  },
);

/** A turn has at most a thousand frames and some hundred components. */
const blobsMax = 10_000;
