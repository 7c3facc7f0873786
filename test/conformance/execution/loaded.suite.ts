import { describe, expect, test } from "vitest";
import { executionContext } from "../../../src/stores/execution/context.ts";
import { releaseExecution } from "../../../src/stores/execution/timers/release.ts";
import type { Backend } from "../backend.ts";
import { executionId } from "./awaited-executions.ts";
import { step, waiting } from "./execution-events.ts";
import {
  T0,
  ann,
  annLater,
  byAnn,
  byBob,
  dump,
  lockedIds,
  onExecutions,
  refusal,
} from "./fixture.ts";

export function executionLoadedSuite(backend: Backend): void {
  describe("what a lock tells of an execution", () => {
    test(
      "[R15] its tags, where its history begins, and deaths without progress",
      onExecutions(backend, async ({ store, database, clock }) => {
        const draft = { id: "a", function: "f", tags: ["vip", "eu", "vip"] };
        const { locked } = await store.createLocked(draft, byAnn);
        expect(locked).toMatchObject({
          tags: ["eu", "vip"],
          historyFrom: 0,
          deaths: 0,
          cancellation: null,
        });
        await store.append("a", 2, [step("s"), { kind: "continued", input: 2 }]);
        const lock = { ...byAnn, retry };
        await store.lock("a", 4, lock);
        await database.write(releaseExecution(executionContext(database)), {
          id: executionId("a"),
          owner: database.owner,
          at: clock.now(),
          random: 0,
        });
        clock.advance(100);
        expect(await store.lock("a", 6, lock)).toMatchObject({
          tags: ["eu", "vip"],
          historyFrom: 3,
          deaths: 1,
          input: 2,
          history: [],
        });
        const copy = await store.fork("a", 2, { id: "copy" });
        expect(await store.lock("copy", copy.nextVersion, byAnn)).toMatchObject({
          tags: ["eu", "vip"],
          historyFrom: 0,
        });
        expect((await store.get("copy")).tags).toEqual(["eu", "vip"]);
        expect((await store.list({ tag: "vip" })).items.length).toBe(2);
      }),
    );

    test(
      "[R15] the code version of the lock before: none at first, whatever it was created with",
      onExecutions(backend, async ({ store }) => {
        const draft = { id: "a", function: "f", codeVersion: "v1" };
        const first = { ...byAnn, codeVersion: "v1" };
        const created = () => store.createLocked(draft, first);
        expect((await created()).locked?.previousCodeVersion).toBe(null);
        // Repeated, it answers as it did.
        expect((await created()).locked?.previousCodeVersion).toBe(null);
        await store.unlock("a", 2, { holder: ann, reason: "busy" });
        const { locked } = await store.lockPending({
          ...byBob,
          codeVersion: "v2",
          functions: ["f"],
          limit: 1,
        });
        expect(locked).toMatchObject([{ previousCodeVersion: "v1" }]);
        await store.unlock("a", 4, { holder: byBob.holder, reason: "busy" });
        // A lock that names none leaves the last one known.
        expect(await store.lock("a", 5, byAnn)).toMatchObject({
          previousCodeVersion: "v2",
        });
        await store.unlock("a", 6, { holder: ann, reason: "busy" });
        expect(await store.lock("a", 7, { ...byAnn, holder: annLater })).toMatchObject({
          previousCodeVersion: "v2",
        });
      }),
    );
  });

  describe("loading an execution", () => {
    test(
      "[R15] gives what a lock gives, and locks nothing",
      onExecutions(backend, async (fixture) => {
        const { store, clock, database } = fixture;
        await store.create({
          id: "a",
          function: "f",
          input: { n: 1 },
          tags: ["t"],
        });
        await store.lock("a", 1, { ...byAnn, codeVersion: "v1" });
        await store.append("a", 2, [step("s", { a: 1 }), waiting(0, T0)]);
        clock.advance(5);
        await store.signal("a", "go", { b: 2 });
        const before = await dump(fixture);
        const loaded = await store.load("a");
        expect(await dump(fixture)).toEqual(before);
        expect(loaded).toMatchObject({
          id: "a",
          nextVersion: 4,
          input: { n: 1 },
          tags: ["t"],
          holder: { ...ann, owner: database.owner },
          leaseUntil: null,
          previousCodeVersion: "v1",
          history: [{ version: 2 }, { version: 3 }],
          responses: [{ seq: 1, response: { value: { b: 2 } } }],
          historyUpTo: 3,
        });
        const locked = await store.lock("a", 4, byBob);
        expect(locked).toEqual({
          ...loaded,
          nextVersion: 5,
          historyUpTo: 4,
          holder: { ...byBob.holder, owner: database.owner },
          leaseUntil: T0 + 1_005,
        });
      }),
    );

    test(
      "[R15] also of one that somebody has, and of one that has ended",
      onExecutions(backend, async (fixture) => {
        const { store, database } = fixture;
        await store.createLocked({ id: "a", function: "f", input: 7 }, byAnn);
        expect(await store.load("a")).toMatchObject({
          nextVersion: 2,
          holder: { ...ann, owner: database.owner },
          leaseUntil: T0 + 1_000,
          history: [],
        });
        await store.append("a", 2, [step("s")], { fence: ann });
        const result = { kind: "completed", value: 1 } as const;
        await store.finish("a", 3, result, { fence: ann });
        expect(await store.load("a")).toMatchObject({
          nextVersion: 3,
          input: 7,
          holder: null,
          leaseUntil: null,
          history: [{ version: 2, event: { kind: "stepFinished" } }],
          hasMoreHistory: false,
        });
        expect(await lockedIds(store, 9, "f")).toEqual([]);
        expect(await refusal(fixture, () => store.load("nobody"))).toBe("EXECUTION_NOT_FOUND");
      }),
    );
  });
}

const retry = { maxRetries: null, backoffMs: 100, backoffMaxMs: 1_000 };
