import { rows, sql, type Database } from "../../src/kernel.ts";
import { createHead, createLogTables } from "../fixtures/append-entry.ts";

/** Makes the log's tables and heads h0, h1, …; returns their keys. */
export async function createHeads(database: Database, count: number): Promise<readonly number[]> {
  await database.write("tables", createLogTables);
  const keys: number[] = [];
  for (let index = 0; index < count; index += 1)
    keys.push((await database.write(createHead, { id: `h${index}` })).key);
  return keys;
}

/** The whole log as text, by head and version: "1:1 a, 1:2 b, 2:1 c". */
export async function logOf(database: Database): Promise<string> {
  const entries = await database.read("log", () =>
    rows<{ head: number; version: number; payload: string }>(
      sql`SELECT head, version, payload FROM app_log ORDER BY head, version`,
    ),
  );
  return entries.map(({ head, version, payload }) => `${head}:${version} ${payload}`).join(", ");
}
