import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { operation, run, sql, type Database, type Operation } from "../../src/kernel.ts";
import { isDeep, seed } from "../depth.ts";
import { appendEntry, refusedPayload } from "../fixtures/append-entry.ts";
import type { AppendEntry, AppendOutcome } from "../fixtures/append-entry.ts";
import { createHeads, logOf } from "./log.ts";
import { withPlace } from "./place.ts";

/** The same meaning without the set form. */
const appendAlone: Operation<AppendEntry, AppendOutcome> = operation("appendAlone", {
  key: appendEntry.key,
  one: appendEntry.one,
  isolation: "readCommitted",
});

const headCount = 6;

const batches = fc.array(
  fc.array(
    fc.record({
      head: fc.integer({ min: 1, max: headCount + 1 }),
      expectedVersion: fc.integer({ min: 0, max: 5 }),
      payload: fc.oneof(
        { weight: 12, arbitrary: fc.string({ maxLength: 8 }) },
        { weight: 1, arbitrary: fc.constant(refusedPayload) },
        { weight: 1, arbitrary: fc.constant("a\0b") },
      ),
    }),
    { maxLength: 24 },
  ),
  { maxLength: 5 },
);

/** Runs whatever the seed, for most random sets come to one call: versions seldom fit. */
const allFitting = [1, 2, 3].map((head) => ({
  head,
  expectedVersion: 0,
  payload: "fits",
}));

/** What a caller was told, without the parts that name a place. */
function told(result: PromiseSettledResult<AppendOutcome>): unknown {
  if (result.status === "fulfilled") return result.value;
  const { code, details } = result.reason as {
    readonly code: string;
    readonly details?: { readonly constraint?: string };
  };
  return [code, details?.constraint];
}

async function clear(database: Database): Promise<void> {
  await database.write("clear", function* () {
    yield* run(sql`DELETE FROM app_log`);
    yield* run(sql`UPDATE app_log_head SET version = 0`);
  });
}

describe("a set form", () => {
  test("means what the same calls mean one after the other", () =>
    withPlace((together) =>
      withPlace(async (alone) => {
        const many = await together.open();
        const one = await alone.open();
        await createHeads(many, headCount);
        await createHeads(one, headCount);
        await fc.assert(
          fc.asyncProperty(batches, async (rounds) => {
            await Promise.all([clear(many), clear(one)]);
            for (const inputs of rounds) {
              const gathered = await Promise.allSettled(
                inputs.map((input) => many.write(appendEntry, input)),
              );
              const sequence: PromiseSettledResult<AppendOutcome>[] = [];
              for (const input of inputs)
                sequence.push(...(await Promise.allSettled([one.write(appendAlone, input)])));
              expect(gathered.map(told)).toEqual(sequence.map(told));
            }
            expect(await logOf(many)).toBe(await logOf(one));
          }),
          { numRuns: isDeep ? 300 : 12, seed, examples: [[[allFitting]]] },
        );
        expect(many.stats().batchSize.max).toBeGreaterThanOrEqual(3);
        expect(one.stats().batchSize.max).toBe(1);
      }),
    ));
});
