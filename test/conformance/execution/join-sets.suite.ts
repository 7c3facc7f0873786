import { describe, expect, test } from "vitest";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import {
  delayRequested,
  joinNext,
  joinNextTooMany,
  joinNextTried,
  joinSetCreated,
  step,
} from "./execution-events.ts";
import { T0, byAnn, onExecutions, refusal, responsesOf, standing } from "./fixture.ts";
import { parentOf, result } from "./parent.ts";

export function executionJoinSetsSuite(backend: Backend): void {
  describe("join sets", () => {
    test(
      "[E39] a parent that made a set without ever being locked stays due, without a last lock",
      onExecutions(backend, async (fixture) => {
        await fixture.store.create({ id: "p", function: "parent" });
        await fixture.store.append("p", 1, [joinSetCreated("n:x")]);
        expect(await standing(fixture, "p")).toEqual({
          version: 1,
          lifecycle: "active",
          pending: {
            kind: "pending",
            dueAt: T0,
            leaseUntil: null,
            lastLock: null,
          },
        });
      }),
    );

    test.each([false, true])(
      "[E40] asking before the response comes blocks on the set until the run expires (closing: %s)",
      (isClosing) =>
        onExecutions(backend, async (fixture) => {
          const version = await parentOf(fixture, ["p.n:x_1"]);
          await fixture.store.append("p", version, [joinNext("n:x", T0 + 700, isClosing)]);
          expect((await standing(fixture, "p")).pending).toEqual({
            kind: "blocked",
            on: { kind: "joinSet", joinSet: "n:x", ordinal: 1, isClosing },
            leaseUntil: T0 + 700,
            lastLock: null,
          });
        })(),
    );

    test(
      "[E41] the end of a child at its version 1 makes the parent due, whose version stays",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        const version = await parentOf(fixture, ["p.n:x_1"]);
        await store.append("p", version, [joinNext("n:x", T0)]);
        clock.advance(30);
        expect(await store.finish("p.n:x_1", 1, result)).toEqual({
          nextVersion: 1,
          at: T0 + 30,
          parent: { id: "p", seq: 1 },
        });
        expect(await standing(fixture, "p")).toEqual({
          version,
          lifecycle: "active",
          pending: {
            kind: "pending",
            dueAt: T0 + 30,
            leaseUntil: null,
            lastLock: null,
          },
        });
      }),
    );

    test(
      "[E42] a response that came first makes the question pending at once",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        const version = await parentOf(fixture, ["p.n:x_1"]);
        clock.advance(30);
        await store.finish("p.n:x_1", 1, result);
        clock.advance(5);
        await store.append("p", version, [joinNext("n:x", T0)]);
        expect((await standing(fixture, "p")).pending).toEqual({
          kind: "pending",
          dueAt: T0 + 30,
          leaseUntil: null,
          lastLock: null,
        });
      }),
    );

    test(
      "[E43] responses are kept in the order of arrival, with time, set, child, its last version and its result",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        const version = await parentOf(fixture, ["p.n:x_1", "p.n:x_2"]);
        await store.finish("p.n:x_2", 1, result);
        clock.advance(7);
        await store.append("p.n:x_1", 1, [step("work")]);
        const error = { name: "Error", message: "no" };
        await store.finish("p.n:x_1", 2, { kind: "failed", error });
        const locked = await store.lock("p", version, byAnn);
        expect(locked).toMatchObject({
          responses: [
            {
              seq: 1,
              at: T0,
              response: {
                kind: "child",
                joinSet: "n:x",
                child: "p.n:x_2",
                finishedVersion: 1,
                resultKind: "completed",
                result: { kind: "completed", value: "of child" },
              },
            },
            {
              seq: 2,
              at: T0 + 7,
              response: {
                kind: "child",
                joinSet: "n:x",
                child: "p.n:x_1",
                finishedVersion: 2,
                resultKind: "failed",
                result: { kind: "failed", error: { message: "no" } },
              },
            },
          ],
        });
        expect(await responsesOf(fixture, "p")).toEqual([
          [1, T0, "n:x", "p.n:x_2", "completed", 1],
          [2, T0 + 7, "n:x", "p.n:x_1", "failed", 2],
        ]);
      }),
    );

    test(
      "[E44] an execution does not answer itself or a stranger, and no batch is empty",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await parentOf(fixture, ["p.n:x_1"]);
        const end = { kind: "finished", result } as const;
        for (const [respondTo, events] of [
          ["p.n:x_1", [end]],
          ["stranger", [end]],
          ["p", []],
          ["p", [{ kind: "attemptTimedOut", dueAt: T0, counts: "attempt" } as const]],
        ] as const)
          expect(
            await refusal(fixture, () => store.append("p.n:x_1", 1, events, { respondTo })),
          ).toBe("EVENTS_INVALID");
      }),
    );
  });

  describe("several join sets", () => {
    test(
      "[E46] a response of another set leaves it blocked, and answers the question to that set at once",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        const version = await parentOf(fixture, ["p.n:x_1", "p.n:y_1"]);
        await store.append("p", version, [joinNext("n:x", T0)]);
        await store.finish("p.n:y_1", 1, result);
        expect((await standing(fixture, "p")).pending).toMatchObject({
          kind: "blocked",
          on: { kind: "joinSet", joinSet: "n:x" },
        });
        await store.append("p", version + 1, [joinNext("n:y", T0)]);
        expect((await standing(fixture, "p")).pending.kind).toBe("pending");
      }),
    );

    test(
      "[E47] the n-th question to a set meets its n-th response; closing ones count, those too many do not",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        let version = await parentOf(fixture, ["p.n:x_1", "p.n:x_2", "p.n:x_3", "p.n:y_1"]);
        const ask = async (joinSet: string, isClosing = false) => {
          await store.append("p", version, [joinNext(joinSet, T0, isClosing)]);
          version += 1;
          const { pending } = await standing(fixture, "p");
          return pending.kind === "pending" ? pending.dueAt : pending.kind;
        };
        clock.set(T0 + 1);
        await store.finish("p.n:y_1", 1, result);
        clock.set(T0 + 2);
        await store.finish("p.n:x_3", 1, result);
        clock.set(T0 + 3);
        await store.finish("p.n:x_1", 1, result);
        // The due time tells which response was met.
        expect(await ask("n:x")).toBe(T0 + 2);
        await store.append("p", version, [joinNextTooMany("n:x")]);
        version += 1;
        expect(await ask("n:x", true)).toBe(T0 + 3);
        expect(await ask("n:y")).toBe(T0 + 1);
        expect(await ask("n:x")).toBe("blocked");
        clock.set(T0 + 9);
        await store.finish("p.n:x_2", 1, result);
        expect((await standing(fixture, "p")).pending).toMatchObject({
          kind: "pending",
          dueAt: T0 + 9,
        });
      }),
    );

    test(
      "[E47] two questions and one response leave it blocked until the second response comes",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        const version = await parentOf(fixture, ["p.n:x_1", "p.n:x_2"]);
        await store.append("p", version, [joinNext("n:x", T0), joinNext("n:x", T0)]);
        const blocked = {
          kind: "blocked",
          on: { kind: "joinSet", joinSet: "n:x", ordinal: 2, isClosing: false },
          leaseUntil: null,
          lastLock: null,
        };
        expect((await standing(fixture, "p")).pending).toEqual(blocked);
        await store.finish("p.n:x_2", 1, result);
        expect((await standing(fixture, "p")).pending).toEqual(blocked);
        expect(await refusal(fixture, () => store.lock("p", version + 2, byAnn))).toBe(
          "LOCK_BLOCKED",
        );
        clock.advance(5);
        await store.finish("p.n:x_1", 1, result);
        expect((await standing(fixture, "p")).pending).toMatchObject({
          kind: "pending",
          dueAt: T0 + 5,
        });
      }),
    );

    test(
      "[E47] two children that end together answer two questions that were asked together",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        const version = await parentOf(fixture, ["p.n:x_1", "p.n:x_2"]);
        await store.append("p", version, [joinNext("n:x", T0), joinNext("n:x", T0)]);
        await Promise.all([store.finish("p.n:x_1", 1, result), store.finish("p.n:x_2", 1, result)]);
        expect((await standing(fixture, "p")).pending.kind).toBe("pending");
      }),
    );

    test(
      "[E47] delays and children of one set are counted together",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        const version = await parentOf(fixture, ["p.n:x_1"]);
        await store.append("p", version, [
          delayRequested("Delay_p.n:x_1", T0 + 60),
          joinNext("n:x", T0),
        ]);
        await store.cancelDelay("Delay_p.n:x_1");
        expect((await standing(fixture, "p")).pending.kind).toBe("pending");
        await store.append("p", version + 2, [joinNext("n:x", T0)]);
        expect((await standing(fixture, "p")).pending.kind).toBe("blocked");
        await store.finish("p.n:x_1", 1, result);
        expect((await standing(fixture, "p")).pending.kind).toBe("pending");
        expect(await responsesOf(fixture, "p")).toEqual([
          [1, T0, "n:x", "Delay_p.n:x_1", "cancelled", null],
          [2, T0, "n:x", "p.n:x_1", "completed", 1],
        ]);
      }),
    );

    test(
      "[R1] a response that was found takes the place of its question, so the next one waits for the next response",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        const version = await parentOf(fixture, ["p.n:x_1", "p.n:x_2"]);
        await store.finish("p.n:x_1", 1, result);
        // Without a place of its own the question after it would meet the same response, and be due at once.
        await store.append("p", version, [joinNextTried("n:x", "found"), joinNext("n:x", T0)]);
        expect((await standing(fixture, "p")).pending).toMatchObject({
          kind: "blocked",
          on: { kind: "joinSet", joinSet: "n:x", ordinal: 2 },
        });
        clock.advance(3);
        await store.finish("p.n:x_2", 1, result);
        expect((await standing(fixture, "p")).pending).toMatchObject({
          kind: "pending",
          dueAt: T0 + 3,
        });
      }),
    );

    test(
      "[R1] nothing can be found that is not there; what found nothing takes no place",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        const version = await parentOf(fixture, ["p.n:x_1", "p.n:y_1"]);
        await store.finish("p.n:x_1", 1, result);
        const found = joinNextTried("n:x", "found");
        for (const events of [
          [found, found],
          [joinNext("n:x", T0), found],
          [joinNextTried("n:y", "found")],
        ]) {
          const call = () => store.append("p", version, events);
          expect(await refusal(fixture, call)).toBe("EVENTS_INVALID");
          expect((await rejection(call())).details).toMatchObject({
            reason: "response",
          });
        }
        await store.append("p", version, [
          joinNextTried("n:x", "pending"),
          joinNextTried("n:x", "allProcessed"),
          found,
        ]);
        expect(await refusal(fixture, () => store.append("p", version + 3, [found]))).toBe(
          "EVENTS_INVALID",
        );
      }),
    );

    test(
      "[R1] a copy made after a response was found has it, and asks on behind it",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        const version = await parentOf(fixture, ["p.n:x_1", "p.n:x_2"]);
        await store.finish("p.n:x_1", 1, result);
        await store.append("p", version, [joinNextTried("n:x", "found")]);
        await store.fork("p", version, { id: "q" });
        await store.append("q", version + 2, [joinNext("n:x", T0)]);
        expect((await standing(fixture, "q")).pending).toMatchObject({
          kind: "blocked",
          on: { ordinal: 2 },
        });
      }),
    );
  });
}
