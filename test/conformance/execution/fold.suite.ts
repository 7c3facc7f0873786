import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isDeep, roundsOn, seed } from "../../depth.ts";
import { withDatabase } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { example } from "./example.ts";
import { runAtOnce, runSequence, Tally } from "./sequence.ts";
import { eventKinds, stepNames, steps } from "./steps.ts";
import { expectSound } from "../sound.ts";

const groupSize = 5;

export function executionFoldSuite(backend: Backend): void {
  // Deep runs prove; short ones find what is broken for everybody.
  const sequences = roundsOn(backend, { deep: 1_000, short: 30, least: 10 });
  const groups = roundsOn(backend, { deep: 300, short: 20, least: 6 });

  describe("the state of an execution", () => {
    test("[E19] equals the fold of its log when every operation and every kind of event has occurred", () =>
      withDatabase(backend, async (database) => {
        const tally = new Tally();
        const { told, tables } = await runSequence(database, example, true);
        tally.add({ told, tables });
        expect(told.filter(({ isEventful }) => !isEventful)).toEqual([]);
        expect(tally.missing([...stepNames, ...eventKinds])).toEqual([]);
      }));

    test(`[E19] equals the fold of its log after any of ${sequences} random sequences of operations`, () =>
      withDatabase(backend, async (database) => {
        const tally = new Tally();
        await fc.assert(
          // Reading all tables after every step is slow, so only some sequences are watched.
          fc.asyncProperty(steps, fc.nat({ max: isDeep ? 2 : 5 }), async (sequence, watch) =>
            tally.add(await runSequence(database, sequence, watch === 0)),
          ),
          { numRuns: sequences, seed },
        );
        // So few sequences as in a short run cannot promise it.
        const promised = isDeep ? [...stepNames, ...eventKinds] : [];
        expect(tally.missing(promised)).toEqual([]);
        await expectSound(database);
      }));

    test(`[E19] equals the fold of its log when ${groupSize} calls are made at a time`, () =>
      withDatabase(backend, async (database) => {
        const tally = new Tally();
        await fc.assert(
          fc.asyncProperty(steps, async (sequence) =>
            tally.add(await runAtOnce(database, sequence, groupSize)),
          ),
          { numRuns: groups, seed },
        );
        expect(tally.missing(["create", "append"])).toEqual([]);
        await expectSound(database);
      }));
  });
}
