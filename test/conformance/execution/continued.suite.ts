import { describe, expect, test } from "vitest";
import type { GivenEvent } from "../../../src/model/execution/given-event.ts";
import type { Backend } from "../backend.ts";
import {
  childRequested,
  delayRequested,
  joinNext,
  joinNextTooMany,
  joinNextTried,
  joinSetCreated,
  step,
  waiting,
} from "./execution-events.ts";
import {
  T0,
  byAnn,
  onExecutions,
  openDelays,
  refusal,
  responsesOf,
  standing,
  stateOfExecution,
} from "./fixture.ts";
import type { ExecutionFixture } from "./fixture.ts";
import { result } from "./parent.ts";

const continued: GivenEvent = { kind: "continued", input: "new" };

/** Run "a" has had one answer, and asked for a delay and a child, when it starts anew. */
async function startedAnew({ store }: ExecutionFixture): Promise<void> {
  await store.create({ id: "a", function: "f", input: "old" });
  await store.signal("a", "go", "first");
  await store.append(
    "a",
    1,
    [delayRequested("Delay_a.o:1_1", T0 + 50), childRequested("o:2", "a.o:2_1", "g"), continued],
    { children: [{ id: "a.o:2_1", function: "g" }] },
  );
}

export function executionContinuedSuite(backend: Backend): void {
  describe("an execution that was started anew under its id", () => {
    test(
      "is not woken by delays of the run before",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        await startedAnew(fixture);
        expect(await openDelays(fixture)).toEqual([]);
        await store.append("a", 4, [waiting(1, T0)]);
        clock.advance(100);
        expect(await store.expireTimers()).toMatchObject({ delays: 0 });
        expect(await standing(fixture, "a")).toMatchObject({
          pending: { kind: "blocked" },
        });
        // Its own delays, asked for in the same append or later, are its own.
        await store.create({ id: "b", function: "f" });
        await store.append("b", 1, [continued, delayRequested("Delay_b.o1:1_1", T0 + 200)]);
        expect(await openDelays(fixture)).toEqual(["Delay_b.o1:1_1"]);
      }),
    );

    test(
      "waits for what comes after its start, and is given nothing before it but what was not read",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await startedAnew(fixture);
        await store.append("a", 4, [waiting(1, T0)]);
        expect(await standing(fixture, "a")).toMatchObject({
          pending: { kind: "blocked", on: { kind: "responses", seen: 1 } },
        });
        await store.signal("a", "go", "second");
        expect(await store.lock("a", 5, byAnn)).toMatchObject({
          input: "new",
          continuations: 1,
          responsesFrom: 1,
          history: [{ version: 4 }],
          unreadSignals: [{ seq: 1, response: { value: "first" } }],
          responses: [{ seq: 2, response: { value: "second" } }],
        });
        // A signal that nobody took waits for whoever asks.
        expect(await store.receive("a", "go", 6)).toMatchObject({ seq: 1 });
      }),
    );

    test(
      "counts how often, so that names need not repeat",
      onExecutions(backend, async (fixture) => {
        const { store, database } = fixture;
        await startedAnew(fixture);
        await store.append("a", 4, [step("one"), continued]);
        expect(await stateOfExecution(database, "a")).toMatchObject({
          historyFrom: 5,
          responsesFrom: 1,
          continuations: 2,
        });
        expect(await store.lock("a", 6, byAnn)).toMatchObject({
          continuations: 2,
          responses: [],
          hasMoreResponses: false,
        });
      }),
    );

    test(
      "is copied with its boundary, and without what the run before left open",
      onExecutions(backend, async (fixture) => {
        const { store, database } = fixture;
        await startedAnew(fixture);
        await store.append("a", 4, [delayRequested("Delay_a.o1:1_1", T0 + 1)]);
        await store.fork("a", 4, { id: "b" });
        expect((await store.tree("b")).items.map(({ id }) => id)).toEqual(["b"]);
        expect(await openDelays(fixture)).toEqual(["Delay_a.o1:1_1", "Delay_b.o1:1_1"]);
        expect(await stateOfExecution(database, "b")).toMatchObject({
          historyFrom: 3,
          responsesFrom: 1,
          continuations: 1,
          responses: 1,
        });
        // Up to an event of the run before it is that run.
        await store.fork("a", 2, { id: "c" });
        expect((await store.tree("c")).items.map(({ id }) => id)).toEqual(["c", "c.o:2_1"]);
        expect(await responsesOf(fixture, "c")).toEqual([]);
      }),
    );

    test(
      "is tried again from its last start, not from before it",
      onExecutions(backend, async ({ store }) => {
        await store.create({ id: "a", function: "f", input: "old" });
        await store.append("a", 1, [step("before"), continued]);
        await store.finish("a", 3, {
          kind: "failed",
          error: { name: "Error", message: "no" },
        });
        await store.retry("a", { id: "b" });
        expect(await store.lock("b", 4, byAnn)).toMatchObject({
          input: "new",
          history: [],
          continuations: 1,
        });
      }),
    );
  });

  sets(backend);
}

