import { describe, expect, test } from "vitest";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { childRequested, joinNext, step } from "./execution-events.ts";
import { T0, byAnn, onExecutions, refusal, responsesOf } from "./fixture.ts";
import type { ExecutionFixture } from "./fixture.ts";

const no = { kind: "failed", error: { name: "Error", message: "no" } } as const;
const child = { id: "a.n:x_1", function: "g", tags: ["small"], deadline: 10 };

/** Run "a" with a tag, and a child with a tag and a deadline of its own. */
async function withChild({ store }: ExecutionFixture): Promise<void> {
  await store.create({ id: "a", function: "f", tags: ["eu", "vip"] });
  await store.append("a", 1, [childRequested("n:x", "a.n:x_1", "g")], {
    children: [child],
  });
}

export function executionForkPointsSuite(backend: Backend): void {
  describe("a copy of an execution", () => {
    test(
      "has its tags, and children asked for anew have theirs and their time",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        await withChild(fixture);
        clock.advance(1_000);
        await store.fork("a", 1, { id: "b" });
        expect(await store.get("b")).toMatchObject({ tags: ["eu", "vip"] });
        expect(await store.get("b.n:x_1")).toMatchObject({
          tags: ["small"],
          deadlineAt: T0 + 1_010,
        });
        expect(await store.expireTimers()).toMatchObject({ deadlines: 1 });
      }),
    );

    test(
      "does not keep an answer that came after its last question",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await withChild(fixture);
        await store.append("a", 2, [joinNext("n:x", T0)]);
        await store.finish("a.n:x_1", 1, { kind: "completed", value: 1 });
        await store.fork("a", 2, { id: "b" });
        expect(await responsesOf(fixture, "b")).toEqual([]);
        expect(await store.get("b.n:x_1")).toMatchObject({ function: "g" });
        // What was appended after the answer was given it.
        await store.lock("a", 3, byAnn);
        await store.append("a", 4, [step("next")]);
        await store.fork("a", 4, { id: "c" });
        expect(await responsesOf(fixture, "c")).toHaveLength(1);
        // And so was a question that found it there.
        await store.create({ id: "d", function: "f" });
        await store.append("d", 1, [childRequested("n:x", "d.n:x_1", "g")], {
          children: [{ ...child, id: "d.n:x_1" }],
        });
        await store.finish("d.n:x_1", 1, { kind: "completed", value: 1 });
        await store.append("d", 2, [joinNext("n:x", T0)]);
        await store.fork("d", 2, { id: "e" });
        expect(await responsesOf(fixture, "e")).toHaveLength(1);
      }),
    );

    test(
      "is found again under its id, also when its source has gone",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.finish("a", 1, no);
        const retried = await store.retry("a", { id: "b" });
        const forked = await store.fork("a", 0, { id: "c" });
        expect(await refusal(fixture, () => store.fork("a", 0, { id: "b" }))).toBe(
          "EXECUTION_EXISTS",
        );
        expect(await refusal(fixture, () => store.retry("a", { id: "c" }))).toBe(
          "EXECUTION_EXISTS",
        );
        clock.advance(10);
        expect(await store.removeFinished({ olderThan: 1 })).toMatchObject({
          trees: 1,
        });
        expect(await store.retry("a", { id: "b" })).toEqual({
          ...retried,
          existed: true,
        });
        expect(await store.fork("a", 0, { id: "c" })).toEqual({
          ...forked,
          existed: true,
        });
      }),
    );

    test(
      "is refused when it would ask for too much at once",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        const requests = Array.from({ length: 1_001 }, (_, n) =>
          childRequested("n:x", `a.n:x_${n + 1}`, "g"),
        );
        await store.append("a", 1, requests.slice(0, 1_000));
        await store.append("a", 1_001, requests.slice(1_000));
        expect(await refusal(fixture, () => store.fork("a", 1_001, { id: "b" }))).toBe(
          "FORK_TOO_LARGE",
        );
        const { details } = await rejection(store.fork("a", 1_001));
        expect(details).toMatchObject({ what: "open requests", max: 1_000 });
        await store.fork("a", 1_000, { id: "b" });
      }),
    );
  });

  describe("a run tried again after it was cancelled", () => {
    test.each(["cancelled", "failed"] as const)(
      "goes back to before it was told so, when its cleanup %s",
      (kind) =>
        onExecutions(backend, async ({ store }) => {
          await store.create({ id: "a", function: "f" });
          await store.append("a", 1, [
            step("work"),
            { kind: "cancellationDelivered" },
            step("undo"),
          ]);
          await store.finish("a", 4, kind === "failed" ? no : { kind });
          await store.retry("a", { id: "b" });
          expect(await store.created("b")).toMatchObject({
            forkedFrom: { version: 1 },
          });
        })(),
    );

    test(
      "stays before a transaction that failed, and keeps one that did not",
      onExecutions(backend, async ({ store }) => {
        const transaction = { kind: "transactionFinished", name: "t" } as const;
        await store.create({ id: "a", function: "f" });
        await store.append("a", 1, [
          { ...transaction, outcome: "completed", value: 1 },
          { ...transaction, outcome: "failed", value: no.error },
        ]);
        await store.finish("a", 3, no);
        await store.retry("a", { id: "b" });
        expect(await store.created("b")).toMatchObject({
          forkedFrom: { version: 1 },
        });
      }),
    );
  });

  describe("a run tried again after it was interrupted", () => {
    const began = (call: number, name = "charge") =>
      ({ kind: "stepBegan", name, attempt: 1, call }) as const;

    test(
      "[RN3] holds the steps that it may repeat, and its open children those of theirs",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await withChild(fixture);
        await store.append("a", 2, [began(2), began(3, "failed"), step("kept", 1, 4), began(5)]);
        const failed = { kind: "stepFinished", name: "failed", outcome: "failed" } as const;
        await store.append("a", 6, [{ ...failed, value: no.error, call: 3 }]);
        await store.append("a.n:x_1", 1, [began(1), step("charge", 1, 1), began(2, "ship")]);
        await store.finish("a", 7, no);
        await store.retry("a", { id: "b" });
        expect(await store.created("b")).toMatchObject({
          forkedFrom: { version: 4 },
          begun: [
            { call: 2, name: "charge" },
            { call: 5, name: "charge" },
          ],
        });
        expect(await store.created("b.n:x_1")).toMatchObject({
          begun: [
            { call: 1, name: "charge" },
            { call: 2, name: "ship" },
          ],
        });
        await store.fork("b", 4, { id: "c" });
        expect(await store.created("c")).not.toHaveProperty("begun");
        expect(await store.created("c.n:x_1")).not.toHaveProperty("begun");
        await store.finish("b", 6, no);
        await store.retry("b", { id: "d" });
        expect(await store.created("d")).toMatchObject({
          begun: [
            { call: 2, name: "charge" },
            { call: 5, name: "charge" },
          ],
        });
      }),
    );
  });

  describe("a run with very many announced steps", () => {
    test(
      "[RN3] is retried while at most 10 000 of them may be repeated",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        for (let call = 1; call < 10_000; call += 1_000)
          await store.append(
            "a",
            call,
            Array.from({ length: 1_000 }, (_, index) => ({
              kind: "stepBegan" as const,
              name: "charge",
              attempt: 1,
              call: call + index,
            })),
          );
        await store.finish("a", 10_001, no);
        await store.retry("a", { id: "c" });
        expect((await store.created("c")).begun).toHaveLength(10_000);
        await store.append("c", 2, [
          { kind: "stepBegan", name: "charge", attempt: 1, call: 10_001 },
        ]);
        await store.finish("c", 3, no);
        expect(await refusal(fixture, () => store.retry("c", { id: "d" }))).toBe("FORK_TOO_LARGE");
        const { details } = await rejection(store.retry("c"));
        expect(details).toMatchObject({ what: "announced steps", count: 10_001, max: 10_000 });
      }),
    );
  });

  describe("a run tried again after it had seen a child fail", () => {
    /** The child has failed, and the run recorded something knowing it. */
    async function seenFailing(fixture: ExecutionFixture): Promise<void> {
      const { store } = fixture;
      await withChild(fixture);
      await store.append("a", 2, [step("before", 1, 2)]);
      await store.finish("a.n:x_1", 1, no);
      await store.append("a", 3, [step("tell somebody", 1, 3, 1)]);
    }

    test(
      "goes back to before it had, so that the child runs again",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await seenFailing(fixture);
        await store.finish("a", 4, no);
        await store.retry("a", { id: "b" });
        expect(await store.created("b")).toMatchObject({
          forkedFrom: { version: 2, isRetry: true },
        });
        expect(await responsesOf(fixture, "b")).toEqual([]);
        expect(await store.get("b.n:x_1")).toMatchObject({
          state: { pending: { kind: "pending" } },
        });
      }),
    );

    test(
      "also when it had asked for the answer",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await withChild(fixture);
        await store.finish("a.n:x_1", 1, no);
        await store.append("a", 2, [step("before"), joinNext("n:x", T0), step("tell somebody")]);
        await store.finish("a", 5, no);
        await store.retry("a", { id: "b" });
        expect(await store.created("b")).toMatchObject({
          forkedFrom: { version: 2 },
        });
        expect(await responsesOf(fixture, "b")).toEqual([]);
      }),
    );

    test(
      "keeps all when something else failed later: that is tried again",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await seenFailing(fixture);
        await store.append("a", 4, [
          {
            kind: "stepFinished",
            name: "last",
            outcome: "failed",
            value: { name: "Error", message: "no" },
            call: 4,
            seen: 1,
          },
        ]);
        await store.finish("a", 5, no);
        await store.retry("a", { id: "b" });
        expect(await store.created("b")).toMatchObject({
          forkedFrom: { version: 3 },
        });
        expect(await responsesOf(fixture, "b")).toHaveLength(1);
      }),
    );

    test.each(["cancelled", "timedOut"] as const)(
      "keeps all when it ended as %s: the failure was not its end",
      (kind) =>
        onExecutions(backend, async (fixture) => {
          await seenFailing(fixture);
          await fixture.store.finish("a", 4, { kind });
          await fixture.store.retry("a", { id: "b" });
          expect(await fixture.store.created("b")).toMatchObject({
            forkedFrom: { version: 3 },
          });
        })(),
    );
  });
}
