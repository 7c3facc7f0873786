import { textsOf } from "../../sql/dialect.ts";
import { row, rows } from "../../sql/operation.ts";
import type { Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import type { BlobRoots } from "../blob/root-row.ts";

interface Hash {
  readonly blob: string;
}

/** The components of every checkpoint keep their blobs. */
const componentRoots: BlobRoots = {
  *usedOf(hashes) {
    const found = yield* rows<Hash>(sql`
      SELECT DISTINCT blob FROM holdfast_session_component WHERE blob IN ${textsOf(hashes)}`);
    return found.map(({ blob }) => blob);
  },
  *page(after, limit) {
    const found = yield* rows<Hash>(
      after === null
        ? sql`SELECT DISTINCT blob FROM holdfast_session_component ORDER BY blob LIMIT ${limit}`
        : sql`SELECT DISTINCT blob FROM holdfast_session_component WHERE blob > ${after} ORDER BY blob LIMIT ${limit}`,
    );
    return found.map(({ blob }) => blob);
  },
  *rootOf(hash) {
    const found = yield* row<{ session: number; name: string }>(sql`
      SELECT session, name FROM holdfast_session_component WHERE blob = ${hash} ORDER BY session, name LIMIT 1`);
    return {
      table: "holdfast_session_component",
      key: `${found?.session}/${found?.name}`,
    };
  },
};

/** So does every frame, also one that is no longer the current. */
const frameRoots: BlobRoots = {
  *usedOf(hashes) {
    const found = yield* rows<Hash>(sql`
      SELECT DISTINCT blob FROM holdfast_session_frame WHERE blob IN ${textsOf(hashes)}`);
    return found.map(({ blob }) => blob);
  },
  *page(after, limit) {
    const found = yield* rows<Hash>(
      after === null
        ? sql`SELECT DISTINCT blob FROM holdfast_session_frame WHERE blob IS NOT NULL ORDER BY blob LIMIT ${limit}`
        : sql`SELECT DISTINCT blob FROM holdfast_session_frame WHERE blob > ${after} ORDER BY blob LIMIT ${limit}`,
    );
    return found.map(({ blob }) => blob);
  },
  *rootOf(hash) {
    const found = yield* row<{ session: number; id: string }>(sql`
      SELECT session, id FROM holdfast_session_frame WHERE blob = ${hash} ORDER BY session, id LIMIT 1`);
    return {
      table: "holdfast_session_frame",
      key: `${found?.session}/${found?.id}`,
    };
  },
};

/** What sessions keep: heads, their frames, and those of forks alike. */
export const sessionRoots: readonly BlobRoots[] = [componentRoots, frameRoots];

/** The blobs of one session, each once and in order, after `after` or from the beginning ("" is no hash). */
export function* blobsOfSession(
  session: number,
  after: string,
  limit: number,
): Tx<readonly string[]> {
  const found = yield* rows<Hash>(sql`
    SELECT blob FROM holdfast_session_component WHERE session = ${session} AND blob > ${after}
    UNION
    SELECT blob FROM holdfast_session_frame WHERE session = ${session} AND blob > ${after}
    ORDER BY blob LIMIT ${limit}`);
  return found.map(({ blob }) => blob);
}
