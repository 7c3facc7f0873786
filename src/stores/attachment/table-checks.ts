import { isBlobHash } from "../../model/blob.ts";
import { textsOf } from "../../sql/dialect.ts";
import { rows } from "../../sql/operation.ts";
import type { Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { inSessions } from "../session-checks.ts";
import { distinct, tableCheck } from "../table-check.ts";
import type { TableCheck } from "../table-check.ts";

interface ManifestRow {
  readonly session: number;
  readonly id: string;
  readonly committed_at: number | null;
  readonly size: number;
}

const manifest = tableCheck<ManifestRow>({
  table: "holdfast_attachment",
  select: sql`SELECT t.session, t.id, t.intent_at, t.committed_at, t.size, t.media_type, t.width, t.height, t.label`,
  from: sql`FROM holdfast_attachment t`,
  order: sql`t.session, t.id`,
  behind: (last) => sql`(t.session, t.id) > (${last.session}, ${last.id})`,
  keyOf: (row) => `${row.session}/${row.id}`,
  judge: ({ id }) => (isBlobHash(id) ? undefined : "Its id is not a hash."),
  *partners(found) {
    const sizes = yield* storedSizes(distinct(found, ({ id }) => id));
    return yield* inSessions(found, (row) => {
      // An intent may not have bytes yet, or may have lost them.
      if (row.committed_at === null) return undefined;
      const size = sizes.get(row.id);
      if (size === undefined) return "No copy of its bytes is stored.";
      return size === row.size ? undefined : "Its bytes have another size.";
    });
  },
});

function* storedSizes(ids: readonly string[]): Tx<ReadonlyMap<string, number>> {
  const found = yield* rows<{ readonly id: string; readonly size: number }>(sql`
    SELECT id, size FROM holdfast_attachment_copy WHERE id IN ${textsOf(ids)} AND state = 'stored'`);
  return new Map(found.map(({ id, size }) => [id, size]));
}

interface CopyRow {
  readonly name: string;
  readonly id: string;
  readonly store: string;
  readonly state: string;
  readonly has_bytes: number;
}

const states: readonly string[] = ["writing", "stored", "condemned"];

const copy = tableCheck<CopyRow>({
  table: "holdfast_attachment_copy",
  select: sql`
    SELECT t.name, t.id, t.store, t.state, t.size, t.made_at, CASE WHEN EXISTS (
      SELECT 1 FROM holdfast_attachment_bytes b WHERE b.name = t.name) THEN 1 ELSE 0 END AS has_bytes`,
  from: sql`FROM holdfast_attachment_copy t`,
  order: sql`t.name`,
  behind: ({ name }) => sql`t.name > ${name}`,
  keyOf: ({ name }) => name,
  judge(row) {
    if (!states.includes(row.state)) return "Its state is unknown.";
    // Bytes elsewhere are not checked here: reads through their store verify them.
    const isHere = row.store === "database" && row.state === "stored";
    return isHere && row.has_bytes === 0 ? "Its bytes are missing." : undefined;
  },
});

interface BytesRow {
  readonly name: string;
  readonly content: Uint8Array;
  readonly id: string | null;
  readonly size: number | null;
}

const bytes = tableCheck<BytesRow>({
  table: "holdfast_attachment_bytes",
  select: sql`SELECT t.name, t.content, c.id, c.size`,
  from: sql`FROM holdfast_attachment_bytes t LEFT JOIN holdfast_attachment_copy c ON c.name = t.name`,
  order: sql`t.name`,
  behind: ({ name }) => sql`t.name > ${name}`,
  weight: sql`length(t.content)`,
  keyOf: ({ name }) => name,
  judge(row, tools) {
    if (row.id === null) return "The copy that these bytes belong to is missing.";
    return row.content.length === row.size && tools.bytes.sha256Hex(row.content) === row.id
      ? undefined
      : "They do not match their hash.";
  },
});

export const attachmentChecks: readonly TableCheck[] = [manifest, copy, bytes];
