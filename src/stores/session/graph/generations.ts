import type { SessionId } from "../../../model/session-id.ts";
import { textsOf } from "../../../sql/dialect.ts";
import { row, rows } from "../../../sql/operation.ts";
import type { Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";

/** The generation that deleting an id means: the one that lives, else the last; undefined when there never was one. */
export function* meantGeneration(id: SessionId): Tx<number | undefined> {
  const found = yield* row<{ readonly generation: number }>(sql`
    SELECT generation FROM holdfast_session WHERE id = ${id} AND generation > 0
    ORDER BY CASE WHEN deleted_at IS NULL THEN 0 ELSE 1 END, generation DESC LIMIT 1`);
  return found?.generation;
}

/** The keys of all generations of a session, tombstones too. */
export function* generationKeys(id: SessionId): Tx<readonly number[]> {
  const found = yield* rows<{ readonly key: number }>(sql`
    SELECT key FROM holdfast_session WHERE id = ${id}`);
  return found.map(({ key }) => key);
}

/** The generations there are of some ids, deleted ones too, as `id/generation`. */
export function* generationsThere(
  ids: readonly string[],
): Tx<ReadonlySet<string>> {
  if (ids.length === 0) return new Set();
  const found = yield* rows<{ readonly id: string; generation: number }>(sql`
    SELECT id, generation FROM holdfast_session WHERE id IN ${textsOf(ids)}`);
  return new Set(found.map(({ id, generation }) => `${id}/${generation}`));
}
