import { describe, expect, test } from "vitest";
import type { GivenEvent } from "../../../src/model/execution/given-event.ts";
import type { Backend } from "../backend.ts";
import {
  childRequested,
  delayRequested,
  step,
  waiting,
} from "./execution-events.ts";
import {
  T0,
  byAnn,
  onExecutions,
  openDelays,
  responsesOf,
  standing,
  stateOfExecution,
} from "./fixture.ts";
import type { Setting } from "./fixture.ts";

const continued: GivenEvent = { kind: "continued", input: "new" };

/** Run "a" has had one answer, and asked for a delay and a child, when it starts anew. */
async function startedAnew({ store }: Setting): Promise<void> {
  await store.create({ id: "a", function: "f", input: "old" });
  await store.signal("a", "go", "first");
  await store.append(
    "a",
    1,
    [
      delayRequested("Delay_a.o:1_1", T0 + 50),
      childRequested("o:2", "a.o:2_1", "g"),
      continued,
    ],
    { children: [{ id: "a.o:2_1", function: "g" }] },
  );
}

export function executionContinuedSuite(backend: Backend): void {
  describe("an execution that was started anew under its id", () => {
    test(
      "is not woken by delays of the run before",
      onExecutions(backend, async (setting) => {
        const { store, clock } = setting;
        await startedAnew(setting);
        expect(await openDelays(setting)).toEqual([]);
        await store.append("a", 4, [waiting(0, T0)]);
        clock.advance(100);
        expect(await store.expireTimers()).toMatchObject({ delays: 0 });
        expect(await standing(setting, "a")).toMatchObject({
          pending: { kind: "blocked" },
        });
        // Its own delays, asked for in the same append or later, are its own.
        await store.create({ id: "b", function: "f" });
        await store.append("b", 1, [
          continued,
          delayRequested("Delay_b.o:1_1", T0 + 200),
        ]);
        expect(await openDelays(setting)).toEqual(["Delay_b.o:1_1"]);
      }),
    );

    test(
      "waits for what comes after its start, and is given nothing before it",
      onExecutions(backend, async (setting) => {
        const { store } = setting;
        await startedAnew(setting);
        await store.append("a", 4, [waiting(0, T0)]);
        expect(await standing(setting, "a")).toMatchObject({
          pending: { kind: "blocked", on: { kind: "responses", seen: 0 } },
        });
        await store.signal("a", "go", "second");
        expect(await store.lock("a", 5, byAnn)).toMatchObject({
          input: "new",
          continuations: 1,
          responsesFrom: 1,
          history: [{ version: 4 }],
          responses: [{ seq: 2, response: { value: "second" } }],
        });
        // A signal that nobody took waits for whoever asks.
        expect(await store.receive("a", "go", 6)).toMatchObject({ seq: 1 });
      }),
    );

    test(
      "counts how often, so that names need not repeat",
      onExecutions(backend, async (setting) => {
        const { store, database } = setting;
        await startedAnew(setting);
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
      onExecutions(backend, async (setting) => {
        const { store, database } = setting;
        await startedAnew(setting);
        await store.append("a", 4, [
          delayRequested("Delay_a.o:c1-1_1", T0 + 1),
        ]);
        await store.fork("a", 4, { id: "b" });
        expect((await store.tree("b")).items.map(({ id }) => id)).toEqual([
          "b",
        ]);
        expect(await openDelays(setting)).toEqual([
          "Delay_a.o:c1-1_1",
          "Delay_b.o:c1-1_1",
        ]);
        expect(await stateOfExecution(database, "b")).toMatchObject({
          historyFrom: 3,
          responsesFrom: 1,
          continuations: 1,
          responses: 1,
        });
        // Up to an event of the run before it is that run.
        await store.fork("a", 2, { id: "c" });
        expect((await store.tree("c")).items.map(({ id }) => id)).toEqual([
          "c",
          "c.o:2_1",
        ]);
        expect(await responsesOf(setting, "c")).toEqual([]);
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
}
