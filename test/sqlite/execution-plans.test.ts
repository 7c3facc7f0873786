import { expect, test } from "vitest";
import { rows, run, sql, type Statement, type Database } from "../../src/kernel.ts";
import { hotStatements, seedExecutions, usesListIndex } from "../fixtures/hot-paths.ts";
import { withFolder } from "./place.ts";

/** What is wrong with how a statement is going to be run. */
async function faultsOf(database: Database, statement: Statement): Promise<readonly string[]> {
  const found = await database.write("plan", () =>
    rows<{ detail: string }>(sql`EXPLAIN QUERY PLAN ${statement}`),
  );
  const details = found.map(({ detail }) => detail);
  // Walking along an index is stopped by a LIMIT, unless something sorts behind it.
  const isStopped =
    statement.template.sqlite.includes("LIMIT") &&
    !details.some((detail) => detail.includes("TEMP B-TREE"));
  return details.filter((detail) => {
    const isScan =
      detail.startsWith("SCAN") &&
      // What a statement brings along, or has found by an index, is as short as it was made.
      !/^SCAN (json_each|asked|items|held|walk|begun|fresh|CONSTANT ROW|\d+-ROW VALUES|\(subquery)/.test(
        detail,
      );
    const isAlongIndex = / USING (COVERING )?INDEX /.test(detail);
    return isScan ? !(isStopped && isAlongIndex) : usesListIndex(detail);
  });
}

test.each(["without statistics", "with statistics"])(
  "no hot path of the execution log walks over what does not concern it, %s",
  (statistics) =>
    withFolder(async (folder) => {
      const first = await folder.open();
      await first.write("seed", () => seedExecutions(6_000));
      if (statistics === "with statistics") await first.write("analyze", () => run(sql`ANALYZE`));
      await first.close();
      const database = await folder.open();
      const statements = await hotStatements(database);
      const faults: string[] = [];
      for (const statement of statements)
        for (const fault of await faultsOf(database, statement))
          faults.push(`${fault}: ${statement.template.sqlite}`);
      expect(faults).toEqual([]);
      // So many are recorded: fewer would mean that the driver above does less.
      expect(statements.length).toBeGreaterThan(40);
    }),
);
