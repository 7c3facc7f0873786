import { describe, expect, test } from "vitest";
import type { GivenEvent } from "../../../src/model/execution/given-event.ts";
import { row } from "../../../src/sql/operation.ts";
import { sql } from "../../../src/sql/statement.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import {
  attemptFailed,
  childRequested,
  delayRequested,
  joinNext,
  joinSetCreated,
  step,
} from "./execution-events.ts";
import {
  T0,
  ann,
  annLater,
  bob,
  byAnn,
  byBob,
  kindsOf,
  onExecutions,
  openDelays,
  refusal,
  standing,
  stateOfExecution,
} from "./fixture.ts";

const done = { kind: "completed", value: "done" } as const;

export function executionAppendSuite(backend: Backend): void {
  describe("appending to an execution", () => {
    test.each(["created", "forked"] as const)(
      '[E13] "%s" cannot be appended: it has a call of its own',
      (kind) =>
        onExecutions(backend, async (fixture) => {
          const { store } = fixture;
          await store.create({ id: "a", function: "f" });
          const event = { kind } as unknown as GivenEvent;
          expect(await refusal(fixture, () => store.append("a", 1, [event]))).toBe(
            "EVENTS_INVALID",
          );
        })(),
    );

    test.each([0, 1, 3, 1_000])(
      "[E14] version %i instead of 2 is a conflict that carries both, and nothing is written",
      (requested) =>
        onExecutions(backend, async (fixture) => {
          const { store } = fixture;
          await store.create({ id: "a", function: "f" });
          await store.append("a", 1, [joinSetCreated("n:x")]);
          for (const event of [step("quiet"), joinNext("n:x", T0)]) {
            expect(await refusal(fixture, () => store.append("a", requested, [event]))).toBe(
              "VERSION_CONFLICT",
            );
            const error = await rejection(store.append("a", requested, [event]));
            expect(error.details).toEqual({ id: "a", expected: 2, requested });
          }
        })(),
    );

    test(
      "[E15] an execution that does not exist is not found, whatever is appended",
      onExecutions(backend, async (fixture) => {
        for (const event of [step("quiet"), joinNext("n:x", T0)])
          expect(await refusal(fixture, () => fixture.store.append("nobody", 1, [event]))).toBe(
            "EXECUTION_NOT_FOUND",
          );
      }),
    );

    test.each([
      ["another event", (): GivenEvent => step("late")],
      ["a failed attempt", (): GivenEvent => attemptFailed(T0 + 1)],
    ])(
      "[E16] after the end, which answers with its own version, %s is refused as finished",
      (_, event) =>
        onExecutions(backend, async (fixture) => {
          const { store } = fixture;
          await store.create({ id: "a", function: "f" });
          expect(await store.finish("a", 1, done)).toEqual({
            nextVersion: 1,
            at: T0,
          });
          // Finished comes before the version: both the next and a wrong one say so.
          for (const version of [1, 2, 77])
            expect(await refusal(fixture, () => store.append("a", version, [event()]))).toBe(
              "EXECUTION_FINISHED",
            );
        })(),
    );

    test.each(["a worker that knows key and fence", "somebody else"])(
      "[E16] an end by %s takes along every open delay",
      (who) =>
        onExecutions(backend, async (fixture) => {
          const { store, clock, database } = fixture;
          for (const id of ["a", "b"]) {
            await store.create({ id, function: "f" });
            await store.lock(id, 1, byAnn);
            await store.append(id, 2, [
              delayRequested(`Delay_${id}.n:x_1`, T0 + 10),
              delayRequested(`Delay_${id}.n:x_2`, T0 + 20),
            ]);
          }
          const { key } = await database.read("key", function* () {
            const found = yield* row<{ key: number }>(
              sql`SELECT key FROM holdfast_execution WHERE id = 'a'`,
            );
            return found ?? { key: -1 };
          });
          const knows = who === "somebody else" ? { fence: ann } : { fence: ann, key };
          await store.finish("a", 4, done, knows);
          expect(await openDelays(fixture)).toEqual(["Delay_b.n:x_1", "Delay_b.n:x_2"]);
          clock.set(T0 + 20);
          expect(await store.expireTimers()).toMatchObject({ delays: 2, damaged: [] });
          expect(await openDelays(fixture)).toEqual([]);
        })(),
    );

    test(
      "[E16] a second end at the version of the first is refused as finished unless it is the same again",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.append("a", 1, [step("work")]);
        expect(await store.finish("a", 2, done)).toEqual({
          nextVersion: 2,
          at: T0,
        });
        expect(await store.finish("a", 2, done)).toEqual({
          nextVersion: 2,
          at: T0,
        });
        expect(await kindsOf(fixture, "a")).toBe("created stepFinished finished");
        for (const [version, result] of [
          [2, { kind: "completed", value: "other" }],
          [2, { kind: "timedOut" }],
          [1, done],
          [3, done],
        ] as const)
          expect(await refusal(fixture, () => store.finish("a", version, result))).toBe(
            "EXECUTION_FINISHED",
          );
      }),
    );

    test(
      "[E17] the version of a finished log is that of its end",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.append("a", 1, [step("one"), step("two")]);
        clock.advance(40);
        expect(await store.finish("a", 3, done)).toEqual({
          nextVersion: 3,
          at: T0 + 40,
        });
        expect(await standing(fixture, "a")).toEqual({
          version: 3,
          lifecycle: "active",
          pending: {
            kind: "finished",
            finishedAt: T0 + 40,
            resultKind: "completed",
          },
        });
        const again = await store.create({ id: "a", function: "f" });
        expect(again.nextVersion).toBe(3);
      }),
    );

    test(
      "[E18] an event that changes nothing else still counts, so the next lock has the right version",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        expect(await store.append("a", 1, [delayRequested("Delay_a.o:1_1", T0 + 100)])).toEqual({
          nextVersion: 2,
          at: T0,
        });
        expect(await standing(fixture, "a")).toEqual({
          version: 1,
          lifecycle: "active",
          pending: {
            kind: "pending",
            dueAt: T0,
            leaseUntil: null,
            lastLock: null,
          },
        });
        const { locked } = await store.lockPending({
          ...byAnn,
          functions: ["f"],
          limit: 1,
        });
        expect(locked.map(({ id, nextVersion }) => [id, nextVersion])).toEqual([["a", 3]]);
        expect(await store.append("a", 3, [step("goes on")], { fence: ann })).toEqual({
          nextVersion: 4,
          at: T0,
        });
      }),
    );
  });

  describe("appending several events", () => {
    test(
      "they occupy the versions from the one given, and all count",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        expect(
          await store.append("a", 1, [joinSetCreated("n:x"), step("one"), attemptFailed(T0 + 100)]),
        ).toEqual({ nextVersion: 4, at: T0 });
        expect(await kindsOf(fixture, "a")).toBe(
          "created joinSetCreated stepFinished attemptFailed",
        );
        const { failures } = await stateOfExecution(fixture.database, "a");
        expect(failures).toBe(1);
      }),
    );

    test(
      "none at all, or an end that is not the last, is refused",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        const finished: GivenEvent = { kind: "finished", result: done };
        for (const events of [[], [finished, step("late")]])
          expect(await refusal(fixture, () => store.append("a", 1, events))).toBe("EVENTS_INVALID");
      }),
    );

    test(
      "children are created with the events that ask for them, due at once",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.append(
          "a",
          1,
          [
            joinSetCreated("n:x"),
            childRequested("n:x", "a.n:x_1", "g"),
            childRequested("n:x", "a.n:x_2", "g"),
          ],
          {
            children: [
              { id: "a.n:x_1", function: "g", input: 1 },
              { id: "a.n:x_2", function: "g", input: 2 },
            ],
          },
        );
        const { locked } = await store.lockPending({
          ...byAnn,
          functions: ["g"],
          limit: 9,
        });
        expect(locked.map(({ id, input }) => [id, input])).toEqual([
          ["a.n:x_1", 1],
          ["a.n:x_2", 2],
        ]);
      }),
    );

    test(
      "a child of somebody else is refused, and so is one that exists",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.create({ id: "b", function: "f" });
        await store.create({ id: "a.n:x_1", function: "g" });
        for (const id of ["b.n:x_1", "a.n:x_1"])
          expect(
            await refusal(fixture, () =>
              store.append("a", 1, [step("asks")], {
                children: [{ id, function: "g" }],
              }),
            ),
          ).toBe("EVENTS_INVALID");
      }),
    );

    test(
      "a run of its own may be started beside, once, and found again when it was",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        const children = [{ id: "b", function: "g", input: 1 }];
        await store.append("a", 1, [step("starts b")], { children });
        await store.append("a", 2, [step("again")], { children });
        expect(await kindsOf(fixture, "b")).toBe("created");
        expect(
          await refusal(fixture, () =>
            store.append("a", 3, [step("differs")], {
              children: [{ id: "b", function: "g", input: 2 }],
            }),
          ),
        ).toBe("EXECUTION_EXISTS");
      }),
    );
  });

  describe("appending as the holder of a lock", () => {
    test(
      "only the run that locked it last may; others have lost it, whatever they append",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.lock("a", 1, byAnn);
        await store.append("a", 2, [step("mine")], { fence: ann });
        for (const fence of [annLater, bob])
          for (const event of [step("theirs"), attemptFailed(T0)])
            expect(await refusal(fixture, () => store.append("a", 3, [event], { fence }))).toBe(
              "LOCK_LOST",
            );
        await store.unlock("a", 3, { holder: ann, reason: "done for now" });
        clock.advance(1);
        await store.lock("a", 4, byBob);
        for (const call of [
          () => store.append("a", 5, [step("late")], { fence: ann }),
          () => store.finish("a", 5, done, { fence: ann }),
          () => store.unlock("a", 5, { holder: ann, reason: "late" }),
          () => store.receive("a", "go", 5, { fence: ann }),
        ])
          expect(await refusal(fixture, call)).toBe("LOCK_LOST");
        await store.append("a", 5, [step("bob's")], { fence: bob });
      }),
    );

    test(
      "the key that creating answered with may be given, and another one has lost it",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        const { key } = await store.create({ id: "a", function: "f" });
        await store.append("a", 1, [step("one")], { key });
        await store.append("a", 2, [joinNext("n:x", T0)], { key });
        for (const event of [step("two"), joinNext("n:x", T0)])
          expect(
            await refusal(fixture, () => store.append("a", 3, [event], { key: key + 1 })),
          ).toBe("LOCK_LOST");
      }),
    );
  });
}
