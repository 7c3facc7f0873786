import { expect, test } from "vitest";
import { rows, sql } from "../../src/kernel.ts";
import { lookedAt, seedLongSession } from "../fixtures/long-session.ts";
import { withNewPlace } from "./place.ts";

interface PlanNode {
  readonly "Actual Rows": number;
  readonly "Actual Loops": number;
  readonly "Rows Removed by Filter"?: number;
  readonly Plans?: readonly PlanNode[];
}

/** Rows that the steps of a plan have given or thrown away. */
function visits(node: PlanNode): number {
  const own = node["Actual Rows"] + (node["Rows Removed by Filter"] ?? 0);
  return (node.Plans ?? []).reduce((sum, plan) => sum + visits(plan), own * node["Actual Loops"]);
}

/** Each step of a climb counts several times: its index, its join, its union. */
const visitsMax = 5_000;

test("what reaches far back in a session of 10,000 nodes visits few of them", () =>
  withNewPlace(async (place) => {
    const database = await place.open();
    const longReaches = await seedLongSession(database, 10);
    await place.shell().unsafe("ANALYZE");
    const counts = new Map<string, number>();
    for (const [what, body] of longReaches)
      await database.write(what, () =>
        lookedAt(body(), function* (statement) {
          const found = yield* rows(sql`EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) ${statement}`);
          const text = Object.values(found[0] ?? {})[0];
          const [plan] = (typeof text === "string" ? JSON.parse(text) : text) as readonly {
            readonly Plan: PlanNode;
          }[];
          const before = counts.get(what) ?? 0;
          if (plan !== undefined) counts.set(what, before + visits(plan.Plan));
        }),
      );
    expect([...counts.keys()]).toEqual(longReaches.map(([what]) => what));
    for (const [what, count] of counts)
      expect({ what, isFew: count <= visitsMax, count }).toMatchObject({
        what,
        isFew: true,
      });
  }));
