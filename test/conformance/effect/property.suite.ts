import fc from "fast-check";
import { expect, test } from "vitest";
import { roundsOn, seed } from "../../depth.ts";
import type { Backend } from "../backend.ts";
import { inEffects } from "./fixture.ts";
import { EffectModel } from "./model.ts";
import type { Step } from "./model.ts";
import { expectSound } from "../sound.ts";

/** One of them more than the others, so that somebody gets something done. */
const who = fc.constantFrom(0, 0, 0, 1, 2);
const what = fc.constantFrom(0, 0, 1);
const lease = fc.constantFrom(0, 50, 500, 5_000);
const one = fc.constant;

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: one("claim" as const),
      who,
      what,
      lease,
      looks: fc.boolean(),
      isOdd: fc.constantFrom(false, false, false, false, true),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: one("renew" as const), who, lease }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constantFrom("complete", "fail", "release", "release"),
      who,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: one("execute" as const), who, what }),
  },
  { weight: 1, arbitrary: fc.record({ do: one("crash" as const), who }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: one("clock" as const),
      by: fc.constantFrom(-500, -60, -1, 1, 49, 60, 600),
    }),
  },
);

const claim: Step = {
  do: "claim",
  who: 0,
  what: 0,
  lease: 500,
  looks: false,
  isOdd: false,
};

/** Run whatever the seed: the stories that the promises are about. */
const stories: readonly (readonly Step[])[] = [
  // Overtaken after its lease ran out, and too late to settle it.
  [
    { ...claim, lease: 50 },
    { do: "clock", by: 60 },
    { ...claim, who: 1 },
    { do: "complete", who: 0 },
    { do: "complete", who: 1 },
    { do: "fail", who: 0 },
  ],
  // Dies at it; another one who saw it takes over before the lease runs out.
  [
    claim,
    { ...claim, who: 1, looks: true },
    { do: "crash", who: 0 },
    { ...claim, who: 1 },
    { ...claim, who: 1, looks: true },
    { ...claim, who: 2, looks: true },
    { do: "complete", who: 1 },
  ],
  // Is told that it is too late; then the clock goes back.
  [
    { ...claim, lease: 50 },
    { do: "clock", by: 60 },
    { do: "complete", who: 0 },
    { do: "clock", by: -60 },
    { do: "renew", who: 0, lease: 500 },
    { do: "complete", who: 0 },
    { do: "execute", who: 1, what: 0 },
  ],
  // Gives back a claim that has run out, and asks again once the clock has gone back.
  [
    { ...claim, lease: 50 },
    { do: "clock", by: 60 },
    { do: "release", who: 0 },
    { do: "clock", by: -60 },
    { do: "complete", who: 0 },
    { do: "execute", who: 1, what: 0 },
  ],
  // Settles it twice, and gives back what it has settled.
  [
    claim,
    { do: "fail", who: 0 },
    { do: "complete", who: 0 },
    { do: "release", who: 0 },
    { ...claim, isOdd: true },
    { do: "execute", who: 2, what: 0 },
  ],
];

export function effectPropertySuite(backend: Backend): void {
  test(
    "whatever owners do, crashes and clocks included, one runs an effect at a time, only that one settles it, and what is recorded never changes",
    inEffects(backend)(async ({ faults }) => {
      let models = 0;
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 30 }), async (steps) => {
          models += 1;
          const id = `model ${models}`;
          const model = new EffectModel(faults, { kind: "operation", id });
          for (const next of steps) await model.take(next);
          await model.agree();
        }),
        {
          numRuns: roundsOn(backend, {
            deep: 1_500,
            short: 15,
            least: stories.length + 4,
          }),
          seed,
          examples: stories.map((story) => [[...story]]),
        },
      );
      // The stories are among them, whatever the seed.
      expect(models).toBeGreaterThanOrEqual(stories.length);
      await expectSound(faults.database);
    }),
  );
}
