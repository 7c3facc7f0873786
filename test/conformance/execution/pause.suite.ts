import { describe, expect, test } from "vitest";
import { expiredTimers } from "../../fixtures/execution-operations.ts";
import type { Backend } from "../backend.ts";
import { delayRequested, joinNext, step, waiting } from "./execution-events.ts";
import {
  T0,
  ann,
  bob,
  byAnn,
  dump,
  kindsOf,
  lockedIds,
  onExecutions,
  refusal,
  standing,
} from "./fixture.ts";

export function executionPauseSuite(backend: Backend): void {
  describe("pausing an execution", () => {
    test(
      "keeps it from being locked and written to until it is unpaused, and then it is due as before",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f", startAt: { at: T0 - 9 } });
        expect(await store.pause("a")).toEqual({
          nextVersion: 2,
          isChanged: true,
        });
        expect(await standing(fixture, "a")).toEqual({
          version: 1,
          lifecycle: "paused",
          pending: {
            kind: "pending",
            dueAt: T0 - 9,
            leaseUntil: null,
            lastLock: null,
          },
        });
        expect(await lockedIds(store, 9, "f")).toEqual([]);
        for (const call of [
          () => store.lock("a", 2, byAnn),
          () => store.append("a", 2, [step("quiet")]),
          () => store.append("a", 2, [waiting(0, T0)]),
          () => store.append("a", 2, [{ kind: "paused" }]),
        ])
          expect(await refusal(fixture, call)).toBe("EXECUTION_PAUSED");
        expect(await store.unpause("a")).toEqual({
          nextVersion: 3,
          isChanged: true,
        });
        expect(await lockedIds(store, 9, "f")).toEqual(["a"]);
      }),
    );

    test(
      "[R9] leaves a workflow to its worker, which records what it does behind it and unlocks it",
      onExecutions(backend, async (fixture) => {
        const { store, clock, database } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.lock("a", 1, byAnn);
        clock.advance(10);
        expect(await store.pause("a")).toEqual({
          nextVersion: 3,
          isChanged: true,
        });
        expect(await standing(fixture, "a")).toEqual({
          version: 2,
          lifecycle: "paused",
          pending: {
            kind: "locked",
            holder: { ...ann, owner: database.owner },
            leaseUntil: T0 + 1_000,
            lockVersion: 1,
            isAlone: false,
          },
        });
        expect(
          await refusal(fixture, () => store.append("a", 2, [step("mine")], { fence: ann })),
        ).toBe("VERSION_CONFLICT");
        expect(
          await refusal(fixture, () => store.append("a", 3, [step("mine")], { fence: bob })),
        ).toBe("LOCK_LOST");
        await store.append("a", 3, [step("mine")], { fence: ann });
        expect(await refusal(fixture, () => store.extend("a", 4, byAnn))).toBe("EXECUTION_PAUSED");
        await store.unlock("a", 4, { holder: ann, reason: "paused" });
        expect(await kindsOf(fixture, "a")).toBe("created locked paused stepFinished unlocked");
        expect(await lockedIds(store, 9, "f")).toEqual([]);
        for (const call of [
          () => store.lock("a", 5, byAnn),
          () => store.append("a", 5, [step("late")], { fence: ann }),
        ])
          expect(await refusal(fixture, call)).toBe("EXECUTION_PAUSED");
        await store.unpause("a");
        expect(await lockedIds(store, 9, "f")).toEqual(["a"]);
      }),
    );

    test.each([
      ["waits", [waiting(0, T0 + 1_000)], "blocked"],
      ["asks a join set", [joinNext("n:x", T0 + 1_000)], "blocked"],
      ["asks, and lets go", [joinNext("n:x", T0)], "blocked"],
    ] as const)(
      "[R9] lets its worker say that it %s; what comes then makes it due once it is unpaused",
      (_, events, kind) =>
        onExecutions(backend, async (fixture) => {
          const { store, clock } = fixture;
          await store.create({ id: "a", function: "f" });
          await store.lock("a", 1, byAnn);
          await store.pause("a");
          await store.append("a", 3, events, { fence: ann });
          expect((await standing(fixture, "a")).pending.kind).toBe(kind);
          await store.create({ id: "a.n:x_1", function: "child" });
          await store.finish("a.n:x_1", 1, { kind: "completed", value: 1 });
          clock.advance(1_000);
          expect((await standing(fixture, "a")).pending.kind).toBe("pending");
          expect(await lockedIds(store, 9, "f")).toEqual([]);
          await store.unpause("a");
          expect(await lockedIds(store, 9, "f")).toEqual(["a"]);
        })(),
    );

    test(
      "[R9] does not keep its worker from ending it, nor from going on once it is unpaused",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        for (const id of ["ends", "goes-on"]) {
          await store.create({ id, function: "f" });
          await store.lock(id, 1, byAnn);
          await store.pause(id);
        }
        const result = { kind: "completed", value: 1 } as const;
        await store.finish("ends", 3, result, { fence: ann });
        await store.unpause("goes-on");
        await store.append("goes-on", 4, [step("on")], { fence: ann });
        await store.extend("goes-on", 5, byAnn);
        expect(await kindsOf(fixture, "goes-on")).toBe(
          "created locked paused unpaused stepFinished locked",
        );
      }),
    );

    test(
      "is refused for an activity that runs, and fine for one between two attempts",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f", role: "activity" });
        await store.lock("a", 1, byAnn);
        for (const call of [
          () => store.pause("a"),
          () => store.append("a", 2, [{ kind: "paused" }]),
        ])
          expect(await refusal(fixture, call)).toBe("EXECUTION_RUNNING");
        await store.unlock("a", 2, { holder: ann, reason: "busy" });
        await store.pause("a");
        expect(await lockedIds(store, 9, "f")).toEqual([]);
      }),
    );

    test(
      "lets responses come: what waited is due once it is unpaused",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.append("a", 1, [waiting(0, T0)]);
        await store.pause("a");
        clock.advance(5);
        await store.signal("a", "go", 1);
        expect(await standing(fixture, "a")).toMatchObject({
          lifecycle: "paused",
          pending: { kind: "pending", dueAt: T0 + 5 },
        });
        expect(await lockedIds(store, 9, "f")).toEqual([]);
        await store.unpause("a");
        expect(await lockedIds(store, 9, "f")).toEqual(["a"]);
      }),
    );

    test(
      "[R9] leaves one that waits to the worker that keeps it in memory, until its lease has passed",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.lock("a", 1, byAnn);
        await store.append("a", 2, [joinNext("n:x", T0 + 1_000)]);
        await store.pause("a");
        expect(await standing(fixture, "a")).toMatchObject({
          lifecycle: "paused",
          pending: { kind: "blocked", leaseUntil: T0 + 1_000 },
        });
        await store.append("a", 4, [step("goes on")], { fence: ann });
        clock.advance(1_000);
        expect(
          await refusal(fixture, () => store.append("a", 5, [step("late")], { fence: ann })),
        ).toBe("EXECUTION_PAUSED");
      }),
    );

    test(
      "works also when the lease of the one that kept it in memory has passed",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.lock("a", 1, byAnn);
        await store.append("a", 2, [waiting(0, T0 + 1_000)], { fence: ann });
        await store.signal("a", "go", 1);
        clock.advance(1_500);
        await store.pause("a");
        expect(await kindsOf(fixture, "a")).toBe("created locked waiting paused");
        expect(await lockedIds(store, 9, "f")).toEqual([]);
        await store.unpause("a");
        expect(await lockedIds(store, 9, "f")).toEqual(["a"]);
      }),
    );

    test(
      "may be the way an execution begins",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f", isPaused: true });
        expect(await lockedIds(store, 9, "f")).toEqual([]);
        await store.unpause("a");
        expect(await lockedIds(store, 9, "f")).toEqual(["a"]);
      }),
    );

    test(
      "does not keep it from ending",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f", isPaused: true });
        await store.finish("a", 1, { kind: "completed", value: 1 });
        expect(await standing(fixture, "a")).toMatchObject({
          lifecycle: "active",
          pending: { kind: "finished" },
        });
      }),
    );

    test(
      "and its opposite may be repeated: what is so already is told, and nothing is written",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        const kinds: string[] = [];
        for (const [call, nextVersion] of [
          [() => store.pause("a"), 2],
          [() => store.unpause("a"), 3],
          [() => store.append("a", 3, [parked]), 4],
          [() => store.unpark("a"), 5],
        ] as const) {
          await call();
          kinds.push(await kindsOf(fixture, "a"));
          const again = { nextVersion, isChanged: false };
          const { pending } = await standing(fixture, "a");
          if (nextVersion !== 4) expect(await call()).toEqual(again);
          expect(await kindsOf(fixture, "a")).toBe(kinds.at(-1));
          expect((await standing(fixture, "a")).pending).toEqual(pending);
        }
        expect(kinds.at(-1)).toBe("created paused unpaused parked unparked");
      }),
    );

    test(
      "and its opposite are refused where they make no sense",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        for (const id of ["active", "finished", "cancelling", "parked"])
          await store.create({ id, function: "f" });
        await store.finish("finished", 1, { kind: "completed", value: 1 });
        await store.lock("cancelling", 1, byAnn);
        await store.cancel("cancelling");
        await store.append("parked", 1, [parked]);
        for (const [call, code] of [
          [() => store.append("active", 1, [{ kind: "unpaused" }]), "EXECUTION_NOT_PAUSED"],
          [() => store.append("active", 1, [{ kind: "unparked" }]), "EXECUTION_NOT_PARKED"],
          [() => store.pause("finished"), "EXECUTION_FINISHED"],
          [() => store.unpause("finished"), "EXECUTION_FINISHED"],
          [() => store.unpark("finished"), "EXECUTION_FINISHED"],
          [() => store.pause("cancelling"), "EXECUTION_CANCELLING"],
          [() => store.unpause("cancelling"), "EXECUTION_CANCELLING"],
          [() => store.pause("parked"), "EXECUTION_PARKED"],
          [() => store.unpause("parked"), "EXECUTION_PARKED"],
          [() => store.pause("nobody"), "EXECUTION_NOT_FOUND"],
          [() => store.unpark("nobody"), "EXECUTION_NOT_FOUND"],
        ] as const)
          expect(await refusal(fixture, call)).toBe(code);
      }),
    );
  });

  parking(backend);
}

