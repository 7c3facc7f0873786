import { describe, expect, test } from "vitest";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { childRequested, delayRequested, joinNext, step, waiting } from "./execution-events.ts";
import {
  T0,
  ann,
  byAnn,
  dump,
  kindsOf,
  logOf,
  onExecutions,
  openDelays,
  refusal,
  responsesOf,
  standing,
  stateOfExecution,
} from "./fixture.ts";
import type { ExecutionFixture } from "./fixture.ts";

const no = { kind: "failed", error: { name: "Error", message: "no" } } as const;

/**
 * Run "a": 1 locked, 2 step, 3–4 two children, 5 a delay, 6 a question to the
 * set, 7 a step that had seen its answer. The first child has answered; the
 * second and the delay are open.
 */
async function source({ store }: ExecutionFixture): Promise<void> {
  await store.create({
    id: "a",
    function: "f",
    input: { order: 42 },
    codeVersion: "v1",
    tags: ["eu"],
  });
  await store.lock("a", 1, byAnn);
  await store.append(
    "a",
    2,
    [
      step("first", "kept", 1),
      childRequested("n:x", "a.n:x_1", "g"),
      childRequested("n:x", "a.n:x_2", "g"),
      delayRequested("Delay_a.o:4_1", T0 + 500),
      joinNext("n:x", T0),
    ],
    {
      fence: ann,
      children: [
        { id: "a.n:x_1", function: "g", input: 1, role: "activity" },
        { id: "a.n:x_2", function: "g", input: 2, role: "activity" },
      ],
    },
  );
  await store.finish("a.n:x_1", 1, { kind: "completed", value: "answer" });
  await store.append("a", 7, [step("second", "later", 5, 1)]);
}

export function executionForkSuite(backend: Backend): void {
  describe("forking an execution", () => {
    test(
      "copies the log up to the event, and goes on from there at once",
      onExecutions(backend, async (fixture) => {
        const { store, clock, database } = fixture;
        await source(fixture);
        clock.advance(60);
        expect(await store.fork("a", 2, { id: "b" })).toMatchObject({
          id: "b",
          nextVersion: 4,
          existed: false,
        });
        expect(await kindsOf(fixture, "b")).toBe("created locked stepFinished forked");
        expect((await logOf(fixture, "b"))[0]?.[2]).toMatchObject({
          forkedFrom: { execution: "a", version: 2, isRetry: false },
          scheduledAt: T0,
        });
        const state = await stateOfExecution(database, "b");
        expect(state).toMatchObject({
          version: 3,
          lifecycle: "active",
          failures: 0,
          responses: 0,
          codeVersion: "v1",
          pending: {
            kind: "pending",
            dueAt: T0 + 60,
            leaseUntil: null,
            lastLock: null,
          },
        });
        expect(await store.lock("b", 4, byAnn)).toMatchObject({
          input: { order: 42 },
          nextVersion: 5,
          history: [{ version: 2, event: { name: "first", value: "kept" } }],
        });
      }),
    );

    test(
      "leaves its source as it is",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await source(fixture);
        const before = [
          await logOf(fixture, "a"),
          await standing(fixture, "a"),
          await responsesOf(fixture, "a"),
        ];
        await store.fork("a", 7, { id: "b" });
        expect([
          await logOf(fixture, "a"),
          await standing(fixture, "a"),
          await responsesOf(fixture, "a"),
        ]).toEqual(before);
        await store.append("a", 8, [step("goes on")], { fence: ann });
      }),
    );

    test(
      "keeps the answers it had seen, and asks anew for what was open, under its own ids",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        await source(fixture);
        clock.advance(60);
        await store.fork("a", 7, { id: "b" });
        expect(await responsesOf(fixture, "b")).toEqual([
          [1, T0, "n:x", "a.n:x_1", "completed", 1],
        ]);
        expect(await openDelays(fixture)).toEqual(["Delay_a.o:4_1", "Delay_b.o:4_1"]);
        const locked = await store.lock("b", 9, byAnn);
        expect(locked).toMatchObject({
          responses: [{ response: { result: { kind: "completed", value: "answer" } } }],
          history: [
            { version: 2 },
            // Answered: the id is the one that the answer carries.
            { version: 3, event: { child: "a.n:x_1" } },
            { version: 4, event: { child: "b.n:x_2" } },
            { version: 5, event: { delay: "Delay_b.o:4_1" } },
            { version: 6 },
            { version: 7, event: { name: "second", seen: 1 } },
          ],
        });
        // What is asked anew runs with the same input, and answers the copy alone.
        const { locked: children } = await store.lockPending({
          ...byAnn,
          functions: ["g"],
          limit: 9,
        });
        expect(children.map((child) => [child.id, child.input])).toEqual([
          ["a.n:x_2", 2],
          ["b.n:x_2", 2],
        ]);
        await store.finish("b.n:x_2", 2, { kind: "completed", value: "b's" });
        expect((await responsesOf(fixture, "b"))[1]).toEqual([
          2,
          T0 + 60,
          "n:x",
          "b.n:x_2",
          "completed",
          2,
        ]);
        expect(await responsesOf(fixture, "a")).toHaveLength(1);
      }),
    );

    test(
      "does not keep answers that came after the event",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await source(fixture);
        // Up to the requests: nobody had been given the answer yet.
        await store.fork("a", 5, { id: "b" });
        expect(await responsesOf(fixture, "b")).toEqual([]);
        const { locked } = await store.lockPending({
          ...byAnn,
          functions: ["g"],
          limit: 9,
        });
        expect(locked.map(({ id }) => id)).toEqual(["a.n:x_2", "b.n:x_1", "b.n:x_2"]);
      }),
    );

    test(
      "may be repeated under the same id, and is a conflict at another event",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await source(fixture);
        const first = await store.fork("a", 3, { id: "b" });
        const before = await dump(fixture);
        expect(await store.fork("a", 3, { id: "b" })).toEqual({
          ...first,
          existed: true,
        });
        expect(await dump(fixture)).toEqual(before);
        expect(await refusal(fixture, () => store.fork("a", 2, { id: "b" }))).toBe(
          "EXECUTION_EXISTS",
        );
        // Without an id each is another copy.
        const third = await store.fork("a", 3);
        expect(third.id).toMatch(/^E_/);
      }),
    );

    test(
      "is refused beyond the end, at the end, of what is external and under a borrowed id",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.append("a", 1, [step("one")]);
        await store.create({ id: "ext", function: "f", role: "external" });
        await store.create({ id: "other", function: "f", input: 1 });
        for (const [call, code] of [
          [() => store.fork("a", 2), "FORK_POINT_INVALID"],
          [() => store.fork("ext", 0), "FORK_POINT_INVALID"],
          [() => store.fork("a", 1, { id: "a" }), "EXECUTION_EXISTS"],
          [() => store.fork("a", 1, { id: "a.n:x_1" }), "ID_MALFORMED"],
          [() => store.fork("a", 1, { id: "other" }), "EXECUTION_EXISTS"],
          [() => store.fork("nobody", 0), "EXECUTION_NOT_FOUND"],
        ] as const)
          expect(await refusal(fixture, call)).toBe(code);
        await store.finish("a", 2, { kind: "completed", value: 1 });
        const error = await rejection(store.fork("a", 2));
        expect(error.details).toEqual({ id: "a", version: 2, last: 1 });
        await store.fork("a", 1);
      }),
    );

    test(
      "of what was continued begins at the last start",
      onExecutions(backend, async ({ store }) => {
        await store.create({ id: "a", function: "f", input: "old" });
        await store.append("a", 1, [
          step("before"),
          { kind: "continued", input: "new" },
          step("after"),
        ]);
        await store.fork("a", 3, { id: "b" });
        expect(await store.lock("b", 5, byAnn)).toMatchObject({
          input: "new",
          history: [{ version: 3, event: { name: "after" } }],
        });
        await store.fork("a", 1, { id: "c" });
        expect(await store.lock("c", 3, byAnn)).toMatchObject({
          input: "old",
          history: [{ version: 1, event: { name: "before" } }],
        });
      }),
    );

    test(
      "has as much time until its deadline as its source had",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        await store.create({ id: "a", function: "f", deadline: 1_000 });
        clock.advance(5_000);
        await store.finish("a", 1, { kind: "timedOut" });
        await store.retry("a", { id: "b" });
        expect((await logOf(fixture, "b"))[0]?.[2]).toMatchObject({
          deadlineAt: T0 + 6_000,
        });
      }),
    );
  });

  retries(backend);
}

