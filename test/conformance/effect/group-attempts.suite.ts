import { describe, expect, test } from "vitest";
import type { EffectClaim } from "../../../src/stores/effect/claim.ts";
import { inAwaitFixture } from "./await/fixture.ts";
import type { AwaitFixture } from "./await/fixture.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";

const asked = { kind: "call", input: 1 };
const members = [{ effect: "e" }, { effect: "other" }];
const busy = {
  ordinal: 0,
  member: { effect: "e" },
  outcome: { kind: "failed", error: { message: "busy" } },
};
const failing = (): never => {
  throw Object.assign(new Error("busy"), { transient: true });
};

/** The claim of an attempt that somebody makes although the group's effect has ended. */
async function claimedAgain({ effects, scope }: AwaitFixture): Promise<EffectClaim> {
  const next = await effects.claim(scope, "e", asked, { attempt: 2 });
  if (next.kind !== "claimed") throw new Error("Nobody else is here.");
  return next.claim;
}

export function effectGroupAttemptsSuite(backend: Backend): void {
  const fixture = inAwaitFixture(backend);
  describe("a group with an effect that is attempted again", () => {
    test(
      "[A82] what a group has answered of an effect stays, whatever later attempts do and come to",
      fixture(async (at) => {
        const { effects, groups, scope, faults } = at;
        await rejection(effects.execute(scope, "e", asked, failing));
        const same = async (): Promise<void> => {
          expect(await groups.race(scope, "r", members)).toMatchObject(busy);
          const all = await groups.all(scope, "a", members);
          expect(all).toMatchObject({ kind: "failed", ...busy });
        };
        await same();
        const again = await claimedAgain(at);
        const { writes } = faults;
        await same();
        expect(faults.writes).toBe(writes);
        await effects.complete(again, "mended");
        await same();
        await effects.execute(scope, "other", asked, () => 2);
        const drained = await groups.drain(scope, "r");
        expect(drained).toMatchObject([
          busy,
          { ordinal: 1, outcome: { kind: "resolved", value: 2 } },
        ]);
      }),
    );

    test(
      "[A82] the first attempt that ends an effect counts, whenever somebody looks",
      fixture(async (at) => {
        const { effects, groups, scope } = at;
        await rejection(effects.execute(scope, "e", asked, failing));
        const again = await claimedAgain(at);
        expect(await groups.race(scope, "while", members)).toMatchObject(busy);
        await effects.complete(again, "mended");
        expect(await groups.race(scope, "after", members)).toMatchObject(busy);
        const retried = [{ effect: "e", attempts: 2 }];
        expect(await groups.race(scope, "retried", retried)).toMatchObject({
          outcome: { kind: "resolved", value: "mended" },
        });
      }),
    );

    test(
      "[A82] an effect that is retried by a call that its group was not told of has ended with its first failure",
      fixture(async (at) => {
        const { effects, groups, scope, clock } = at;
        const retry = { maxRetries: 1, backoff: 10 };
        const executed = effects.execute(
          scope,
          "e",
          asked,
          ({ attempt }) => (attempt === 1 ? failing() : "mended"),
          { retry },
        );
        while (clock.sleepers === 0) await new Promise(setImmediate);
        expect(await groups.race(scope, "r", members)).toMatchObject(busy);
        clock.advance(60_000);
        expect(await executed).toBe("mended");
        expect(await groups.race(scope, "r", members)).toMatchObject(busy);
      }),
    );
  });
}
