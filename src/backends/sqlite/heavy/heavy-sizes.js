// Plain JavaScript, run by the thread of heavy reads.
import { quoted } from "./heavy-connection.js";

const sampleRows = 200;

/** Every table and index of the file. Each is measured in its own snapshot. */
export function storedObjects(connection) {
  return connection
    .prepare(
      `SELECT name, type AS kind, tbl_name AS "table" FROM sqlite_schema
       WHERE rootpage > 0 ORDER BY tbl_name, type DESC, name`,
    )
    .all()
    .map((found) => ({ ...found }));
}

/** The pages of an object, or undefined when it was dropped in between. */
export function measure(connection, { name, kind, table }, useDbstat) {
  const schema = connection
    .prepare("SELECT wr FROM pragma_table_list(?) WHERE schema = 'main'")
    .get(table);
  if (schema === undefined) return undefined;
  const size = useDbstat
    ? pages(connection, name, schema.wr !== 0)
    : estimate(connection, name, kind, table);
  if (size === undefined) return undefined;
  const { bytes, rows, ...rest } = size;
  return {
    name,
    kind,
    table,
    bytes,
    ...(kind === "table" && { rows }),
    ...rest,
  };
}

/** Counts rows as the cells of a table's leaves; without rowid, of its inner pages too. */
function pages(connection, name, isWithoutRowid) {
  const { bytes, leafCells, cells } = connection
    .prepare(
      `SELECT sum(pgsize) AS bytes,
         sum(CASE pagetype WHEN 'leaf' THEN ncell ELSE 0 END) AS leafCells,
         sum(CASE pagetype WHEN 'overflow' THEN 0 ELSE ncell END) AS cells
       FROM dbstat WHERE name = ?`,
    )
    .get(name);
  if (bytes === null) return undefined;
  return { bytes, rows: isWithoutRowid ? cells : leafCells };
}

/** Estimates from the first rows, for a copy of SQLite built without dbstat. */
function estimate(connection, name, kind, table) {
  const { rows } = connection.prepare(`SELECT count(*) AS rows FROM ${quoted(table)}`).get();
  const columns = kind === "table" ? "*" : indexedColumns(connection, name).join(", ");
  const sample = connection
    .prepare(`SELECT ${columns || "NULL"} FROM ${quoted(table)} LIMIT ?`)
    .all(sampleRows);
  const sampleBytes = sample
    .flatMap((row) => Object.values(row))
    .reduce((sum, value) => sum + (value?.length ?? 8), 0);
  const bytes = sample.length === 0 ? 0 : Math.ceil((sampleBytes / sample.length + 8) * rows);
  return { bytes, rows, estimated: true };
}

function indexedColumns(connection, name) {
  return connection
    .prepare("SELECT name FROM pragma_index_info(?) WHERE name IS NOT NULL")
    .all(name)
    .map((column) => quoted(column.name));
}
