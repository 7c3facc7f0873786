import { expect, test } from "vitest";
import { rows, sql } from "../../src/kernel.ts";
import { lookedAt, seedLongSession } from "../fixtures/long-session.ts";
import { withFolder } from "./place.ts";

test("what reaches far back in a session climbs by keys, and neither scans nodes nor builds an index", () =>
  withFolder(async (folder) => {
    const database = await folder.open();
    const longReaches = await seedLongSession(database, 1);
    const faults: string[] = [];
    for (const [what, body] of longReaches)
      await database.write(what, () =>
        lookedAt(body(), function* (statement) {
          const plan = yield* rows<{ readonly detail: string }>(
            sql`EXPLAIN QUERY PLAN ${statement}`,
          );
          for (const { detail } of plan)
            if (/AUTOMATIC|^SCAN (n|a|u|w)\b|\(rowid>\?/.test(detail))
              faults.push(`${what}: ${detail}`);
        }),
      );
    expect(faults).toEqual([]);
  }));
