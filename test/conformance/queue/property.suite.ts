import fc from "fast-check";
import { expect, test } from "vitest";
import { roundsOn, seed } from "../../depth.ts";
import { withDatabase } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { Faults } from "../lease/leased-sessions.ts";
import { QueueModel } from "./model.ts";
import type { Step } from "./model.ts";
import { expectSound } from "../sound.ts";

/** One of them more than the others, so that somebody gets something done. */
const who = fc.constantFrom(0, 0, 0, 1, 2);
const lease = fc.constantFrom(0, 50, 500, 5_000);
const one = fc.constant;

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ do: one("acquire" as const), who, lease }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: one("reclaim" as const), who, lease }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: one("renew" as const), who, lease }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constantFrom("release", "crash"), who }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: one("enqueue" as const),
      class: fc.constantFrom("turn", "turn", "turn", "command"),
      slot: fc.constantFrom("join", "exclusive"),
      source: fc.option(fc.nat({ max: 3 })),
      delay: fc.constantFrom(0, 0, 0, 100),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: one("claim" as const),
      who,
      max: fc.integer({ min: 1, max: 3 }),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constantFrom("command", "abandon", "complete", "complete"),
      who,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: one("cancel" as const), which: fc.nat() }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: one("clock" as const),
      by: fc.constantFrom(-500, -60, -1, 1, 49, 60, 600),
    }),
  },
);

const enqueue: Step = {
  do: "enqueue",
  class: "turn",
  slot: "join",
  source: 1,
  delay: 0,
};

/** Run whatever the seed: the stories that the promises are about. */
const stories: readonly (readonly Step[])[] = [
  // Overtaken after its lease ran out, and too late to complete.
  [
    { do: "acquire", who: 0, lease: 50 },
    enqueue,
    { do: "claim", who: 0, max: 3 },
    { do: "clock", by: 60 },
    { do: "acquire", who: 1, lease: 500 },
    { do: "claim", who: 1, max: 3 },
    { do: "complete", who: 0 },
    { do: "complete", who: 1 },
    enqueue,
  ],
  // Dies with work in its hands; another one reclaims and does it.
  [
    { do: "acquire", who: 0, lease: 500 },
    enqueue,
    { do: "claim", who: 0, max: 1 },
    { do: "crash", who: 0 },
    { do: "acquire", who: 1, lease: 500 },
    { do: "reclaim", who: 1, lease: 500 },
    { do: "reclaim", who: 2, lease: 500 },
    { do: "claim", who: 1, max: 1 },
    { do: "complete", who: 1 },
  ],
  // Completes what it has given back and taken again, by the old claim.
  [
    { do: "acquire", who: 0, lease: 500 },
    enqueue,
    { do: "claim", who: 0, max: 1 },
    { do: "abandon", who: 0 },
    { do: "claim", who: 0, max: 1 },
    { do: "complete", who: 0 },
    { do: "complete", who: 0 },
  ],
  // Comes back after its lease ran out: its own claim of before counts no more.
  [
    { do: "acquire", who: 0, lease: 50 },
    enqueue,
    { do: "claim", who: 0, max: 1 },
    { do: "clock", by: 60 },
    { do: "acquire", who: 0, lease: 50 },
    { do: "complete", who: 0 },
  ],
  // Claimed is claimed: not to be claimed again, nor cancelled.
  [
    { do: "acquire", who: 0, lease: 500 },
    enqueue,
    { do: "claim", who: 0, max: 1 },
    { do: "claim", who: 0, max: 1 },
    { do: "cancel", which: 0 },
    { do: "complete", who: 0 },
  ],
  // Refused because its lease has run out; a clock that is set back does not bring it back.
  [
    { do: "acquire", who: 0, lease: 50 },
    enqueue,
    { do: "clock", by: 60 },
    { do: "claim", who: 0, max: 1 },
    { do: "clock", by: -60 },
    { do: "acquire", who: 1, lease: 50 },
  ],
  [
    { do: "acquire", who: 0, lease: 50 },
    enqueue,
    { do: "claim", who: 0, max: 1 },
    { do: "clock", by: 60 },
    { do: "complete", who: 0 },
    { do: "clock", by: -60 },
    { do: "renew", who: 0, lease: 50 },
  ],
  // Given back after it was found to have run out.
  [
    { do: "acquire", who: 0, lease: 50 },
    { do: "clock", by: 60 },
    { do: "renew", who: 0, lease: 50 },
    { do: "release", who: 0 },
    { do: "release", who: 0 },
  ],
  // The clock goes back over the end of a lease.
  [
    { do: "acquire", who: 0, lease: 0 },
    { do: "clock", by: -500 },
    { do: "renew", who: 0, lease: 50 },
    { do: "acquire", who: 1, lease: 50 },
    { do: "clock", by: -500 },
    { do: "acquire", who: 2, lease: 50 },
    { do: "renew", who: 1, lease: 50 },
    { do: "clock", by: 600 },
    { do: "renew", who: 1, lease: 50 },
    { do: "clock", by: -60 },
    { do: "renew", who: 1, lease: 50 },
    { do: "acquire", who: 2, lease: 50 },
  ],
];

export function queuePropertySuite(backend: Backend): void {
  test("whatever owners do, crashes and clocks included, no queued work is consumed twice or lost, fences only grow, and revisions by one with each commit", () =>
    withDatabase(backend, async (database) => {
      const faults = new Faults(database);
      let sessions = 0;
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 50 }), async (steps) => {
          sessions += 1;
          const model = await QueueModel.create(faults, `${sessions}`);
          for (const next of steps) await model.take(next);
          await model.drain();
        }),
        {
          numRuns: roundsOn(backend, {
            deep: 1_500,
            short: 30,
            least: stories.length + 4,
          }),
          seed,
          examples: stories.map((story) => [[...story]]),
        },
      );
      // The stories are among them, whatever the seed.
      expect(sessions).toBeGreaterThanOrEqual(stories.length);
      await expectSound(database);
    }));
}
