import { describe, expect, test } from "vitest";
import type { Backend } from "../backend.ts";
import { joinNext, step } from "./execution-events.ts";
import { parentOf, result } from "./parent.ts";
import {
  T0,
  ann,
  annLater,
  bob,
  byAnn,
  byBob,
  onExecutions,
  refusal,
  responsesOf,
  standing,
  stateOfExecution,
} from "./fixture.ts";

export function executionHotWaitsSuite(backend: Backend): void {
  describe("waiting with the run kept in memory", () => {
    test(
      "[E45] before the run expires only the same executor and run may lock, then anybody",
      onExecutions(backend, async (fixture) => {
        const { store, clock, database } = fixture;
        let version = await parentOf(fixture, ["p.n:x_1"]);
        await store.lock("p", version, { holder: ann, lease: 10_000 });
        await store.append("p", version + 1, [joinNext("n:x", T0 + 10_000)], {
          fence: ann,
        });
        version += 2;
        clock.advance(1_000);
        await store.finish("p.n:x_1", 1, result);
        expect((await standing(fixture, "p")).pending).toEqual({
          kind: "pending",
          dueAt: T0 + 10_000,
          leaseUntil: T0 + 10_000,
          lastLock: { ...ann, owner: database.owner },
        });
        const pick = { functions: ["parent"], limit: 1 };
        for (const holder of [annLater, bob]) {
          expect(
            await refusal(fixture, () => store.lock("p", version, { holder, lease: 1_000 })),
          ).toBe("LOCK_NOT_DUE");
          expect(await store.lockPending({ holder, lease: 1_000, ...pick })).toEqual({
            locked: [],
            damaged: [],
            parked: [],
            isLimited: false,
            hasSuspects: false,
          });
        }
        // The worker that kept it goes on writing, without another lock.
        await store.append("p", version, [step("goes on")], { fence: ann });
        expect(await store.extend("p", version + 1, byAnn)).toEqual({
          nextVersion: version + 2,
          at: T0 + 1_000,
        });
      }),
    );

    test(
      "[E45] at the instant the run expires anybody may lock it, and no failure is counted",
      onExecutions(backend, async (fixture) => {
        const { store, clock, database } = fixture;
        const version = await parentOf(fixture, ["p.n:x_1"]);
        await store.lock("p", version, { holder: ann, lease: 10_000 });
        await store.append("p", version + 1, [joinNext("n:x", T0 + 10_000)]);
        clock.advance(1_000);
        await store.finish("p.n:x_1", 1, result);
        clock.set(T0 + 10_000);
        const { locked } = await store.lockPending({
          ...byBob,
          functions: ["parent"],
          limit: 1,
        });
        expect(locked.map(({ id, failures }) => [id, failures])).toEqual([["p", 0]]);
        const { deaths } = await stateOfExecution(database, "p");
        expect(deaths).toBe(0);
        expect(
          await refusal(fixture, () =>
            store.append("p", version + 3, [step("late")], { fence: ann }),
          ),
        ).toBe("LOCK_LOST");
      }),
    );

    test(
      "a response that comes after the run expired makes it due when it comes",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        const version = await parentOf(fixture, ["p.n:x_1"]);
        await store.append("p", version, [joinNext("n:x", T0 + 100)]);
        clock.set(T0 + 250);
        await store.finish("p.n:x_1", 1, result);
        expect((await standing(fixture, "p")).pending).toMatchObject({
          kind: "pending",
          dueAt: T0 + 250,
          leaseUntil: null,
        });
      }),
    );

    test(
      "a response to an execution that finished is kept, and changes nothing else",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        const version = await parentOf(fixture, ["p.n:x_1"]);
        await store.finish("p", version, result);
        const before = await standing(fixture, "p");
        await store.finish("p.n:x_1", 1, result);
        expect(await standing(fixture, "p")).toEqual(before);
        expect(await responsesOf(fixture, "p")).toHaveLength(1);
      }),
    );
  });
}
