import { HoldfastError } from "../model/errors.ts";
import { isStorable } from "../model/shape.ts";
import { spokenKind } from "../model/values/spoken-kind.ts";
import { spelled, sql } from "./statement.ts";
import type { Statement } from "./statement.ts";

/**
 * The only list of differences between the databases. Everything else in an
 * operation is the portable subset; each entry says why it must differ.
 */

export type Dialect = "sqlite" | "postgres";

/**
 * Locks the rows of a SELECT until the transaction ends, so that what was read
 * is still so when it writes; others that would change them wait. SQLite has
 * one writer, so every row is locked already. NO KEY, so that a child's
 * foreign-key insert does not wait.
 *
 * Under `readCommitted` it is what keeps a read and the write after it
 * together; in a serializable call it saves re-runs. A body that locks several
 * rows does so in one order everywhere, by ascending id for example, so that
 * no two wait for each other.
 *
 * @example
 * const found = yield* row<{ cents: number }>(
 *   sql`SELECT cents FROM account WHERE id = ${id} ${lockRow}`);
 */
export const lockRow: Statement = spelled({
  sqlite: "",
  postgres: "FOR NO KEY UPDATE",
});

/** Which row `lockRoot` locks, and what it reads of it. */
export interface RootTable {
  /** With its alias, if the columns have one: "holdfast_process p". */
  readonly table: string;
  /** Any column: it is set to what it is. */
  readonly unchanged: string;
  readonly columns: Statement;
}

/**
 * Locks a root row and reads it, as `SELECT columns FROM table WHERE … FOR NO
 * KEY UPDATE` would, but by an update that changes nothing. An update leaves a
 * new version of the row behind, so a transaction with an older snapshot that
 * comes to lock it is refused by the server and run again. After a mere lock it
 * would carry on with what its snapshot shows below that root, and let a lease
 * pass that somebody has taken over since. SQLite has no older snapshot to
 * write from, so there it is a plain SELECT.
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

/** Locks rows that others may lock in the same way and nobody may change or remove. */
export const lockShared: Statement = spelled({
  sqlite: "",
  postgres: "FOR SHARE",
});

/**
 * Keeps rows from those who would end them (`lockToEnd`), and from nobody else:
 * neither others who keep them nor who holds one by `lockRow` waits, so rows
 * may be kept in any order.
 */
export const keepRow: Statement = spelled({
  sqlite: "",
  postgres: "FOR KEY SHARE",
});

/**
 * Locks a root row that is about to end, once nobody keeps it any more. The
 * update that follows then counts as one of its key, so that who comes to keep
 * the row (`keepRow`) with an older snapshot is refused and run again.
 */
export const lockToEnd: Statement = spelled({
  sqlite: "",
  postgres: "FOR UPDATE",
});

/** Locks rows for a claim and passes over those another worker is claiming. */
export const skipLocked: Statement = spelled({
  sqlite: "",
  postgres: "FOR NO KEY UPDATE SKIP LOCKED",
});

/** An integer key that is never given out twice, also after deletions. */
export const autoKey: Statement = spelled({
  sqlite: "INTEGER PRIMARY KEY AUTOINCREMENT",
  postgres: "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
});

/**
 * The type of a column for whole numbers, with 64 bits on both databases.
 * Written as INTEGER it would have 32 on Postgres, where a number beyond 2^31
 * is then refused with `NUMBER_OUT_OF_RANGE`.
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

/** Ends CREATE TABLE: SQLite checks column types only when asked to. */
export const strict: Statement = spelled({ sqlite: "STRICT", postgres: "" });

/**
 * The column that orders a feed across aggregates. On Postgres a sequence is
 * taken at insert but visible at commit, so a reader past n can miss n − 1;
 * the transaction id tells which rows may still be joined by earlier ones.
 * SQLite commits in sequence order, so the column only keeps the twin's shape.
 */
export const feedTransaction: Statement = spelled({
  sqlite: "INTEGER NOT NULL DEFAULT 0",
  postgres: "XID8 NOT NULL DEFAULT pg_current_xact_id()",
});

/** Ends a feed's WHERE: rows that no running transaction can still precede. */
export const belowHorizon: Statement = spelled({
  sqlite: "1 = 1",
  postgres: "tx < pg_snapshot_xmin(pg_current_snapshot())",
});

