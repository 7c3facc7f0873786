import { expect, test } from "vitest";
import { rollbackWith, rows, type Tx, type Statement } from "../../src/kernel.ts";
import { spelled, sql } from "../../src/sql/statement.ts";
import { preparedReads, stands } from "../conformance/pages/reads-in-writes.ts";
import { withPlace } from "./place.ts";

const tables = [
  ...new Set(Object.values(stands).flatMap((stand) => (stand.kind === "locks" ? stand.table : []))),
];

/** Which of the tables have a row that this transaction has locked. */
const lockedTables: Statement = spelled({
  sqlite: "",
  postgres: tables
    .map(
      (table) => `
        SELECT DISTINCT '${table}' AS name FROM ${table}
        WHERE pg_current_xact_id_if_assigned() IS NOT NULL
          AND pg_current_xact_id()::xid IN (xmin, xmax)`,
    )
    .join(" UNION ALL "),
});

function* locksOf(part: Tx<unknown>): Tx<readonly string[]> {
  try {
    yield* part;
  } catch {
    // What is asked for in what is there need not be there.
  }
  const found = yield* rows<{ readonly name: string }>(sql`${lockedTables}`);
  return yield* rollbackWith(found.map(({ name }) => name).toSorted());
}

test("a prepared read locks the root row of what it names where the table of reads says so, and nothing else does", async () =>
  withPlace(async (place) => {
    const database = await place.open();
    const found: Record<string, unknown> = {};
    const expected: Record<string, unknown> = {};
    for (const { name, part } of await preparedReads(database)) {
      const stand = stands[name];
      if (stand?.kind === "refused") continue;
      expected[name] = stand?.kind === "locks" ? [stand.table] : [];
      const locks = (): Tx<readonly string[]> => locksOf(part());
      found[name] = await database.write(name, locks, { isolation: "readCommitted" });
    }
    expect(found).toEqual(expected);
  }));