const parked = {
  kind: "parked",
  code: "NONDETERMINISM",
  reason: "call 3 was made differently",
  codeVersion: "v2",
} as const;

function parking(backend: Backend): void {
  describe("parking an execution", () => {
    test(
      "takes it from its worker and keeps it aside until it is unparked",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.lock("a", 1, byAnn);
        clock.advance(10);
        await store.append("a", 2, [parked], { fence: ann });
        expect(await standing(fixture, "a")).toMatchObject({
          lifecycle: "parked",
          pending: { kind: "pending", dueAt: T0 + 10, leaseUntil: null },
        });
        expect(await lockedIds(store, 9, "f")).toEqual([]);
        for (const call of [
          () => store.lock("a", 3, byAnn),
          () => store.append("a", 3, [step("late")], { fence: ann }),
        ])
          expect(await refusal(fixture, call)).toBe("EXECUTION_PARKED");
        expect(await store.unpark("a")).toEqual({
          nextVersion: 4,
          isChanged: true,
        });
        expect(await lockedIds(store, 9, "f")).toEqual(["a"]);
      }),
    );
  });

  describe("pausing a delay", () => {
    test(
      "keeps it from expiring until it is unpaused; both may be repeated",
      onExecutions(backend, async (fixture) => {
        const { store, database } = fixture;
        const delay = "Delay_a.o:1_1";
        const due = async (): Promise<readonly string[]> =>
          (await database.read(expiredTimers, { at: T0 + 100, limit: 9 })).timers.map(
            (timer) => timer.kind,
          );
        await store.create({ id: "a", function: "f" });
        await store.append("a", 1, [delayRequested(delay, T0 + 100)]);
        expect(await due()).toEqual(["delay"]);
        await store.pauseDelay(delay);
        const before = await dump(fixture);
        await store.pauseDelay(delay);
        expect(await dump(fixture)).toEqual(before);
        expect(await due()).toEqual([]);
        await store.unpauseDelay(delay);
        await store.unpauseDelay(delay);
        expect(await due()).toEqual(["delay"]);
      }),
    );

    test(
      "does not keep it from being cancelled",
      onExecutions(backend, async ({ store }) => {
        const delay = "Delay_a.o:1_1";
        await store.create({ id: "a", function: "f" });
        await store.append("a", 1, [delayRequested(delay, T0 + 100)]);
        await store.pauseDelay(delay);
        expect(await store.cancelDelay(delay)).toBe("answered");
      }),
    );
  });
}