/** Run "a" with an open child in set "x" of its first run, started anew. */
async function withLateChild({ store }: ExecutionFixture): Promise<void> {
  await store.create({ id: "a", function: "f" });
  await store.append("a", 1, [childRequested("n:x", "a.n:x_1", "g"), continued], {
    children: [{ id: "a.n:x_1", function: "g" }],
  });
}

function sets(backend: Backend): void {
  describe("the sets of a run that was started anew under its id", () => {
    test(
      "[R14] may have the names of those before, and are others",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await withLateChild(fixture);
        await store.append(
          "a",
          3,
          [childRequested("n1:x", "a.n1:x_1", "g"), joinNext("n1:x", T0)],
          { children: [{ id: "a.n1:x_1", function: "g" }] },
        );
        await store.finish("a.n:x_1", 1, result);
        expect((await standing(fixture, "a")).pending.kind).toBe("blocked");
        await store.finish("a.n1:x_1", 1, result);
        expect((await standing(fixture, "a")).pending.kind).toBe("pending");
        // Its answers are counted from 1 on, also those that were asked for before they came.
        await store.append("a", 5, [joinNext("n1:x", T0)]);
        expect((await standing(fixture, "a")).pending).toMatchObject({
          kind: "blocked",
          on: { ordinal: 2 },
        });
      }),
    );

    test(
      "[R14] are all that it may ask: a set of another run would never answer it",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await withLateChild(fixture);
        for (const joinSet of ["n:x", "n2:x"]) {
          const events: readonly GivenEvent[] = [
            joinSetCreated(joinSet),
            childRequested(joinSet, `a.${joinSet}_2`, "g"),
            delayRequested(`Delay_a.${joinSet}_1`, T0 + 9),
            joinNext(joinSet, T0),
            joinNextTooMany(joinSet),
            joinNextTried(joinSet, "found"),
            joinNextTried(joinSet, "pending"),
          ];
          for (const event of events)
            for (const all of [[event], [joinSetCreated("n1:x"), event]])
              expect(await refusal(fixture, () => store.append("a", 3, all))).toBe(
                "EVENTS_INVALID",
              );
        }
        // In one append with the new start, each is of its own run.
        await store.append("a", 3, [joinSetCreated("n1:y"), continued, joinSetCreated("n2:y")]);
      }),
    );

    test(
      "[R14] are checked for each of many that are appended at once",
      onExecutions(backend, async ({ store }) => {
        const ids = ["a", "b", "c", "d"];
        for (const id of ids) {
          await store.create({ id, function: "f" });
          await store.append(id, 1, [continued]);
        }
        const told = await Promise.allSettled(
          ids.map((id, n) => store.append(id, 2, [joinSetCreated(n % 2 === 0 ? "n:x" : "n1:x")])),
        );
        expect(told.map(({ status }) => status)).toEqual([
          "rejected",
          "fulfilled",
          "rejected",
          "fulfilled",
        ]);
      }),
    );

    test(
      "[R14] alone answer its waits: what the run before asked for is numbered and wakes nobody",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await withLateChild(fixture);
        await store.append("a", 3, [waiting(0, T0)]);
        await store.finish("a.n:x_1", 1, result);
        expect(await standing(fixture, "a")).toMatchObject({
          pending: { kind: "blocked", on: { kind: "responses" } },
        });
        expect(await responsesOf(fixture, "a")).toHaveLength(1);
        // Nor does it answer a wait that comes after it.
        await store.append("a", 4, [waiting(0, T0)]);
        expect((await standing(fixture, "a")).pending.kind).toBe("blocked");
        fixture.clock.advance(8);
        await store.signal("a", "go", 1);
        expect((await standing(fixture, "a")).pending).toMatchObject({
          kind: "pending",
          dueAt: T0 + 8,
        });
        // Behind it, another wait finds the signal.
        await store.append("a", 5, [waiting(0, T0)]);
        expect((await standing(fixture, "a")).pending).toMatchObject({
          kind: "pending",
          dueAt: T0 + 8,
        });
      }),
    );

    test(
      "[R14] are not woken from a sleep either by what the run before asked for",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await withLateChild(fixture);
        await store.append("a", 3, [waiting(0, T0, T0 + 500)]);
        await store.finish("a.n:x_1", 1, result);
        expect((await standing(fixture, "a")).pending).toMatchObject({
          kind: "pending",
          dueAt: T0 + 500,
          wakeAt: T0 + 500,
        });
      }),
    );

    test(
      "[R14] are not woken by many late children that end at once",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        const children = [1, 2, 3, 4].map((n) => ({
          id: `a.n:x_${n}`,
          function: "g",
        }));
        await store.create({ id: "a", function: "f" });
        await store.append(
          "a",
          1,
          [...children.map(({ id }) => childRequested("n:x", id, "g")), continued, waiting(0, T0)],
          { children },
        );
        await Promise.all(children.map(({ id }) => store.finish(id, 1, result)));
        expect((await standing(fixture, "a")).pending.kind).toBe("blocked");
        expect(await responsesOf(fixture, "a")).toHaveLength(4);
      }),
    );
  });
}
