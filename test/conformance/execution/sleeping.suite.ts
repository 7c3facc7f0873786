import { describe, expect, test } from "vitest";
import { executionContext } from "../../../src/stores/execution/context.ts";
import { releaseExecution } from "../../../src/stores/execution/timers/release.ts";
import { pendingWork } from "../../../src/stores/execution/topics.ts";
import type { Backend } from "../backend.ts";
import { executionId } from "./awaited-executions.ts";
import { step, waiting } from "./execution-events.ts";
import {
  T0,
  ann,
  bob,
  byAnn,
  byBob,
  lockedIds,
  onExecutions,
  openDelays,
  refusal,
  standing,
} from "./fixture.ts";
import type { ExecutionFixture } from "./fixture.ts";

/** "a" is locked by ann and says that it waits until `wakeAt`, kept in memory until `leaseUntil`. */
async function sleeping(
  { store }: ExecutionFixture,
  leaseUntil: number,
  wakeAt: number,
): Promise<void> {
  await store.createLocked({ id: "a", function: "f" }, byAnn);
  await store.append("a", 2, [step("s"), waiting(0, leaseUntil, wakeAt)], {
    fence: ann,
  });
}

export function executionSleepingSuite(backend: Backend): void {
  describe("a run that waits, and no longer than until an instant", () => {
    test.each([
      ["the instant", T0, T0 + 800, T0 + 800, null],
      ["the instant, after its lease", T0 + 300, T0 + 800, T0 + 800, T0 + 300],
      ["its lease, after the instant", T0 + 900, T0 + 800, T0 + 900, T0 + 900],
      ["an instant that has passed", T0, T0 - 1, T0 - 1, null],
    ] as const)(
      "[R13] is due at the end of %s, and not before",
      (_, runExpiresAt, wakeAt, dueAt, leaseUntil) =>
        onExecutions(backend, async (fixture) => {
          const { store, clock, database } = fixture;
          await sleeping(fixture, runExpiresAt, wakeAt);
          expect((await standing(fixture, "a")).pending).toEqual({
            kind: "pending",
            dueAt,
            leaseUntil,
            lastLock: { ...ann, owner: database.owner },
            seen: 0,
            wakeAt,
          });
          expect(await openDelays(fixture)).toEqual([]);
          clock.set(dueAt - 1);
          expect(await lockedIds(store, 9, "f")).toEqual([]);
          expect(await refusal(fixture, () => store.lock("a", 4, byBob))).toBe("LOCK_NOT_DUE");
          clock.set(dueAt);
          await store.waitForPending(["f"], { timeout: 0 });
          expect(await lockedIds(store, 9, "f")).toEqual(["a"]);
          expect((await standing(fixture, "a")).pending.kind).toBe("locked");
        })(),
    );

    test.each([
      ["at once when nobody keeps it", T0, T0 + 40, null],
      ["at the end of the lease of who keeps it", T0 + 300, T0 + 300, T0 + 300],
      ["at once when that has passed", T0 + 40, T0 + 40, null],
    ] as const)(
      "[R13] is due %s when a response comes first",
      (_, runExpiresAt, dueAt, leaseUntil) =>
        onExecutions(backend, async (fixture) => {
          const { store, clock, database } = fixture;
          await sleeping(fixture, runExpiresAt, T0 + 800);
          clock.set(T0 + 40);
          const heard: string[] = [];
          database.subscribe((hint) => {
            if (hint.kind === "change" && hint.operation === pendingWork) heard.push(hint.key);
          });
          await store.signal("a", "go", 1);
          expect(heard).toEqual(["f"]);
          expect((await standing(fixture, "a")).pending).toEqual({
            kind: "pending",
            dueAt,
            leaseUntil,
            lastLock: { ...ann, owner: database.owner },
          });
          await store.signal("a", "go", 2);
          expect((await standing(fixture, "a")).pending).toMatchObject({
            dueAt,
          });
        })(),
    );

    test(
      "[R13] is due at once, or at the end of its lease, when what it waits for had come",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        await store.createLocked({ id: "a", function: "f" }, byAnn);
        await store.signal("a", "go", 1);
        clock.advance(10);
        await store.append("a", 2, [waiting(0, T0, T0 + 800)]);
        expect((await standing(fixture, "a")).pending).toMatchObject({
          kind: "pending",
          dueAt: T0,
        });
        await store.append("a", 3, [waiting(1, T0, T0 + 800)]);
        expect((await standing(fixture, "a")).pending).toMatchObject({
          dueAt: T0 + 800,
          seen: 1,
        });
      }),
    );

    test(
      "[R13] is blocked for people until the instant, and due then",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        await sleeping(fixture, T0, T0 + 800);
        const shown = async (): Promise<readonly unknown[]> => {
          const found: unknown[] = [];
          for (const status of ["blocked", "scheduled", "pending"] as const)
            if ((await store.list({ status })).items.length > 0) found.push(status);
          const { counts } = await store.count();
          return [...found, counts.map(({ status }) => status)];
        };
        clock.set(T0 + 799);
        expect(await shown()).toEqual(["blocked", ["blocked"]]);
        clock.set(T0 + 800);
        expect(await shown()).toEqual(["pending", ["pending"]]);
      }),
    );

    test(
      "[R13] goes on waiting until then when it is given back, or its worker has died",
      onExecutions(backend, async (fixture) => {
        const { store, clock, database } = fixture;
        const asleep = { kind: "pending", dueAt: T0 + 200, leaseUntil: null };
        await sleeping(fixture, T0 + 500, T0 + 200);
        await store.unlock("a", 4, { holder: ann, reason: "evicted" });
        expect((await standing(fixture, "a")).pending).toMatchObject({
          ...asleep,
          seen: 0,
          wakeAt: T0 + 200,
        });
        clock.set(T0 + 200);
        await store.lock("a", 5, byAnn);
        await store.append("a", 6, [waiting(0, T0 + 900, T0 + 600)], {
          fence: ann,
        });
        await database.write(releaseExecution(executionContext(database)), {
          id: executionId("a"),
          owner: database.owner,
          at: clock.now(),
          random: 0,
        });
        expect((await standing(fixture, "a")).pending).toMatchObject({
          ...asleep,
          dueAt: T0 + 600,
          wakeAt: T0 + 600,
        });
      }),
    );

    test(
      "[R13] who keeps it goes on without a lock, and may say anew how long it waits",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await sleeping(fixture, T0 + 500, T0 + 100);
        await store.append("a", 4, [step("t"), waiting(0, T0 + 500, T0 + 900)], { fence: ann });
        expect((await standing(fixture, "a")).pending).toMatchObject({
          dueAt: T0 + 900,
          leaseUntil: T0 + 500,
        });
        await store.append("a", 6, [waiting(0, T0 + 500)], { fence: ann });
        expect((await standing(fixture, "a")).pending).toMatchObject({
          kind: "blocked",
          leaseUntil: T0 + 500,
        });
      }),
    );

    test(
      "[R13] is due when it is asked to end",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        await sleeping(fixture, T0, T0 + 800);
        clock.advance(5);
        expect(await store.cancel("a")).toBe("requested");
        expect((await standing(fixture, "a")).pending).toMatchObject({
          kind: "pending",
          dueAt: T0 + 5,
        });
        expect(await lockedIds(store, 9, "f")).toEqual(["a"]);
      }),
    );
  });

  extending(backend);
}

