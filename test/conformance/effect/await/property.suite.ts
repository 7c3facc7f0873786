import fc from "fast-check";
import { expect, test } from "vitest";
import { sessions } from "../../../../src/sessions.ts";
import { roundsOn, seed } from "../../../depth.ts";
import { AwaitModel } from "./model.ts";
import type { Step } from "./model.ts";
import { withDatabase } from "../../backend.ts";
import type { Backend } from "../../backend.ts";
import { expectSound } from "../../sound.ts";

const one = fc.constant;
const event = fc.nat({ max: 3 });

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: one("open" as const),
      event,
      within: fc.constantFrom(null, null, 0, 50, 100, 100),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constantFrom("resolve", "resolve", "fail"),
      event,
      value: fc.nat({ max: 1 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constantFrom("cancel", "revoke", "read", "wait", "wait"),
      event,
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: one("clock" as const),
      by: fc.constantFrom(-500, -60, -1, 1, 30, 49, 51, 200),
    }),
  },
);

/** Run whatever the seed: the stories that the promises are about. */
const stories: readonly (readonly Step[])[] = [
  // Seen to be over, and the clock is set back.
  [
    { do: "open", event: 0, within: 50 },
    { do: "clock", by: 51 },
    { do: "read", event: 0 },
    { do: "clock", by: -60 },
    { do: "resolve", event: 0, value: 1 },
  ],
  // Revoked after it was answered.
  [
    { do: "open", event: 0, within: null },
    { do: "resolve", event: 0, value: 1 },
    { do: "revoke", event: 0 },
    { do: "resolve", event: 0, value: 1 },
    { do: "open", event: 0, within: null },
  ],
];

export function awaitPropertySuite(backend: Backend): void {
  test("[A82] whatever is opened, answered, given up and answered, clocks that jump included, what was told once stays so", () =>
    withDatabase(backend, async (database) => {
      let models = 0;
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 40 }), async (steps) => {
          models += 1;
          await sessions(database).create(`${models}`);
          const model = new AwaitModel(database, `${models}`);
          for (const next of steps) await model.take(next);
          await model.retell();
        }),
        {
          numRuns: roundsOn(backend, {
            deep: 1_500,
            short: 20,
            least: stories.length + 4,
          }),
          seed,
          examples: stories.map((story) => [[...story]]),
        },
      );
      // The stories are among them, whatever the seed.
      expect(models).toBeGreaterThanOrEqual(stories.length);
      await expectSound(database);
    }));
}
