import { describe, expect, test } from "vitest";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { joinNext, step, waiting } from "./execution-events.ts";
import {
  T0,
  ann,
  annLater,
  bob,
  byAnn,
  byBob,
  kindsOf,
  lockedIds,
  onExecutions,
  refusal,
  standing,
  stateOfExecution,
} from "./fixture.ts";

export function executionLockRulesSuite(backend: Backend): void {
  describe("locking one execution", () => {
    test.each([
      ["right away", 0],
      ["at the instant its lease ends", 1_000],
      ["after its lease, while nobody has recorded that", 5_000],
    ])("[E27] the same executor and run extend their lock %s", (_, laterMs) =>
      onExecutions(backend, async (fixture) => {
        const { store, clock, database } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.lock("a", 1, byAnn);
        clock.advance(laterMs);
        // Only what is new is answered: what is known of the execution stays.
        expect(await store.extend("a", 2, byAnn)).toEqual({
          nextVersion: 3,
          at: T0 + laterMs,
        });
        expect((await standing(fixture, "a")).pending).toEqual({
          kind: "locked",
          holder: { ...ann, owner: database.owner },
          leaseUntil: T0 + laterMs + 1_000,
          lockVersion: 2,
          isAlone: false,
        });
      })(),
    );

    test(
      "a lock that was prepared long ago is one of the instant at which it is run",
      onExecutions(backend, async ({ store, clock, database }) => {
        const isolation = "readCommitted";
        for (const id of ["a", "b"]) await store.create({ id, function: "f" });
        const lock = store.lock.prepare("a", 1, byAnn);
        const lockDue = store.lockPending.prepare({
          ...byAnn,
          functions: ["f"],
          limit: 10,
        });
        clock.advance(3_600_000);
        expect(await database.write("lock", lock, { isolation })).toMatchObject({
          leaseUntil: T0 + 3_601_000,
        });
        const { locked } = await database.write("lock due", lockDue, {
          isolation,
        });
        expect(locked).toMatchObject([{ id: "b", leaseUntil: T0 + 3_601_000 }]);
      }),
    );

    test.each([
      ["executor", { executor: bob.executor, run: ann.run }],
      ["run", annLater],
      ["executor and run", bob],
    ])("[E27] another %s is refused, also after the lease", (_, holder) =>
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.lock("a", 1, byAnn);
        for (const laterMs of [0, 1_000, 5_000]) {
          clock.set(T0 + laterMs);
          for (const take of ["lock", "extend"] as const)
            expect(
              await refusal(fixture, () => store[take]("a", 2, { holder, lease: 1_000 })),
            ).toBe("LOCK_HELD");
        }
      })(),
    );

    test(
      "[E28] a lock that ends when it begins is refused, however it is taken",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        const none = { ...byAnn, lease: 0 };
        for (const call of [
          () => store.lock("a", 1, none),
          () => store.extend("a", 1, none),
          () => store.lockPending({ ...none, functions: ["f"], limit: 1 }),
          () => store.createLocked({ id: "b", function: "f" }, none),
        ])
          expect(await refusal(fixture, call)).toBe("LOCK_EXPIRY_INVALID");
      }),
    );

    test.each([
      ["a join set", joinNext("n:x", T0)],
      ["any response", waiting(0, T0)],
    ])("[E28] one that waits for %s cannot be locked", (_, event) =>
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.lock("a", 1, byAnn);
        await store.append("a", 2, [event]);
        for (const options of [byAnn, byBob])
          expect(await refusal(fixture, () => store.lock("a", 3, options))).toBe("LOCK_BLOCKED");
      })(),
    );

    test(
      "[E28] one that has finished cannot be locked",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.finish("a", 1, { kind: "completed", value: 1 });
        for (const version of [1, 2])
          expect(await refusal(fixture, () => store.lock("a", version, byAnn))).toBe(
            "EXECUTION_FINISHED",
          );
      }),
    );

    test(
      "[E28] one that is not due yet is refused, and told when it is",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f", startAt: { in: 50 } });
        expect(await refusal(fixture, () => store.lock("a", 1, byAnn))).toBe("LOCK_NOT_DUE");
        const error = await rejection(store.lock("a", 1, byAnn));
        expect(error.details).toEqual({ id: "a", dueAt: T0 + 50 });
        expect(error.retryable).toBe(true);
      }),
    );

    test(
      "[E29] before it is due, the run that locked it last may extend, and nobody else",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.lock("a", 1, byAnn);
        await store.unlock("a", 2, { holder: ann, reason: "busy", after: 500 });
        for (const holder of [annLater, bob])
          for (const take of ["lock", "extend"] as const)
            expect(
              await refusal(fixture, () => store[take]("a", 3, { holder, lease: 1_000 })),
            ).toBe("LOCK_NOT_DUE");
        expect(await store.extend("a", 3, byAnn)).toEqual({
          nextVersion: 4,
          at: T0,
        });
        expect((await standing(fixture, "a")).pending.kind).toBe("locked");
      }),
    );

    test(
      "a lock that is appended as an event obeys the same rules",
      onExecutions(backend, async (fixture) => {
        const { store, database } = fixture;
        await store.create({ id: "a", function: "f" });
        const locked = (by: typeof ann, leaseUntil: number) =>
          ({
            kind: "locked",
            holder: { ...by, owner: database.owner },
            leaseUntil,
            retry: { maxRetries: 1, backoffMs: 1, backoffMaxMs: 1 },
            codeVersion: null,
          }) as const;
        expect(await refusal(fixture, () => store.append("a", 1, [locked(ann, T0)]))).toBe(
          "LOCK_EXPIRY_INVALID",
        );
        await store.append("a", 1, [locked(ann, T0 + 9)]);
        expect(await refusal(fixture, () => store.append("a", 2, [locked(bob, T0 + 9)]))).toBe(
          "LOCK_HELD",
        );
        await store.append("a", 2, [locked(ann, T0 + 99)]);
        expect((await standing(fixture, "a")).pending).toMatchObject({
          kind: "locked",
          leaseUntil: T0 + 99,
          lockVersion: 2,
          isAlone: false,
        });
      }),
    );

    test(
      "[E27] [E29] locking what one's own run has locked extends it, and answers as any lock does",
      onExecutions(backend, async ({ store, clock }) => {
        await store.create({ id: "a", function: "f", input: 5 });
        await store.lock("a", 1, byAnn);
        await store.append("a", 2, [step("s")]);
        clock.advance(10);
        const again = { id: "a", input: 5, history: [{ version: 2 }] };
        expect(await store.lock("a", 3, byAnn)).toMatchObject({
          ...again,
          nextVersion: 4,
          leaseUntil: T0 + 1_010,
        });
        await store.unlock("a", 4, { holder: ann, reason: "busy", after: 500 });
        expect(await store.lock("a", 5, byAnn)).toMatchObject(again);
      }),
    );

    test(
      "only the run that locked it last extends; others are told that it is lost",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        const lost = (version: number, options = byAnn) =>
          refusal(fixture, () => store.extend("a", version, options));
        expect(await lost(1)).toBe("LOCK_LOST");
        await store.lock("a", 1, byAnn);
        expect(await lost(1)).toBe("VERSION_CONFLICT");
        await store.unlock("a", 2, { holder: ann, reason: "done" });
        expect(await lost(3, byBob)).toBe("LOCK_LOST");
        // Due again, but nobody has taken it.
        expect(await store.extend("a", 3, byAnn)).toEqual({
          nextVersion: 4,
          at: T0,
        });
      }),
    );

    test(
      "an extension keeps the way of retrying unless another is given",
      onExecutions(backend, async ({ store, database }) => {
        const never = { maxRetries: 0, backoffMs: 1, backoffMaxMs: 1 };
        const once = { maxRetries: 1, backoffMs: 2, backoffMaxMs: 3 };
        const retryOfA = async () => (await stateOfExecution(database, "a")).retry;
        await store.create({ id: "a", function: "f", role: "activity" });
        await store.lockPending({
          ...byAnn,
          functions: [{ name: "f", retry: never }],
          limit: 1,
        });
        await store.extend("a", 2, byAnn);
        expect(await retryOfA()).toEqual(never);
        await store.lock("a", 3, byAnn);
        expect(await retryOfA()).toEqual(never);
        await store.extend("a", 4, { ...byAnn, retry: once });
        expect(await retryOfA()).toEqual(once);
      }),
    );

    test(
      "the rules of locking come before the version, and the version is checked too",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        expect(await refusal(fixture, () => store.lock("a", 2, byAnn))).toBe("VERSION_CONFLICT");
        await store.lock("a", 1, byAnn);
        expect(await refusal(fixture, () => store.lock("a", 1, byBob))).toBe("LOCK_HELD");
        expect(await refusal(fixture, () => store.lock("a", 1, byAnn))).toBe("VERSION_CONFLICT");
        expect(await refusal(fixture, () => store.lock("nobody", 1, byAnn))).toBe(
          "EXECUTION_NOT_FOUND",
        );
      }),
    );
  });

  describe("creating and locking in one step", () => {
    test(
      "gives what locking would, at version 2",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        const outcome = await store.createLocked({ id: "a", function: "f", input: 5 }, byAnn);
        expect(outcome).toMatchObject({
          id: "a",
          existed: false,
          nextVersion: 2,
          locked: { id: "a", input: 5, nextVersion: 2, leaseUntil: T0 + 1_000 },
        });
        expect(await kindsOf(fixture, "a")).toBe("created locked");
        expect(await lockedIds(store, 1, "f")).toEqual([]);
      }),
    );

    test(
      "does not lock what was there before",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f", input: 5 });
        const outcome = await store.createLocked({ id: "a", function: "f", input: 5 }, byAnn);
        expect(outcome).toMatchObject({ existed: true, nextVersion: 1 });
        expect("locked" in outcome).toBe(false);
        expect(await kindsOf(fixture, "a")).toBe("created");
      }),
    );

    test(
      "repeated by the run that holds it, gives the lock as it stands; to another run nothing",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        const call = (options = byAnn) =>
          store.createLocked({ id: "a", function: "f", input: 5 }, options);
        await call();
        clock.advance(10);
        expect(await call()).toMatchObject({
          existed: true,
          nextVersion: 2,
          locked: { id: "a", input: 5, nextVersion: 2, leaseUntil: T0 + 1_000 },
        });
        await store.append("a", 2, [step("s")]);
        expect(await call()).toMatchObject({
          nextVersion: 3,
          locked: { nextVersion: 3, history: [{ version: 2 }] },
        });
        for (const options of [byBob, { ...byAnn, holder: annLater }])
          expect("locked" in (await call(options))).toBe(false);
        expect(await kindsOf(fixture, "a")).toBe("created locked stepFinished");
        await store.unlock("a", 3, { holder: ann, reason: "done" });
        expect("locked" in (await call())).toBe(false);
      }),
    );

    test.each([
      ["LOCK_NOT_DUE", { startAt: { in: 5 } }],
      ["EXECUTION_PAUSED", { isPaused: true }],
      ["LOCK_BLOCKED", { role: "external" }],
    ] as const)("creates nothing when it cannot lock: %s", (code, options) =>
      onExecutions(backend, async (fixture) => {
        expect(
          await refusal(fixture, () =>
            fixture.store.createLocked({ id: "a", function: "f", ...options }, byAnn),
          ),
        ).toBe(code);
      })(),
    );
  });
}
