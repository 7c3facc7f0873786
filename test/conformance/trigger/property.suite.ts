import fc from "fast-check";
import { expect, test } from "vitest";
import { roundsOn, seed } from "../../depth.ts";
import type { Backend } from "../backend.ts";
import type { Owner, Variant } from "./deliveries-model.ts";
import { inTriggers } from "./fixture.ts";
import { TriggerTrial } from "./model.ts";
import type { Step } from "./model.ts";
import { expectSound } from "../sound.ts";

const owner = fc.constantFrom<Owner>("host", "s1", "s2");
const key = fc.constantFrom("a", "b");
const variant: fc.Arbitrary<Variant> = fc.record({
  on: fc.constantFrom<Variant["on"][]>("x", "x", "y", 2, 3),
  target: fc.constantFrom("build", "test"),
});

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant("subscribe" as const),
      owner,
      key,
      variant,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("revise" as const),
      owner,
      key,
      variant,
      expected: fc.option(fc.integer({ min: 1, max: 4 }), { nil: undefined }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constantFrom("enable", "disable", "delete"),
      owner,
      key,
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("record" as const),
      id: fc.constantFrom("o1", "o2", "o3"),
      source: fc.constantFrom("x", "y"),
      payload: fc.nat({ max: 1 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("clock" as const),
      by: fc.constantFrom(-5, -1, 1, 1, 2, 7),
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("fire" as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constantFrom("end", "begin"),
      session: fc.constantFrom("s1", "s2"),
    }),
  },
);

export function triggerPropertySuite(backend: Backend): void {
  const fixture = inTriggers(backend);
  test("whatever is subscribed, changed, recorded and fired, clocks set back included, each occurrence starts what a model without a database says", async () => {
    let rounds = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 8, maxLength: 30 }), (steps) =>
        fixture(async (at) => {
          const trial = new TriggerTrial(at);
          for (const session of ["s1", "s2"] as const) await trial.take({ do: "begin", session });
          for (const each of steps) await trial.take(each);
          await trial.compare();
          await expectSound(at.mine.database);
          rounds += 1;
        })(),
      ),
      { numRuns: roundsOn(backend, { deep: 500, short: 8, least: 4 }), seed },
    );
    expect(rounds).toBeGreaterThan(0);
  });
}
