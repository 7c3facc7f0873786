import { describe, expect, test } from "vitest";
import type { Backend } from "../backend.ts";
import { attemptFailed } from "./execution-events.ts";
import {
  T0,
  ann,
  byAnn,
  kindsOf,
  lockedIds,
  onExecutions,
  standing,
  stateOfExecution,
} from "./fixture.ts";

export function executionLockingSuite(backend: Backend): void {
  describe("locking what is due", () => {
    test(
      "[E21] an empty store gives an empty list",
      onExecutions(backend, async ({ store }) => {
        expect(await store.lockPending({ ...byAnn, functions: ["f"], limit: 5 })).toEqual({
          locked: [],
          damaged: [],
          parked: [],
          isLimited: false,
          hasSuspects: false,
        });
      }),
    );

    test(
      "[E22] what was created is locked, with its function, its one input and version 2 next",
      onExecutions(backend, async (fixture) => {
        const { store, database } = fixture;
        const { key } = await store.create({
          id: "a",
          function: "f",
          input: { n: 1 },
        });
        const { locked, damaged } = await store.lockPending({
          ...byAnn,
          functions: ["f"],
          limit: 1,
        });
        expect(damaged).toEqual([]);
        expect(locked).toEqual([
          {
            id: "a",
            key,
            role: "workflow",
            function: "f",
            nextVersion: 2,
            input: { n: 1 },
            // The SHA-256 of holdfast:execution:1:{"n":1}, from another program.
            inputHash: "a7cbdc126bd7a68bc5f75d07447e0edeb9febb893e4ad3a62721d63bb7705ec1",
            startedAt: T0,
            // From another program too, as in seed.test.ts.
            seed: 0x02c0_bdbf_4814_20f8n,
            created: expect.objectContaining({ input: { n: 1 } }) as unknown,
            leaseUntil: T0 + 1_000,
            holder: { ...ann, owner: database.owner },
            tags: [],
            previousCodeVersion: null,
            hasBegun: false,
            attempt: 1,
            failures: 0,
            deaths: 0,
            aloneDeaths: 0,
            isAlone: false,
            isRepeat: false,
            cancellation: null,
            continuations: 0,
            historyFrom: 0,
            responsesFrom: 0,
            unreadSignals: [],
            hasMoreUnreadSignals: false,
            history: [],
            hasMoreHistory: false,
            historyUpTo: 1,
            responses: [],
            hasMoreResponses: false,
          },
        ]);
        expect(await standing(fixture, "a")).toEqual({
          version: 1,
          lifecycle: "active",
          pending: {
            kind: "locked",
            holder: { ...ann, owner: database.owner },
            leaseUntil: T0 + 1_000,
            lockVersion: 1,
            isAlone: false,
          },
        });
        expect(await kindsOf(fixture, "a")).toBe("created locked");
      }),
    );

    test(
      "[E22] without an input it is undefined, which is not null",
      onExecutions(backend, async ({ store }) => {
        await store.create({ id: "a", function: "f" });
        await store.create({ id: "b", function: "f", input: null });
        const { locked } = await store.lockPending({
          ...byAnn,
          functions: ["f"],
          limit: 2,
        });
        expect(locked.map(({ input }) => input)).toEqual([undefined, null]);
      }),
    );

    test(
      "[E23] the longest due comes first, whatever the order of creation",
      onExecutions(backend, async ({ store, clock }) => {
        const due = { "c-last": 1_000, "b-second": 1, "a-first": 0 };
        for (const [id, after] of Object.entries(due))
          await store.create({ id, function: "f", startAt: { in: after } });
        clock.advance(1_000);
        expect(await lockedIds(store, 3, "f")).toEqual(["a-first", "b-second", "c-last"]);
      }),
    );

    test(
      "functions share what is locked: thousands of one keep none of another waiting",
      onExecutions(backend, async ({ store, clock }) => {
        for (let n = 10; n < 40; n += 1) await store.create({ id: `f-${n}`, function: "f" });
        clock.advance(1_000);
        for (const id of ["g-1", "g-2", "h-1"])
          await store.create({ id, function: id.slice(0, 1) });
        expect(await lockedIds(store, 6, "f", "g", "h")).toEqual([
          "f-10",
          "f-11",
          "f-12",
          "g-1",
          "g-2",
          "h-1",
        ]);
      }),
    );

    test(
      "functions of which the caller has less come first",
      onExecutions(backend, async ({ store, clock }) => {
        for (const id of ["f-1", "f-2", "f-3"]) await store.create({ id, function: "f" });
        clock.advance(1_000);
        await store.create({ id: "g-1", function: "g" });
        const take = async (load: number): Promise<readonly string[]> => {
          const { locked } = await store.lockPending({
            ...byAnn,
            functions: [{ name: "f", load }, "g"],
            limit: 2,
          });
          return locked.map(({ id }) => id);
        };
        expect(await take(1.5)).toEqual(["f-1", "g-1"]);
        await store.create({ id: "g-2", function: "g" });
        await store.create({ id: "g-3", function: "g" });
        expect(await take(2)).toEqual(["g-2", "g-3"]);
        for (const load of [-1, Number.NaN, "1" as never])
          await expect(take(load)).rejects.toMatchObject({
            code: "OPTION_INVALID",
          });
      }),
    );

    test.each([
      ["before", 999],
      ["exactly at", 1_000],
      ["after", 5_000],
    ])("[E24] what is locked is not given out again %s the end of its lease", (_, laterMs) =>
      onExecutions(backend, async ({ store, clock }) => {
        await store.create({ id: "a", function: "f" });
        await store.lockPending({ ...byAnn, functions: ["f"], limit: 1 });
        clock.advance(laterMs);
        expect(await lockedIds(store, 1, "f")).toEqual([]);
      })(),
    );

    test(
      "[E25] what was given back for 500 ms is not due 100 ms too early, and is exactly then",
      onExecutions(backend, async (fixture) => {
        const { store, clock, database } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.lock("a", 1, byAnn);
        await store.unlock("a", 2, { holder: ann, reason: "busy", after: 500 });
        expect((await standing(fixture, "a")).pending).toEqual({
          kind: "pending",
          dueAt: T0 + 500,
          leaseUntil: null,
          lastLock: { ...ann, owner: database.owner },
        });
        clock.advance(400);
        expect(await lockedIds(store, 1, "f")).toEqual([]);
        clock.advance(100);
        expect(await lockedIds(store, 1, "f")).toEqual(["a"]);
        // Given back is not failed.
        expect((await stateOfExecution(database, "a")).failures).toBe(0);
      }),
    );

    test.each([
      ["timed out", { kind: "attemptTimedOut", dueAt: T0 + 300, counts: "attempt" } as const],
      ["failed", attemptFailed(T0 + 300)],
    ])("[E26] an attempt that %s, with 300 ms to wait, is not due 100 ms too early", (_, event) =>
      onExecutions(backend, async ({ store, clock, database }) => {
        await store.create({ id: "a", function: "f" });
        await store.lock("a", 1, byAnn);
        await store.append("a", 2, [event], { fence: ann });
        clock.advance(200);
        expect(await lockedIds(store, 1, "f")).toEqual([]);
        clock.advance(100);
        expect(await lockedIds(store, 1, "f")).toEqual(["a"]);
        expect((await stateOfExecution(database, "a")).failures).toBe(1);
      })(),
    );

    test(
      "[E30] a round takes at most what it asked for, and nothing of other functions",
      onExecutions(backend, async ({ store }) => {
        for (const id of ["a", "b", "c"]) await store.create({ id, function: "f" });
        await store.create({ id: "other", function: "g" });
        expect(await lockedIds(store, 2, "f")).toEqual(["a", "b"]);
        expect(await lockedIds(store, 100, "f")).toEqual(["c"]);
        expect(await lockedIds(store, 100, "f", "h")).toEqual([]);
        expect(await lockedIds(store, 100, "g")).toEqual(["other"]);
      }),
    );

    test(
      "[E30] rounds that race share what is due: each is locked once, none is left",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        const ids = Array.from({ length: 30 }, (_, n) => `e${n + 10}`);
        await Promise.all(ids.map((id) => store.create({ id, function: "f" })));
        const rounds = await Promise.all(
          Array.from({ length: 12 }, () => lockedIds(store, 5, "f")),
        );
        const last = await lockedIds(store, 100, "f");
        expect([...rounds.flat(), ...last].toSorted()).toEqual(ids);
        for (const round of rounds) expect(round.length).toBeLessThan(6);
        expect(await kindsOf(fixture, "e10")).toBe("created locked");
      }),
    );
  });

  describe("fairness of locking", () => {
    test(
      "due times decide, not the order of functions: none can starve another",
      onExecutions(backend, async ({ store, clock }) => {
        for (const [id, name, after] of [
          ["f1", "f", 10],
          ["g1", "g", 5],
          ["f2", "f", 20],
          ["g2", "g", 15],
        ] as const)
          await store.create({ id, function: name, startAt: { in: after } });
        clock.advance(100);
        expect(await lockedIds(store, 3, "f", "g")).toEqual(["g1", "f1", "g2"]);
      }),
    );

    test(
      "of those due at one instant the id decides, by its bytes",
      onExecutions(backend, async ({ store }) => {
        for (const [id, name] of [
          ["b", "f"],
          ["a", "g"],
          ["B", "f"],
          ["_c", "g"],
        ] as const)
          await store.create({ id, function: name });
        expect(await lockedIds(store, 9, "f", "g")).toEqual(["B", "_c", "a", "b"]);
      }),
    );

    test(
      "each function may have its own way of retrying",
      onExecutions(backend, async ({ store, database }) => {
        for (const id of ["f", "g", "h"])
          await store.create({ id, function: id, role: "activity" });
        const once = { maxRetries: 1, backoffMs: 7, backoffMaxMs: 9 };
        const never = { maxRetries: 0, backoffMs: 1, backoffMaxMs: 1 };
        await store.lockPending({
          ...byAnn,
          retry: never,
          functions: [{ name: "f", retry: once }, "g"],
          limit: 9,
        });
        await store.lockPending({ ...byAnn, functions: ["h"], limit: 9 });
        expect((await stateOfExecution(database, "f")).retry).toEqual(once);
        expect((await stateOfExecution(database, "g")).retry).toEqual(never);
        expect((await stateOfExecution(database, "h")).retry).toEqual({
          maxRetries: 5,
          backoffMs: 100,
          backoffMaxMs: 60_000,
        });
      }),
    );
  });
}
