import { expect, test } from "vitest";
import { rows, sql } from "../../src/kernel.ts";
import { backgroundPaths, statementsOf } from "../fixtures/background-paths.ts";
import { withFolder } from "./place.ts";

test("worklists and handles are found by indexes", () =>
  withFolder(async (folder) => {
    const database = await folder.open();
    for (const path of backgroundPaths)
      for (const statement of statementsOf(path)) {
        const steps = await database.write("plan", () =>
          rows<{ detail: string }>(sql`EXPLAIN QUERY PLAN ${statement}`),
        );
        const plan = steps.map(({ detail }) => detail).join("; ");
        expect([path.name, plan]).toEqual([
          path.name,
          expect.stringContaining(`INDEX ${path.index} ${path.search ?? "("}`),
        ]);
        expect(plan).not.toMatch(/SCAN [pgmoe]\b|ORDER BY/);
      }
  }));
