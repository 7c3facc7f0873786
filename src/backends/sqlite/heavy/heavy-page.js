// Plain JavaScript, run by the thread of heavy reads.
import { quoted } from "./heavy-connection.js";

/** SQLite's names for the hidden key of a table; a column may shadow one. */
const rowidNames = ["rowid", "_rowid_", "oid"];
const rowidColumn = "holdfast:rowid";
const integerMax = BigInt(Number.MAX_SAFE_INTEGER);

/**
 * The plan for reading a table: the columns of its key, in a total order that the key's own index
 * has.
 */
export function planOf(connection, table) {
  const listed = connection
    .prepare(
      `SELECT l.name AS name, l.wr AS wr, s.sql AS text FROM pragma_table_list(?) l
       JOIN sqlite_schema s ON s.type = 'table' AND s.name = l.name
       WHERE l.schema = 'main' AND l.type IN ('table', 'shadow') AND l.name = ?`,
    )
    .get(table, table);
  if (listed === undefined) return undefined;
  const keys =
    Number(listed.wr) === 1
      ? primaryKey(connection, table, listed.text)
      : [hiddenKey(connection, table)];
  return { keys, source: quoted(listed.name) };
}

function hiddenKey(connection, table) {
  const columns = connection
    .prepare("SELECT lower(name) AS name FROM pragma_table_xinfo(?)")
    .all(table)
    .map(({ name }) => name);
  const free = rowidNames.find((name) => !columns.includes(name));
  if (free === undefined)
    throw new Error(
      `table ${table} cannot be read in pages, because its columns hide the rowid; rename one of ${rowidNames.join(", ")}`,
    );
  return { term: free, as: rowidColumn };
}

/**
 * The columns of a primary key. A key may have other collations than its columns, and reading in
 * the wrong order would skip rows. A spelled-out collation keeps SQLite from seeking by the whole
 * key, so it is used only in tables that have any.
 */
function primaryKey(connection, table, text) {
  const isCollated = /\bcollate\b/i.test(text);
  return connection
    .prepare(
      `SELECT x.name AS name, x.coll AS coll FROM pragma_index_list(?) l, pragma_index_xinfo(l.name) x
       WHERE l.origin = 'pk' AND x."key" = 1 ORDER BY x.seqno`,
    )
    .all(table)
    .map(({ name, coll }) => ({
      term: isCollated ? `${quoted(name)} COLLATE ${quoted(coll)}` : quoted(name),
      as: name,
    }));
}

/** The rows after a key, up to the limits of rows, bytes or time. */
export function readPage(connection, plan, request, nowMs) {
  const { after, rowsMax, bytesMax, msMax } = request;
  const terms = plan.keys.map(({ term }) => term).join(", ");
  const marks = plan.keys.map(() => "?").join(", ");
  const hidden = plan.keys[0].as === rowidColumn;
  const statement = connection.prepare(
    `SELECT ${hidden ? `${terms} AS ${quoted(rowidColumn)}, ` : ""}* FROM ${plan.source}
     ${after === undefined ? "" : `WHERE (${terms}) > (${marks})`} ORDER BY ${terms} LIMIT ?`,
  );
  // Integers are read exactly, independent of the driver's treatment of large ones.
  (statement.safeIntegers ?? statement.setReadBigInts).call(statement, true);
  const page = { rows: [], damaged: [], last: after, isLast: true };
  const untilMs = nowMs() + msMax;
  let bytes = 0;
  const bound = [...(after ?? []).map(parameter), BigInt(rowsMax + 1)];
  for (const found of statement.iterate(...bound)) {
    const taken = page.rows.length + page.damaged.length;
    const isFull = taken >= rowsMax || bytes >= bytesMax;
    if (taken > 0 && (isFull || nowMs() >= untilMs)) {
      page.isLast = false;
      break;
    }
    const key = plan.keys.map(({ as }) => readable(found[as]).value);
    if (taken === 0 && after !== undefined && isSameKey(key, after))
      throw Object.assign(new Error("a key is not valid text"), {
        code: "CORRUPT_ROW",
      });
    bytes += addRow(page, found, key);
    page.last = key;
  }
  return page;
}

/** Adds a row, or lists it as damaged when it has a value that cannot be read exactly. */
function addRow(page, found, key) {
  const row = Object.create(null);
  let bytes = 0;
  let isDamaged = false;
  for (const column in found) {
    if (column === rowidColumn) continue;
    const { value, isExact } = readable(found[column]);
    isDamaged ||= !isExact;
    bytes += value?.length ?? 8;
    row[column] = value;
  }
  if (isDamaged) page.damaged.push({ key });
  else page.rows.push(row);
  return bytes;
}

/** Values as the seam returns them: plain bytes, and exact numbers. */
function readable(value) {
  if (typeof value === "bigint") {
    const isExact = value <= integerMax && value >= -integerMax;
    return { value: isExact ? Number(value) : value, isExact };
  }
  if (value instanceof Uint8Array) return { value: Uint8Array.from(value), isExact: true };
  return { value, isExact: true };
}

/** Drivers bind numbers as REAL, so integers are bound as bigint. */
function parameter(value) {
  return Number.isInteger(value) ? BigInt(value) : value;
}

function isSameKey(left, right) {
  return left.every((value, index) => {
    const other = right[index];
    return value instanceof Uint8Array && other instanceof Uint8Array
      ? Buffer.compare(value, other) === 0
      : value === other;
  });
}
