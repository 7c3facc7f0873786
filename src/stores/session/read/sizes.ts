import type { WaitOptions } from "../../../sql/database.ts";
import { keysOf } from "../../../sql/dialect.ts";
import { row, rows, storeOperation, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { attachmentSizesOf } from "../../attachment/attachment-row.ts";
import { sizesOfBlobs } from "../../blob/blob-row.ts";
import { onlyWait } from "../../method.ts";
import type { SessionContext } from "../context.ts";
import { sessionNamed, type SessionName } from "../../session-name.ts";
import { livingSession, type SessionRef } from "../../session-row.ts";
import { blobsOfSession } from "../state-row.ts";

/** A number of things, and the bytes of their content. */
interface Sized {
  readonly count: number;
  readonly bytes: number;
}

/** The storage of a session. */
export interface SessionSizes {
  /** Own nodes, including hidden ones. */
  readonly nodes: Sized;
  readonly frames: Sized;
  readonly components: Sized;
  readonly turns: Sized;
  readonly usage: Sized;
  /** The stored content of frames and components. Shared blobs count for each session. */
  readonly blobs: Sized;
  /** Shared attachments count for each session too. */
  readonly attachments: Sized;
  readonly totalBytes: number;
}

const nodesPerPage = 5_000;

export async function sizesOf(
  context: SessionContext,
  session: SessionName,
  options: WaitOptions | undefined,
): Promise<SessionSizes> {
  const { database } = context;
  const ref = sessionNamed(session);
  const wait = onlyWait(options);
  const parts = await database.read(measureParts(context), ref, wait);
  let nodes: Sized = { count: 0, bytes: 0 };
  let after: number | undefined = 0;
  while (after !== undefined) {
    const input = { session: ref, after, limit: nodesPerPage };
    const page: SizedPage = await database.read(measureNodes(context), input, wait);
    nodes = {
      count: nodes.count + page.count,
      bytes: nodes.bytes + page.bytes,
    };
    after = page.last;
  }
  const sized: readonly Sized[] = Object.values(parts);
  const totalBytes = sized.reduce((sum, { bytes }) => sum + bytes, nodes.bytes);
  return { nodes, ...parts, totalBytes };
}

interface SizedPage extends Sized {
  /** The key to continue from; undefined at the end. */
  readonly last: number | undefined;
}

interface MeasureNodes {
  readonly session: SessionRef;
  readonly after: number;
  readonly limit: number;
}

/** Measures own nodes, including hidden ones, in pages, since a conversation may be long. */
export const measureNodes = storeOperation("measureSessionNodes", {
  key: (input) => input.session.id,
  *one(_: SessionContext, { session, after, limit }: MeasureNodes): Tx<SizedPage> {
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

type SmallParts = Omit<SessionSizes, "nodes" | "totalBytes">;

/** Measures everything except the nodes. */
const measureParts = storeOperation("measureSessionParts", {
  key: (input) => input.id,
  *one(_: SessionContext, ref: SessionRef): Tx<SmallParts> {
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
      const { count = 0, bytes = 0 } = found.find((other) => other.part === part) ?? {};
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
});

/** A turn has at most a thousand frames and a few hundred components. */
const blobsMax = 10_000;