function retries(backend: Backend): void {
  describe("trying a failed run again", () => {
    test(
      "keeps all it had achieved, and goes on before what it failed on",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await source(fixture);
        await store.append("a", 8, [waiting(1, T0)]);
        await store.finish("a.n:x_2", 1, no);
        await store.append("a", 9, [
          {
            kind: "stepFinished",
            name: "third",
            outcome: "failed",
            value: { name: "Error", message: "no" },
            call: 6,
            seen: 2,
          },
        ]);
        await store.finish("a", 10, no);
        const { id } = await store.retry("a", { id: "b" });
        expect((await logOf(fixture, id)).at(-1)).toEqual([
          8,
          "forked",
          {
            from: {
              execution: "a",
              version: 7,
              isRetry: true,
              original: { execution: "a", createdAt: T0 },
            },
          },
        ]);
        const { locked } = await store.lockPending({
          ...byAnn,
          functions: ["f", "g"],
          limit: 9,
        });
        // The child that failed runs again; the one that succeeded does not.
        expect(locked.map((one) => one.id)).toEqual(["b", "b.n:x_2"]);
        expect(locked[0]?.responses.map(({ response }) => response)).toEqual([
          expect.objectContaining({ child: "a.n:x_1" }),
        ]);
        expect(await store.retry("a", { id: "b" })).toMatchObject({
          existed: true,
        });
      }),
    );

    test.each([no, { kind: "cancelled" }, { kind: "timedOut" }] as const)(
      "works for one that ended as $kind, from its start when it had achieved nothing",
      (result) =>
        onExecutions(backend, async (fixture) => {
          const { store } = fixture;
          await store.create({ id: "a", function: "f", input: 7 });
          await store.lock("a", 1, byAnn);
          await store.finish("a", 2, result);
          await store.retry("a", { id: "b" });
          expect(await kindsOf(fixture, "b")).toBe("created forked");
          expect(await store.lock("b", 2, byAnn)).toMatchObject({ input: 7 });
        })(),
    );

    test(
      "is refused for one that has not failed",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        expect(await refusal(fixture, () => store.retry("a"))).toBe("NOT_FAILED");
        await store.finish("a", 1, { kind: "completed", value: 1 });
        expect(await refusal(fixture, () => store.retry("a"))).toBe("NOT_FAILED");
      }),
    );
  });
}
