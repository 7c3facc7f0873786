import { expect, test } from "vitest";
import { rows, sql } from "../../src/kernel.ts";
import { queuePaths, statementsOf } from "../fixtures/queue-paths.ts";
import { withFolder } from "./place.ts";

test.each(queuePaths.map((path) => [path.name, path] as const))(
  "%s reads by its indexes and sorts nothing",
  (_, path) =>
    withFolder(async (folder) => {
      const database = await folder.open();
      const plan: string[] = [];
      for (const statement of statementsOf(path)) {
        const steps = await database.write("plan", () =>
          rows<{ detail: string }>(sql`EXPLAIN QUERY PLAN ${statement}`),
        );
        plan.push(...steps.map(({ detail }) => detail));
      }
      const used = plan.flatMap((detail) => / INDEX (holdfast_\w+)/.exec(detail)?.[1] ?? []);
      expect(used).toEqual(path.indexes);
      const sorts = plan.filter((detail) => detail.includes("TEMP B-TREE"));
      expect(sorts).toEqual([]);
      const scans = plan.filter((detail) => /^SCAN holdfast_\w+$/.test(detail));
      expect(scans).toEqual([]);
      // A page begins at its key: the rows before it are not walked over.
      const searches = plan.filter((detail) => detail.includes("holdfast_queue_batch_order"));
      for (const detail of searches) expect(detail).toContain("(session=? AND key>? AND key<?)");
    }),
);