/**
 * True where a snapshot is as new as its statement. In a serializable
 * transaction it is as old as the first one, and what it does not show may be
 * there all the same: nothing may be removed on the strength of that.
 */
export const seesLatest: Statement = spelled({
  sqlite: "1 = 1",
  postgres: "current_setting('transaction_isolation') = 'read committed'",
});

/**
 * True where each statement of a transaction has a snapshot of its own, so
 * that two of them may see different rows. On SQLite a transaction has one.
 */
export const isMoving: Statement = spelled({
  sqlite: "1 = 0",
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
 * The rows of a feed `e` behind a place, by an index on (tx, key). Given both
 * columns together, SQLite follows the index by the first alone, which has one
 * value there: it would walk over the whole feed at every call.
 */
export function behindPlace(tx: number, key: number): Statement {
  return sql`${feedStart}${tx}${feedNext}${key}${feedEnd}`;
}

/** The names of our tables; each database has its own catalogue. */
export const ownTables: Statement = spelled({
  sqlite: `SELECT name FROM sqlite_schema
    WHERE type = 'table' AND substr(name, 1, 9) = 'holdfast_' ORDER BY name`,
  postgres: `SELECT tablename AS name FROM pg_tables
    WHERE schemaname = current_schema() AND starts_with(tablename, 'holdfast_') ORDER BY tablename COLLATE "C"`,
});

/** One text per column and index of our tables, in a stable order. */
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
  // As information_schema.columns tells it, which costs the server several times as much.
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
 * A list of integers, for `IN`: one statement for any number of them, none
 * included. Each database takes JSON apart in its own way. A single one, the
 * usual case, is bound as it is: 0.9 µs for a lookup on SQLite, 2.7 by JSON.
 *
 * @throws HoldfastError `PARAMETER_INVALID` for what is no list of whole numbers within ±(2^53 − 1)
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
 * The same for texts.
 *
 * @throws HoldfastError `PARAMETER_INVALID` for what is no list of texts, or one with U+0000 or a lone surrogate
 * @example
 * yield* run(sql`DELETE FROM account WHERE name IN ${textsOf(names)}`);
 */
export function textsOf(items: readonly string[]): Statement {
  checkList("textsOf", items, textsSaid, isStorable);
  const [only] = items;
  if (only !== undefined && items.length === 1) return sql`(${only})`;
  return rowsOfTexts(items);
}

/** Texts as rows of one column `value`, for FROM. */
export function textRows(items: readonly string[]): Statement {
  checkList("textRows", items, textsSaid, isStorable);
  return rowsOfTexts(items);
}

function rowsOfTexts(items: readonly string[]): Statement {
  return sql`(SELECT value FROM ${itemsStart}${JSON.stringify(items)}${itemsEnd})`;
}

const textsSaid = "texts without U+0000 and lone surrogates";

function isInteger(item: unknown): boolean {
  return Number.isSafeInteger(item);
}

/** Inside JSON text no other check would see them. */
function checkList(
  name: string,
  items: readonly unknown[],
  expected: string,
  isItem: (item: unknown) => boolean,
): void {
  if (Array.isArray(items) && items.every(isItem)) return;
  throw new HoldfastError(
    "PARAMETER_INVALID",
    `${name} takes a list of ${expected}; got ${Array.isArray(items) ? "one with something else" : spokenKind(items)}.`,
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
 * The rows of one session after a key, up to and with another, by an index on
 * (session, key): `WHERE ${keysOf(session, after)} ORDER BY session, key LIMIT
 * n`. Given `session = …`, Postgres rather walks along the primary key and so
 * over all other sessions' rows (300 ms beside 300,000 of them); it is held to
 * the index by comparing both columns together, and told by the range how few
 * rows these are, also when it plans for any parameters. SQLite would then
 * search by the session alone, and walk over all keys before the first.
 */
export function keysOf(
  session: number,
  after: number,
  until: number = Number.MAX_SAFE_INTEGER,
): Statement {
  return sql`(session >= ${session} AND session <= ${session}
    AND ${keysOwner}${session}${keysAfter}${after}${keysBetween}${session}${keysUntil}${until}${keysEnd}`;
}
