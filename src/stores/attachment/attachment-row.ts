import { integersOf, textsOf } from "../../sql/dialect.ts";
import { row, rows, run } from "../../sql/operation.ts";
import type { Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import type { OwnedRows } from "../removal.ts";
import { forgetAttachments } from "./forget.ts";

/** Those of some attachments of which no store has a complete copy. */
export function* withoutBytes(ids: readonly string[]): Tx<readonly string[]> {
  const found = yield* rows<{ readonly id: string }>(sql`
    SELECT DISTINCT id FROM holdfast_attachment_copy
    WHERE id IN ${textsOf(ids)} AND state = 'stored'`);
  const stored = new Set(found.map(({ id }) => id));
  return ids.filter((id) => !stored.has(id));
}

/** What goes with a session: its attachments. */
export const attachmentsOwned: readonly OwnedRows[] = [
  { table: "holdfast_attachment", remove: removeWithBytes },
];

/**
 * Takes along the bytes that are in the database. Those in files go when
 * somebody who knows the folder removes what was forgotten.
 */
function* removeWithBytes(session: number, rowsMax: number): Tx<number> {
  const found = yield* rows<{ readonly id: string }>(sql`
    SELECT id FROM holdfast_attachment WHERE session = ${session} ORDER BY id LIMIT ${rowsMax}`);
  if (found.length === 0) return 0;
  const forgotten = yield* forgetAttachments(session, rowsMax);
  const copies = yield* rows<{ readonly name: string }>(sql`
    SELECT name FROM holdfast_attachment_copy
    WHERE id IN ${textsOf(found.map(({ id }) => id))} AND store = 'database' AND state = 'condemned'`);
  if (copies.length === 0) return forgotten;
  const names = textsOf(copies.map(({ name }) => name));
  yield* run(sql`DELETE FROM holdfast_attachment_bytes WHERE name IN ${names}`);
  yield* run(sql`DELETE FROM holdfast_attachment_copy WHERE name IN ${names}`);
  return forgotten;
}

/** How many copies some sessions were the last to have whose bytes are still there. */
export function* pendingCopies(sessions: readonly number[]): Tx<number> {
  const found = yield* row<{ readonly count: number }>(sql`
    SELECT COUNT(*) AS count FROM holdfast_attachment_copy
    WHERE state = 'condemned' AND condemned_for IN ${integersOf(sessions)}`);
  return found?.count ?? 0;
}
