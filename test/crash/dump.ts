import { rows, sql, type Statement, type Database } from "../../src/kernel.ts";
import { ownTableNames } from "../fixtures/schema.ts";

/** Rows by their table, as text and in the order of it. */
export type Dump = Readonly<Record<string, readonly string[]>>;

/** Every row of every table, except of those that are about the database itself. */
export function dumpOf(database: Database): Promise<Dump> {
  return database.read("dump", function* () {
    const found: Record<string, readonly string[]> = {};
    for (const name of ownTableNames.filter(isCompared))
      found[name] = (yield* rows(everyRowOf(name))).map(textOf).toSorted();
    return found;
  });
}

/** Those say who has the database open and which schema it has. */
const ownTables = ["holdfast_migration", "holdfast_owner", "holdfast_tick"];

export function isCompared(table: string): boolean {
  return table.startsWith("holdfast_") && !ownTables.includes(table);
}

function everyRowOf(table: string): Statement {
  const text = [`SELECT * FROM ${table}`];
  return sql(Object.assign(text, { raw: text }));
}

/** Random, or drawn by the server: only whether there is one can be compared. */
const drawn = ["token", "tx"];

function textOf(row: Readonly<Record<string, unknown>>): string {
  return JSON.stringify(row, (column, value: unknown) =>
    drawn.includes(column) && value !== null ? "some" : value,
  );
}
