import { describe, expect, test } from "vitest";
import type { Backend } from "../backend.ts";
import { step, waiting } from "./execution-events.ts";
import { T0, ann, byAnn, lockedIds, onExecutions, refusal, standing } from "./fixture.ts";
import type { ExecutionFixture } from "./fixture.ts";

/** Locked, then waiting for any response with its lease kept until T0 + 1,000. */
async function hotWait({ store }: ExecutionFixture): Promise<void> {
  await store.create({ id: "a", function: "f" });
  await store.lock("a", 1, byAnn);
  await store.append("a", 2, [waiting(0, T0 + 1_000)], { fence: ann });
}

export function executionUnlockSuite(backend: Backend): void {
  describe("giving an execution back", () => {
    test(
      "one that waits goes on waiting, and its lease ends: a response makes it due when it comes",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        await hotWait(fixture);
        clock.advance(10);
        expect(await store.unlock("a", 3, { holder: ann, reason: "shutting down" })).toEqual({
          nextVersion: 4,
          at: T0 + 10,
        });
        expect((await standing(fixture, "a")).pending).toMatchObject({
          kind: "blocked",
          leaseUntil: null,
        });
        clock.advance(10);
        await store.signal("a", "go", 1);
        expect(await lockedIds(store, 1, "f")).toEqual(["a"]);
      }),
    );

    test(
      "one that is pending already may only become due earlier",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        await hotWait(fixture);
        await store.signal("a", "go", 1);
        for (const after of [1_000, 2_000])
          expect(
            await refusal(fixture, () =>
              store.unlock("a", 3, { holder: ann, reason: "late", after }),
            ),
          ).toBe("UNLOCK_REFUSED");
        await store.unlock("a", 3, { holder: ann, reason: "early", after: 20 });
        expect((await standing(fixture, "a")).pending).toMatchObject({
          kind: "pending",
          dueAt: T0 + 20,
          leaseUntil: null,
        });
        clock.advance(20);
        expect(await lockedIds(store, 1, "f")).toEqual(["a"]);
      }),
    );

    test(
      "one that was never locked, or is another's, or has finished, cannot be given back",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        const back = { holder: ann, reason: "mistake" };
        await store.create({ id: "a", function: "f" });
        expect(await refusal(fixture, () => store.unlock("a", 1, back))).toBe("LOCK_LOST");
        await store.append("a", 1, [step("one")]);
        await store.finish("a", 2, { kind: "completed", value: 1 });
        expect(await refusal(fixture, () => store.unlock("a", 2, back))).toBe("EXECUTION_FINISHED");
      }),
    );
  });
}
