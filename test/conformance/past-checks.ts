import { rows, run } from "../../src/sql/operation.ts";
import type { Tx } from "../../src/sql/operation.ts";
import { spelled, sql } from "../../src/sql/statement.ts";
import type { Statement } from "../../src/sql/statement.ts";
import type { Database } from "../../src/sql/database.ts";

/**
 * Changes rows to what no operation of ours writes and the checks of our
 * tables refuse, as a broken disk would. These tables have no checks from then
 * on; on Postgres they never had.
 */
export function* pastChecks(
  { dialect }: Pick<Database, "dialect">,
  ...statements: readonly Statement[]
): Tx<void> {
  if (dialect === "sqlite")
    for (const table of new Set(statements.flatMap(tablesIn))) yield* rebuildWithoutCheck(table);
  for (const statement of statements) yield* run(statement);
}

function tablesIn({ template }: Statement): readonly string[] {
  const named = template.sqlite.matchAll(/(?:UPDATE|INTO) (holdfast_\w+)/g);
  return [...named].map(([, table]) => String(table));
}

/** SQLite cannot drop a constraint, so the table is made anew and takes the place of the old one. */
function* rebuildWithoutCheck(table: string): Tx<void> {
  const objects = yield* rows<{ readonly name: string; readonly text: string }>(
    sql`SELECT name, sql AS text FROM sqlite_schema WHERE tbl_name = ${table} AND sql IS NOT NULL`,
  );
  const own = objects.find(({ name }) => name === table);
  const made = own && withoutCheck(own.text, `CONSTRAINT ${table}_sound CHECK`);
  if (made === undefined) return;
  yield* run(said(made.replace(table, "app_rebuilt")));
  yield* run(said(`INSERT INTO app_rebuilt SELECT * FROM ${table}`));
  yield* run(said(`DROP TABLE ${table}`));
  yield* run(said(`ALTER TABLE app_rebuilt RENAME TO ${table}`));
  for (const { name, text } of objects) if (name !== table) yield* run(said(text));
}

function said(text: string): Statement {
  return spelled({ sqlite: text, postgres: text });
}

/** The text of a table without one of its constraints, the last; undefined when it has none of that name. */
function withoutCheck(text: string, constraint: string): string | undefined {
  const start = text.indexOf(constraint);
  if (start < 0) return undefined;
  let end = text.indexOf("(", start);
  for (let depth = 0; ; end += 1) {
    if (text[end] === "(") depth += 1;
    if (text[end] === ")") depth -= 1;
    if (depth === 0) break;
  }
  return text.slice(0, text.lastIndexOf(",", start)) + text.slice(end + 1);
}
