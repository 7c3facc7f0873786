import { HoldfastError } from "../model/errors.ts";
import { isStorable, listItemsMax } from "../model/shape.ts";
import { spokenKind } from "../model/values/spoken-kind.ts";
import { spelled, sql } from "./statement.ts";
import type { Statement } from "./statement.ts";

/**
 * The only list of differences between the databases. The rest of an operation is the portable
 * subset. Each entry says why it must differ.
 */

export type Dialect = "sqlite" | "postgres";

/**
 * Locks the rows of a SELECT until the transaction ends, so that the rows it read are unchanged
 * when it writes. Other transactions that would change them wait. SQLite has one writer, so every
 * row is already locked. NO KEY lets a child's foreign-key insert proceed without waiting.
 *
 * Under `readCommitted` it keeps a read and the following write together. In a serializable call it
 * saves retries. A body that locks several rows must use the same order everywhere, for example by
 * ascending id, so that no two bodies wait for each other.
 *
 * @example
 * const found = yield* row<{ cents: number }>(
 *   sql`SELECT cents FROM account WHERE id = ${id} ${lockRow}`);
 */
export const lockRow: Statement = spelled({
  sqlite: "",
  postgres: "FOR NO KEY UPDATE",
});

/** The table that `lockRoot` locks, and the columns that it reads. */
export interface RootTable {
  /** The table with its alias, if the columns use one: "holdfast_process p". */
  readonly table: string;
  /** Any column; the update sets it to its own value. */
  readonly unchanged: string;
  readonly columns: Statement;
}

/**
 * Locks a root row and reads it, like `SELECT columns FROM table WHERE … FOR NO KEY UPDATE`, but by
 * an update that changes nothing. The update leaves a new version of the row. If a transaction with
 * an older snapshot then tries to lock the row, the server refuses it, and it is retried. After a
 * plain lock it would continue with the rows below that root as its old snapshot shows them, and
 * could accept a lease that another holder has taken over. SQLite never writes from an older
 * snapshot, so there it is a plain SELECT.
 */
export function lockRoot(root: RootTable): (where: Statement) => Statement {
  const { table, unchanged, columns } = root;
  const begin = spelled({
    sqlite: `SELECT ${columns.template.sqlite} FROM ${table} WHERE `,
    postgres: `UPDATE ${table} SET ${unchanged} = ${unchanged} WHERE `,
  });
  const end = spelled({
    sqlite: "",
    postgres: ` RETURNING ${columns.template.postgres}`,
  });
  return (where) => sql`${begin}${where}${end}`;
}

/** A table whose rows have a unique name, and a row of it that stands for a free name. */
export interface NamedTable {
  readonly table: string;
  /** The unique columns, of which the last one is `name`. */
  readonly unique: string;
  /** The other columns that need a value, and their values in a row that stands for a free name. */
  readonly others: string;
  readonly placeholder: string;
}

/**
 * Takes a free name until the transaction ends: others that insert it wait. There is no row to
 * lock, so it inserts one, which is to be deleted at once: the unique index keeps waiting for this
 * transaction all the same. If another transaction has inserted the name meanwhile, its row is
 * locked. SQLite has one writer, so every free name is already taken.
 */
export function takeName(named: NamedTable): (name: Statement) => Statement {
  const { table, unique, others, placeholder } = named;
  const begin = spelled({
    sqlite: "SELECT ",
    postgres: `INSERT INTO ${table} (${unique}, ${others}) SELECT `,
  });
  const end = spelled({
    sqlite: " WHERE FALSE",
    postgres:
      `, ${placeholder} ON CONFLICT (${unique}) DO UPDATE SET name = excluded.name ` +
      "RETURNING 1 AS taken",
  });
  return (name) => sql`${begin}${name}${end}`;
}

/** Locks rows against changes and removal. Other transactions may take the same lock. */
export const lockShared: Statement = spelled({
  sqlite: "",
  postgres: "FOR SHARE",
});

/**
 * Protects rows from transactions that would end them (`lockToEnd`), and from no others.
 * Transactions that keep the same row, or hold it by `lockRow`, do not wait. So rows may be kept in
 * any order.
 */
export const keepRow: Statement = spelled({
  sqlite: "",
  postgres: "FOR KEY SHARE",
});

/**
 * Locks a root row that is about to end, once no transaction keeps it. The update that follows then
 * counts as a change of its key. So a transaction with an older snapshot that keeps the row
 * (`keepRow`) is refused and retried.
 */
export const lockToEnd: Statement = spelled({
  sqlite: "",
  postgres: "FOR UPDATE",
});

/** Locks rows for a claim and skips rows that another worker is claiming. */
export const skipLocked: Statement = spelled({
  sqlite: "",
  postgres: "FOR NO KEY UPDATE SKIP LOCKED",
});

/** An integer key that is never issued twice, even after deletions. */
export const autoKey: Statement = spelled({
  sqlite: "INTEGER PRIMARY KEY AUTOINCREMENT",
  postgres: "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
});