function extending(backend: Backend): void {
  describe("extending what one keeps in memory while it waits", () => {
    test.each([
      [
        "any response",
        waiting(0, T0 + 500),
        { kind: "blocked", leaseUntil: T0 + 1_400 },
        T0 + 1_400,
      ],
      [
        "any, until an instant before",
        waiting(0, T0 + 500, T0 + 600),
        { kind: "pending", dueAt: T0 + 1_400, leaseUntil: T0 + 1_400 },
        T0 + 1_400,
      ],
      [
        "any, until an instant after",
        waiting(0, T0 + 500, T0 + 2_000),
        { kind: "pending", dueAt: T0 + 2_000, leaseUntil: T0 + 1_400 },
        T0 + 1_400,
      ],
    ] as const)(
      "[R13] for %s keeps it for longer, and it goes on waiting",
      (_, event, pending, dueAt) =>
        onExecutions(backend, async (fixture) => {
          const { store, clock } = fixture;
          await store.createLocked({ id: "a", function: "f" }, byAnn);
          await store.append("a", 2, [event], { fence: ann });
          clock.set(T0 + 400);
          expect(await refusal(fixture, () => store.extend("a", 3, byBob))).toMatch(
            /^LOCK_(BLOCKED|NOT_DUE)$/,
          );
          await store.extend("a", 3, byAnn);
          expect((await standing(fixture, "a")).pending).toMatchObject(pending);
          await store.append("a", 4, [step("goes on")], { fence: ann });
          // What comes now is its holder's until the new end.
          await store.signal("a", "go", 1);
          expect((await standing(fixture, "a")).pending).toMatchObject({
            kind: "pending",
            dueAt,
            leaseUntil: T0 + 1_400,
          });
        })(),
    );

    test(
      "[R13] is refused once nobody keeps it",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.createLocked({ id: "a", function: "f" }, byAnn);
        await store.append("a", 2, [waiting(0, T0)], { fence: ann });
        expect(await refusal(fixture, () => store.extend("a", 3, byAnn))).toBe("LOCK_BLOCKED");
        await store.signal("a", "go", 1);
        await store.lock("a", 3, { holder: bob, lease: 100 });
        expect(await refusal(fixture, () => store.extend("a", 4, byAnn))).toBe("LOCK_HELD");
      }),
    );
  });
}
