import type { Database } from "../../src/sql/database.ts";
import { appendEntry, createHead, createLogTables } from "../../test/fixtures/append-entry.ts";

export const payload = JSON.stringify({ kind: "step", output: "x".repeat(80) });

/** Makes the tables and one head per caller. */
export async function prepareHeads(database: Database, count: number): Promise<readonly number[]> {
  await database.write("tables", createLogTables);
  const heads = await Promise.all(
    Array.from({ length: count }, (_, index) =>
      database.write(createHead, { id: `bench-${index}` }),
    ),
  );
  return heads.map((head) => head.key);
}

/** Every caller appends to its own head, one after the other. Answers with operations per second. */
export async function appendLoad(
  database: Database,
  heads: readonly number[],
  each: number,
  from = 0,
  append: typeof appendEntry = appendEntry,
): Promise<number> {
  const startedMs = performance.now();
  await Promise.all(
    heads.map(async (head) => {
      for (let version = from; version < from + each; version += 1)
        await database.write(append, {
          head,
          expectedVersion: version,
          payload,
        });
    }),
  );
  return (heads.length * each * 1_000) / (performance.now() - startedMs);
}