/**
 * The column type for whole numbers, with 64 bits on both databases. INTEGER has only 32 bits on
 * Postgres, which would refuse a number beyond 2^31 with `NUMBER_OUT_OF_RANGE`.
 * @example sql`CREATE TABLE account (id ${text} PRIMARY KEY, cents ${integer} NOT NULL)`
 */
export const integer: Statement = spelled({
  sqlite: "INTEGER",
  postgres: "BIGINT",
});

/** A text column ordered by code point, as SQLite's BINARY collation does. */
export const text: Statement = spelled({
  sqlite: "TEXT",
  postgres: 'TEXT COLLATE "C"',
});

export const bytes: Statement = spelled({ sqlite: "BLOB", postgres: "BYTEA" });

/** The end of CREATE TABLE: SQLite checks column types only on request. */
export const strict: Statement = spelled({ sqlite: "STRICT", postgres: "" });

/**
 * The column that orders a feed across aggregates. Postgres takes a sequence number at insert but
 * shows the row at commit, so a reader past n can miss n − 1. The transaction id tells which rows
 * may still be preceded by earlier ones. SQLite commits in sequence order, so there the column only
 * keeps the shape of its twin.
 */
export const feedTransaction: Statement = spelled({
  sqlite: "INTEGER NOT NULL DEFAULT 0",
  postgres: "XID8 NOT NULL DEFAULT pg_current_xact_id()",
});

/** The end of a feed's WHERE: only rows that no running transaction can still precede. */
export const belowHorizon: Statement = spelled({
  sqlite: "1 = 1",
  postgres: "tx < pg_snapshot_xmin(pg_current_snapshot())",
});

/**
 * True where a snapshot is as new as its statement. In a serializable transaction the snapshot is
 * as old as the first statement, and rows that it does not show may exist. Nothing may be removed
 * because such a snapshot shows no row.
 */
export const seesLatest: Statement = spelled({
  sqlite: "1 = 1",
  postgres: "current_setting('transaction_isolation') = 'read committed'",
});

const feedStart: Statement = spelled({
  sqlite: "e.tx = ",
  postgres: "(e.tx, e.key) > (",
});
const feedNext: Statement = spelled({
  sqlite: " AND e.key > ",
  postgres: ", ",
});
const feedEnd: Statement = spelled({ sqlite: "", postgres: ")" });

/**
 * Selects the rows of a feed `e` after a place, by an index on (tx, key). With a row comparison,
 * SQLite would use the index only for `tx`, which always has the same value there. It would then
 * walk the whole feed at every call.
 */
export function behindPlace(tx: number, key: number): Statement {
  return sql`${feedStart}${tx}${feedNext}${key}${feedEnd}`;
}

/** The names of Holdfast's tables. Each database has its own catalogue. */
export const ownTables: Statement = spelled({
  sqlite: `SELECT name FROM sqlite_schema
    WHERE type = 'table' AND substr(name, 1, 9) = 'holdfast_' ORDER BY name`,
  postgres: `SELECT tablename AS name FROM pg_tables
    WHERE schemaname = current_schema() AND starts_with(tablename, 'holdfast_') ORDER BY tablename COLLATE "C"`,
});

/** One text per column and index of Holdfast's tables, in a stable order. */
export const ownColumns: Statement = spelled({
  sqlite: `SELECT t.name || '.' || c.name || ' ' || c.type || ' ' || c."notnull" AS fact
    FROM sqlite_schema t JOIN pragma_table_xinfo(t.name) c
    WHERE t.type = 'table' AND substr(t.name, 1, 9) = 'holdfast_'
    UNION ALL
    SELECT 'index ' || i.name || ' on ' || t.name || ' ' || i."unique" || ' ' || i.partial
    FROM sqlite_schema t JOIN pragma_index_list(t.name) i
    WHERE t.type = 'table' AND substr(t.name, 1, 9) = 'holdfast_'
      AND (substr(i.name, 1, 9) = 'holdfast_' OR i.origin <> 'c')
    ORDER BY 1`,
  // The same facts as information_schema.columns, which costs the server several times as much.
  postgres: `SELECT t.relname || '.' || c.attname || ' ' || format_type(c.atttypid, NULL) || ' ' || CASE WHEN c.attnotnull THEN 'NO' ELSE 'YES' END AS fact
    FROM pg_attribute c JOIN pg_class t ON t.oid = c.attrelid JOIN pg_namespace n ON n.oid = t.relnamespace
    WHERE n.nspname = current_schema() AND starts_with(t.relname, 'holdfast_') AND t.relkind IN ('r', 'v', 'f', 'p')
      AND c.attnum > 0 AND NOT c.attisdropped
    UNION ALL
    SELECT 'index ' || i.relname || ' on ' || t.relname || ' ' || x.indisunique::text || ' ' || (x.indpred IS NOT NULL)::text
    FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class t ON t.oid = x.indrelid
      JOIN pg_namespace n ON n.oid = t.relnamespace
    WHERE n.nspname = current_schema() AND starts_with(t.relname, 'holdfast_') AND starts_with(i.relname, 'holdfast_')
    ORDER BY 1`,
});

