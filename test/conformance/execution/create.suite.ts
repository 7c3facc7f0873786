import { describe, expect, test } from "vitest";
import { row, rows } from "../../../src/sql/operation.ts";
import { sql } from "../../../src/sql/statement.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import {
  T0,
  byAnn,
  dump,
  kindsOf,
  logOf,
  onExecutions,
  refusal,
  standing,
  stateOfExecution,
} from "./fixture.ts";

export function executionCreateSuite(backend: Backend): void {
  describe("creating an execution", () => {
    test(
      "[E11] answers with version 1 and leaves it pending at its start time, never locked",
      onExecutions(backend, async (fixture) => {
        const { id, nextVersion, existed } = await fixture.store.create({
          id: "order-1",
          function: "orders/fulfil",
          startAt: { in: 250 },
        });
        expect({ id, nextVersion, existed }).toEqual({
          id: "order-1",
          nextVersion: 1,
          existed: false,
        });
        expect(await standing(fixture, "order-1")).toEqual({
          version: 0,
          lifecycle: "active",
          pending: {
            kind: "pending",
            dueAt: T0 + 250,
            leaseUntil: null,
            lastLock: null,
          },
        });
        expect(await kindsOf(fixture, "order-1")).toBe("created");
      }),
    );

    test(
      "with a deadline wakes whoever sleeps until the next one",
      onExecutions(backend, async ({ store, clock }) => {
        const woken = store.waitForTimer();
        // A look that came later than the waiter's found nothing either.
        expect(await store.nextTimerAt()).toBeUndefined();
        await store.create({ id: "a", function: "f", deadline: 10 });
        expect(await store.nextTimerAt()).toBe(T0 + 10);
        clock.advance(10);
        await woken;
      }),
    );

    test(
      "[E12] the same id, function and input is the same run, wherever it has got to",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        const wish = { id: "order-1", function: "f", input: { a: 1, b: [2] } };
        const first = await store.create(wish);
        const before = await dump(fixture);
        // Equal is meant by value: the order of keys is no difference.
        const again = await store.create({ ...wish, input: { b: [2], a: 1 } });
        expect(again).toEqual({ ...first, existed: true });
        expect(await dump(fixture)).toEqual(before);
        await store.lock("order-1", 1, byAnn);
        expect((await store.create(wish)).nextVersion).toBe(2);
        await store.finish("order-1", 2, { kind: "completed", value: 7 });
        // Nothing comes after the end, so it answers with the end's version.
        expect(await store.create(wish)).toEqual({
          ...first,
          existed: true,
          nextVersion: 2,
        });
      }),
    );

    test.each([
      ["function", { function: "g", input: 1 }],
      ["input", { function: "f", input: 2 }],
    ])(
      "[E12] the same id with another %s is a conflict, and the first is unaffected",
      (difference, other) =>
        onExecutions(backend, async (fixture) => {
          const { store } = fixture;
          await store.create({ id: "a", function: "f", input: 1 });
          const before = await dump(fixture);
          const error = await rejection(store.create({ id: "a", ...other }));
          expect(error.code).toBe("EXECUTION_EXISTS");
          expect(error.details).toEqual({ id: "a", difference });
          expect(await dump(fixture)).toEqual(before);
        })(),
    );

    test(
      "of many who create the same id at once one does, and all get the same run",
      onExecutions(backend, async (fixture) => {
        const outcomes = await Promise.all(
          Array.from({ length: 20 }, () =>
            fixture.store.create({ id: "a", function: "f", input: "same" }),
          ),
        );
        expect(outcomes.filter(({ existed }) => !existed)).toHaveLength(1);
        expect(new Set(outcomes.map(({ key }) => key)).size).toBe(1);
        expect(await kindsOf(fixture, "a")).toBe("created");
      }),
    );

    test(
      "without an id each gets a new one of its own",
      onExecutions(backend, async ({ store }) => {
        const first = await store.create({ function: "f" });
        const second = await store.create({ function: "f" });
        expect(first.id).toMatch(/^E_[0-9A-HJKMNP-TV-Z]{26}$/);
        expect(second.id > first.id).toBe(true);
      }),
    );
  });

  describe("what is kept of a creation", () => {
    test(
      "what it is, who asked for it and what it may need stays in event 0",
      onExecutions(backend, async (fixture) => {
        await fixture.store.create({
          id: "a",
          function: "mail/send",
          role: "activity",
          input: "hello",
          startAt: { at: T0 + 5 },
          deadline: "1s",
          concurrencyKey: "tenant-7",
          codeVersion: "v12",
          metadata: { traceparent: "00-ab" },
        });
        const [[version, kind, body] = []] = await logOf(fixture, "a");
        expect([version, kind]).toEqual([0, "created"]);
        expect(body).toMatchObject({
          role: "activity",
          function: "mail/send",
          scheduledAt: T0 + 5,
          deadlineAt: T0 + 1_000,
          concurrencyKey: "tenant-7",
          codeVersion: "v12",
          isPaused: false,
          scheduledBy: null,
          forkedFrom: null,
          metadata: { traceparent: "00-ab" },
        });
        const { codeVersion } = await stateOfExecution(fixture.database, "a");
        expect(codeVersion).toBe("v12");
      }),
    );

    test(
      "tags are kept once each, and a repeated creation adds none",
      onExecutions(backend, async ({ database, store }) => {
        const tagsOf = async (): Promise<string> => {
          const found = await database.read("tags", () =>
            rows<{ tag: string }>(sql`SELECT tag FROM holdfast_execution_tag ORDER BY tag`),
          );
          return found.map(({ tag }) => tag).join(" ");
        };
        const wish = { id: "a", function: "f" };
        await store.create({ ...wish, tags: ["urgent", "eu", "urgent"] });
        expect(await tagsOf()).toBe("eu urgent");
        await store.create({ ...wish, tags: ["late"] });
        expect(await tagsOf()).toBe("eu urgent");
      }),
    );

    test(
      "a child needs its parent",
      onExecutions(backend, async (fixture) => {
        expect(
          await refusal(fixture, () => fixture.store.create({ id: "nobody.n:x_1", function: "f" })),
        ).toBe("EXECUTION_NOT_FOUND");
      }),
    );

    test(
      "a start time in the past is due at once",
      onExecutions(backend, async ({ store }) => {
        await store.create({ id: "a", function: "f", startAt: { at: 5 } });
        const { locked } = await store.lockPending({
          ...byAnn,
          functions: ["f"],
          limit: 1,
        });
        expect(locked.map(({ id }) => id)).toEqual(["a"]);
      }),
    );

    test(
      "a progress value can be shown, replaced and removed, beside the log",
      onExecutions(backend, async (fixture) => {
        const { database, store } = fixture;
        const progressOf = async (): Promise<string | null | undefined> =>
          (
            await database.read("progress", () =>
              row<{ progress: string | null }>(
                sql`SELECT progress FROM holdfast_execution WHERE id = 'a'`,
              ),
            )
          )?.progress;
        await store.create({ id: "a", function: "f" });
        await store.setProgress("a", { done: 3 });
        expect(await progressOf()).toBe('{"done":3}');
        await store.setProgress("a", "half");
        expect(await progressOf()).toBe('"half"');
        await store.setProgress("a", null);
        expect(await progressOf()).toBe(null);
        expect(await kindsOf(fixture, "a")).toBe("created");
        expect(await refusal(fixture, () => store.setProgress("nobody", 1))).toBe(
          "EXECUTION_NOT_FOUND",
        );
      }),
    );
  });
}
