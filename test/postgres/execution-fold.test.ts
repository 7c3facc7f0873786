import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { openSqlite } from "../../src/sqlite.ts";
import type { Database } from "../../src/kernel.ts";
import { example } from "../conformance/execution/example.ts";
import { runSequence } from "../conformance/execution/sequence.ts";
import { steps } from "../conformance/execution/steps.ts";
import type { Step } from "../conformance/execution/steps.ts";
import { comparable } from "../conformance/execution/tables.ts";
import { isDeep, seed } from "../depth.ts";
import { driverName } from "../sqlite/place.ts";
import { withPlace } from "./place.ts";

const sequences = isDeep ? 100 : 8;

/** What was answered and what is stored, in the same words for both databases. */
async function storyOn(database: Database, sequence: readonly Step[]): Promise<unknown> {
  const { told, tables } = await runSequence(database, sequence, false);
  return { told, stored: comparable(tables, database.owner) };
}

describe("the execution log on SQLite and on Postgres", () => {
  test(`[E19] gives the same answers and ends with the same rows, over ${sequences} sequences`, () =>
    withPlace(async (place) => {
      const postgres = await place.open();
      const sqlite = await openSqlite(":memory:", { driver: driverName });
      try {
        await fc.assert(
          fc.asyncProperty(steps, async (sequence) => {
            const [one, other] = await Promise.all([
              storyOn(sqlite, sequence),
              storyOn(postgres, sequence),
            ]);
            expect(other).toEqual(one);
          }),
          { numRuns: sequences, seed, examples: [[[...example]]] },
        );
      } finally {
        await sqlite.close();
      }
    }));
});