const itemsStart: Statement = spelled({
  sqlite: "json_each(",
  postgres: "json_array_elements_text((",
});
const itemsEnd: Statement = spelled({
  sqlite: ")",
  postgres: ")::json) AS items (value)",
});

/**
 * A list of integers for `IN`: one statement serves up to 1,000,000 of them, also none. Each
 * database reads JSON in its own way. A single integer, the usual case, is bound directly: a lookup
 * on SQLite takes 0.9 µs, and 2.7 µs through JSON.
 *
 * @throws HoldfastError `PARAMETER_INVALID` unless it is a list of whole numbers within ±(2^53 − 1)
 * @example
 * const found = yield* rows<{ id: number }>(
 *   sql`SELECT id FROM account WHERE id IN ${integersOf(ids)} ORDER BY id`);
 */
export function integersOf(items: readonly number[]): Statement {
  checkList("integersOf", items, "whole numbers within ±(2^53 − 1)", isInteger);
  const [only] = items;
  if (only !== undefined && items.length === 1) return sql`(${only})`;
  return sql`(SELECT CAST(value AS BIGINT) FROM ${itemsStart}${JSON.stringify(items)}${itemsEnd})`;
}

/**
 * A list of texts for `IN`.
 *
 * @throws HoldfastError `PARAMETER_INVALID` unless it is a list of texts without U+0000 and lone
 * surrogates
 * @example
 * yield* run(sql`DELETE FROM account WHERE name IN ${textsOf(names)}`);
 */
export function textsOf(items: readonly string[]): Statement {
  checkList("textsOf", items, textsSaid, isStorable);
  const [only] = items;
  if (only !== undefined && items.length === 1) return sql`(${only})`;
  return rowsOfTexts(items);
}

/** Texts as rows with one column `value`, for FROM. */
export function textRows(items: readonly string[]): Statement {
  checkList("textRows", items, textsSaid, isStorable);
  return rowsOfTexts(items);
}

function rowsOfTexts(items: readonly string[]): Statement {
  return sql`(SELECT value FROM ${itemsStart}${JSON.stringify(items)}${itemsEnd})`;
}

const pairsStart: Statement = spelled({
  sqlite: "json_each(",
  postgres: "json_array_elements((",
});

/** Pairs of integers as rows with the columns `one` and `other`, for FROM. */
export function pairRows(items: readonly (readonly [number, number])[]): Statement {
  checkList("pairRows", items.flat(), "whole numbers within ±(2^53 − 1)", isInteger);
  return sql`(SELECT CAST(value ->> 0 AS BIGINT) AS one, CAST(value ->> 1 AS BIGINT) AS other
    FROM ${pairsStart}${JSON.stringify(items)}${itemsEnd})`;
}

const textsSaid = "strings without U+0000 or lone surrogates";

function isInteger(item: unknown): boolean {
  return Number.isSafeInteger(item);
}

/**
 * Checks the items here, because no other check sees them inside JSON text. `every` would skip
 * holes.
 */
function checkList(
  name: string,
  items: readonly unknown[],
  expected: string,
  isItem: (item: unknown) => boolean,
): void {
  const isTooLong = Array.isArray(items) && items.length > listItemsMax;
  if (Array.isArray(items) && !isTooLong && items.findIndex((item) => !isItem(item)) < 0) return;
  const found = isTooLong ? `one of more than ${listItemsMax}` : "one with something else";
  throw new HoldfastError(
    "PARAMETER_INVALID",
    `${name} takes an array of ${expected}; got ${Array.isArray(items) ? found : spokenKind(items)}.`,
    { found: spokenKind(items) },
  );
}

const keysOwner: Statement = spelled({
  sqlite: "session = ",
  postgres: "(session, key) > (",
});
const keysAfter: Statement = spelled({
  sqlite: " AND key > ",
  postgres: ", ",
});
const keysBetween: Statement = spelled({
  sqlite: " AND session = ",
  postgres: ") AND (session, key) <= (",
});
const keysUntil: Statement = spelled({
  sqlite: " AND key <= ",
  postgres: ", ",
});
const keysEnd: Statement = spelled({ sqlite: ")", postgres: "))" });

/**
 * Selects the rows of one session after a key, up to and including another, by an index on
 * (session, key): `WHERE ${keysOf(session, after)} ORDER BY session, key LIMIT n`. With `session =
 * …` Postgres prefers to walk the primary key, and so the rows of all other sessions (300 ms beside
 * 300,000 of them). Comparing both columns together holds it to the index. The range tells it how
 * few rows these are, even in a generic plan. SQLite would search that row comparison by the
 * session only and walk all keys before the first, so there each column is compared by itself.
 */
export function keysOf(
  session: number,
  after: number,
  until: number = Number.MAX_SAFE_INTEGER,
): Statement {
  return sql`(session >= ${session} AND session <= ${session}
    AND ${keysOwner}${session}${keysAfter}${after}${keysBetween}${session}${keysUntil}${until}${keysEnd}`;
}
