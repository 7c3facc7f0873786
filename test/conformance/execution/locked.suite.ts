import { describe, expect, test } from "vitest";
import { run } from "../../../src/sql/operation.ts";
import { sql } from "../../../src/sql/statement.ts";
import type { Backend } from "../backend.ts";
import { attemptFailed, joinSetCreated, step } from "./execution-events.ts";
import { T0, ann, byAnn, byBob, onExecutions } from "./fixture.ts";

/** What a worker is given when it locks. */
export function executionLockedSuite(backend: Backend): void {
  describe("what comes with a lock", () => {
    test(
      "[E31] history events alone with their versions, responses in order, parent, metadata and failures",
      onExecutions(backend, async ({ store, clock }) => {
        await store.create({ id: "p", function: "parent" });
        await store.create({
          id: "p.n:x_1",
          function: "f",
          metadata: { traceparent: "00-ab" },
        });
        await store.lock("p.n:x_1", 1, byAnn);
        await store.append("p.n:x_1", 2, [joinSetCreated("n:y")]);
        await store.append("p.n:x_1", 3, [attemptFailed(T0)]);
        await store.signal("p.n:x_1", "go", "first", { key: "k1" });
        clock.advance(5);
        await store.signal("p.n:x_1", "stop", "second", { key: "k2" });
        await store.lock("p.n:x_1", 4, byAnn);
        await store.append("p.n:x_1", 5, [step("charge", { paid: 3 }, 7)]);
        await store.unlock("p.n:x_1", 6, { holder: ann, reason: "busy" });
        const { locked } = await store.lockPending({
          ...byBob,
          functions: ["f"],
          limit: 1,
        });
        expect(locked).toHaveLength(1);
        const [execution] = locked;
        // The parent follows from the id.
        expect(execution?.id).toBe("p.n:x_1");
        expect(execution?.created.metadata).toEqual({ traceparent: "00-ab" });
        expect([execution?.failures, execution?.nextVersion]).toEqual([1, 8]);
        expect(execution?.history).toEqual([
          {
            version: 2,
            at: T0,
            event: { kind: "joinSetCreated", joinSet: "n:y", call: 0, seen: 0 },
          },
          {
            version: 5,
            at: T0 + 5,
            event: {
              kind: "stepFinished",
              name: "charge",
              inputHash: null,
              outcome: "completed",
              value: { paid: 3 },
              call: 7,
              seen: 0,
            },
          },
        ]);
        expect(execution?.responses).toEqual([
          {
            seq: 1,
            at: T0,
            response: {
              kind: "signal",
              signal: "go",
              signalKey: "k1",
              value: "first",
            },
          },
          {
            seq: 2,
            at: T0 + 5,
            response: {
              kind: "signal",
              signal: "stop",
              signalKey: "k2",
              value: "second",
            },
          },
        ]);
      }),
    );

    test(
      "[E31] a long history comes in pages: the first 200 events, and that there are more",
      onExecutions(backend, async ({ store }) => {
        await store.create({ id: "a", function: "f" });
        const steps = (from: number, count: number) =>
          Array.from({ length: count }, (_, n) => step(`s${from + n}`));
        await store.append("a", 1, steps(1, 200));
        const whole = await store.lock("a", 201, byAnn);
        expect(whole.history.map((event) => event.version)).toEqual(
          Array.from({ length: 200 }, (_, n) => n + 1),
        );
        expect(whole.hasMoreHistory).toBe(false);
        await store.append("a", 202, steps(201, 1));
        await store.unlock("a", 203, { holder: ann, reason: "again" });
        const page = await store.lock("a", 204, byAnn);
        expect(page.history).toHaveLength(200);
        expect(page.history.at(-1)).toMatchObject({
          version: 200,
          event: { name: "s200" },
        });
        expect(page.hasMoreHistory).toBe(true);
      }),
    );

    test(
      "[E31] many responses come in pages too",
      onExecutions(backend, async ({ store }) => {
        await store.create({ id: "a", function: "f" });
        await Promise.all(
          Array.from({ length: 201 }, (_, n) => store.signal("a", "go", n, { key: `k${n}` })),
        );
        const locked = await store.lock("a", 1, byAnn);
        expect(locked.responses.map(({ seq }) => seq)).toEqual(
          Array.from({ length: 200 }, (_, n) => n + 1),
        );
        expect(locked.hasMoreResponses).toBe(true);
      }),
    );

    test(
      "of much history only so much comes with many locks; the rest can be read on from where it ends",
      onExecutions(backend, async ({ store }) => {
        const ids = Array.from({ length: 30 }, (_, n) => `e${n + 10}`);
        const large = "x".repeat(4_000);
        await Promise.all(
          ids.map(async (id) => {
            await store.create({ id, function: "f" });
            const steps = Array.from({ length: 20 }, () => step("s", large));
            await store.append(id, 1, steps);
          }),
        );
        const { locked } = await store.lockPending({
          ...byAnn,
          functions: ["f"],
          limit: 30,
        });
        expect(locked.map(({ id }) => id)).toEqual(ids);
        const read = locked.flatMap(({ history }) => history).length;
        // A megabyte, and one row more at most.
        expect(read * 4_000).toBeGreaterThan(900_000);
        expect(read * 4_000).toBeLessThan(1_056_000);
        for (const { id, history, historyUpTo, hasMoreHistory } of locked) {
          expect(hasMoreHistory).toBe(history.length < 20);
          const { items } = await store.events(id, {
            from: historyUpTo + 1,
            kinds: ["stepFinished"],
          });
          expect(history.length + items.length).toBe(20);
        }
      }),
    );

    test(
      "of large values no more come than fit, counted from the first on",
      onExecutions(backend, async ({ store }) => {
        const large = "x".repeat(300_000);
        await store.create({ id: "a", function: "f" });
        const steps = Array.from({ length: 6 }, (_, n) => step(`s${n}`, n === 1 ? "small" : large));
        await store.append("a", 1, steps);
        for (const key of ["k1", "k2"]) await store.signal("a", "go", large, { key });
        const locked = await store.lock("a", 7, byAnn);
        expect(
          locked.history.map(({ version, event }) => [version, "name" in event && event.name]),
        ).toEqual([
          [1, "s0"],
          [2, "s1"],
          [3, "s2"],
          [4, "s3"],
        ]);
        expect(locked).toMatchObject({ hasMoreHistory: true, historyUpTo: 4 });
        // What is left takes no whole response.
        expect(locked.responses).toEqual([]);
        expect(locked.hasMoreResponses).toBe(true);
      }),
    );

    test(
      "a log of nothing but locks is looked through only so far",
      onExecutions(backend, async ({ store, database }) => {
        const { key } = await store.create({ id: "a", function: "f" });
        const locks = 30_000;
        await database.write("seed", function* () {
          yield* run(sql`
            WITH RECURSIVE numbers (i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM numbers WHERE i < ${locks})
            INSERT INTO holdfast_execution_event (execution, version, at, responses, kind, call, seen, body)
            SELECT CAST(${key} AS BIGINT), i, 0, 0, 'locked', 0, 0, '{}' FROM numbers`);
          yield* run(sql`
            UPDATE holdfast_execution SET version = ${locks} WHERE key = ${key}`);
        });
        await store.append("a", locks + 1, [step("s")]);
        const { locked } = await store.lockPending({
          ...byAnn,
          functions: ["f"],
          limit: 1,
        });
        const [{ history, historyUpTo, hasMoreHistory } = neverLocked()] = locked;
        expect({ history, hasMoreHistory }).toEqual({
          history: [],
          hasMoreHistory: true,
        });
        expect(historyUpTo).toBeGreaterThan(9_000);
        expect(historyUpTo).toBeLessThan(12_000);
      }),
    );

    test(
      "what was continued begins anew: the new input, no history before it, no failures",
      onExecutions(backend, async ({ store }) => {
        await store.create({ id: "a", function: "f", input: "old" });
        await store.lock("a", 1, byAnn);
        await store.append("a", 2, [step("before")], { fence: ann });
        await store.append("a", 3, [attemptFailed(T0)], { fence: ann });
        await store.lock("a", 4, byAnn);
        await store.append("a", 5, [{ kind: "continued", input: "new" }], {
          fence: ann,
        });
        const locked = await store.lock("a", 6, byBob);
        expect(locked).toMatchObject({
          input: "new",
          history: [],
          failures: 0,
        });
        await store.append("a", 7, [step("after")]);
        await store.unlock("a", 8, { holder: byBob.holder, reason: "again" });
        const again = await store.lock("a", 9, byAnn);
        expect(again).toMatchObject({
          input: "new",
          created: { input: "old" },
          history: [{ version: 7, event: { name: "after" } }],
        });
      }),
    );
  });
}

function neverLocked(): never {
  throw new Error("Nothing was locked.");
}
