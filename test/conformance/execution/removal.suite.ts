import { describe, expect, test } from "vitest";
import { row, run } from "../../../src/sql/operation.ts";
import { sql } from "../../../src/sql/statement.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { byAnn, onExecutions, refusal } from "./fixture.ts";
import type { ExecutionFixture } from "./fixture.ts";

const ok = { kind: "completed", value: 1 } as const;
const no = { kind: "failed", error: { name: "Error", message: "no" } } as const;

/** A failed run with a child, of which retention has removed one slice of one row. */
async function halfRemoved({ store, clock }: ExecutionFixture): Promise<void> {
  await store.create({ id: "a", function: "f", input: 1 });
  await store.create({ id: "a.n:x_1", function: "g" });
  await store.log("a.n:x_1", [{ level: "info", message: "line" }]);
  await store.finish("a.n:x_1", 1, ok);
  await store.finish("a", 1, no);
  clock.advance(10);
  const giveUp = new AbortController();
  await rejection(
    store.removeFinished(
      { olderThan: 1 },
      {
        rowsPerSlice: 1,
        signal: giveUp.signal,
        onProgress: () => giveUp.abort(),
      },
    ),
  );
}

export function executionRemovalSuite(backend: Backend): void {
  describe("a run that is being removed", () => {
    test(
      "is gone for everybody, and its id is taken until its last row is gone",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await halfRemoved(fixture);
        for (const [call, code] of [
          [() => store.get("a"), "EXECUTION_NOT_FOUND"],
          [() => store.get("a.n:x_1"), "EXECUTION_NOT_FOUND"],
          [() => store.result("a"), "EXECUTION_NOT_FOUND"],
          [() => store.tree("a"), "EXECUTION_NOT_FOUND"],
          [() => store.events("a"), "EXECUTION_NOT_FOUND"],
          [() => store.responses("a"), "EXECUTION_NOT_FOUND"],
          [() => store.logs("a.n:x_1"), "EXECUTION_NOT_FOUND"],
          [() => store.retry("a"), "EXECUTION_NOT_FOUND"],
          [() => store.fork("a", 0), "EXECUTION_NOT_FOUND"],
          [() => store.fork("a.n:x_1", 0), "EXECUTION_NOT_FOUND"],
          [() => store.signal("a", "s", 1), "EXECUTION_NOT_FOUND"],
          [() => store.setProgress("a", 1), "EXECUTION_NOT_FOUND"],
          [() => store.waitForResult("a"), "EXECUTION_NOT_FOUND"],
          [() => store.waitForResponses("a", 0), "EXECUTION_NOT_FOUND"],
          [() => store.log("a.n:x_1", [{ level: "info", message: "late" }]), "EXECUTION_NOT_FOUND"],
          [() => store.create({ id: "a.n:x_2", function: "g" }), "EXECUTION_NOT_FOUND"],
          [() => store.create({ id: "a", function: "f", input: 1 }), "EXECUTION_BEING_REMOVED"],
          [() => store.create({ id: "a", function: "other" }), "EXECUTION_BEING_REMOVED"],
        ] as const)
          expect(await refusal(fixture, call)).toBe(code);
        const { items } = await store.list();
        expect(items.map(({ id }) => id)).not.toContain("a");
        const taken = await rejection(store.create({ id: "a", function: "f" }));
        expect(taken.retryable).toBe(true);
      }),
    );

    test(
      "is removed to its end by the next call, whatever that one is to remove",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await halfRemoved(fixture);
        expect(await store.removeFinished({ function: "other", keepNewest: 1_000 })).toMatchObject({
          trees: 1,
        });
        expect((await store.list()).items).toEqual([]);
        expect(await store.create({ id: "a", function: "f" })).toMatchObject({
          existed: false,
        });
      }),
    );

    test(
      "is left as it is when something below it runs again",
      onExecutions(backend, async ({ store, clock }) => {
        await store.create({ id: "a", function: "f" });
        await store.create({ id: "a.n:x_1", function: "g" });
        await store.create({ id: "a.n:x_1.n:y_1", function: "h" });
        await store.finish("a", 1, ok);
        await store.finish("a.n:x_1", 1, ok);
        clock.advance(10);
        expect(await store.removeFinished({ olderThan: 1 })).toMatchObject({
          trees: 0,
          rows: 0,
          skipped: 1,
        });
        await store.finish("a.n:x_1.n:y_1", 1, ok);
        expect(await store.removeFinished({ olderThan: 1 })).toMatchObject({
          trees: 1,
        });
      }),
    );

    test(
      "goes in slices also where it has many backtraces or delays",
      onExecutions(backend, async ({ store, database, clock }) => {
        const { key } = await store.create({ id: "a", function: "f" });
        for (const from of [0, 200])
          await store.addBacktraces(
            "a",
            Array.from({ length: 100 }, (_, n) => ({
              from: from + n,
              to: from + n + 1,
              stack: `at ${from + n}`,
            })),
          );
        await store.finish("a", 1, ok);
        // No end leaves delays behind, but a row may be there all the same.
        await database.write("left over", function* () {
          for (let n = 0; n < 60; n += 1)
            yield* run(sql`
              INSERT INTO holdfast_execution_delay (id, execution, inbox, expires_at, is_paused)
              VALUES (${`Delay_a.o:${n}_1`}, ${key}, 'o:1', 1, 0)`);
        });
        clock.advance(10);
        const heard: number[] = [];
        const { rows } = await store.removeFinished(
          { olderThan: 1 },
          { rowsPerSlice: 20, onProgress: (soFar) => heard.push(soFar.rows) },
        );
        expect(rows).toBe(200 + 200 + 60 + 2 + 1);
        heard.reduce((before, after) => {
          expect(after - before).toBeLessThanOrEqual(21);
          return after;
        }, 0);
      }),
    );

    test(
      "is chosen among thousands by their number, in small steps",
      onExecutions(backend, async ({ store, database }) => {
        await database.write("seed", () =>
          run(sql`
            WITH RECURSIVE numbers (i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM numbers WHERE i < 4100)
            INSERT INTO holdfast_execution
              (id, role, function, input_hash, created_at, scheduled_at, version, state, lifecycle, finished_at,
               result_kind, failures, deaths, responses, history_from)
            SELECT 'w' || i, 'workflow', 'k', 'h', 1, 1, 1, 'finished', 'active', i, 'completed', 0, 0, 0, 0
            FROM numbers`),
        );
        expect(await store.removeFinished({ function: "k", keepNewest: 4_100 })).toMatchObject({
          trees: 0,
        });
        expect(await store.removeFinished({ function: "k", keepNewest: 4_097 })).toMatchObject({
          trees: 3,
        });
        const oldest = await database.read("oldest", () =>
          row(sql`SELECT MIN(finished_at) AS at FROM holdfast_execution`),
        );
        expect(oldest).toEqual({ at: 4 });
      }),
    );
  });

  describe("a child", () => {
    test(
      "is not created under a parent that has finished or is being cancelled",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        const child = { id: "a.n:x_1", function: "g", input: 1 };
        await store.create({ id: "a", function: "f" });
        const first = await store.create(child);
        await store.create({ id: "b", function: "f" });
        await store.lock("b", 1, byAnn);
        await store.cancel("b");
        expect(await refusal(fixture, () => store.create({ id: "b.n:x_1", function: "g" }))).toBe(
          "EXECUTION_CANCELLING",
        );
        await store.finish("a", 1, ok);
        expect(await refusal(fixture, () => store.create({ ...child, id: "a.n:x_2" }))).toBe(
          "EXECUTION_FINISHED",
        );
        // The same again is no new child.
        expect(await store.create(child)).toEqual({ ...first, existed: true });
      }),
    );

    test(
      "is not created by the end of its parent, though a run of its own is",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        expect(
          await refusal(fixture, () =>
            store.finish("a", 1, ok, {
              children: [{ id: "a.n:x_1", function: "g" }],
            }),
          ),
        ).toBe("EVENTS_INVALID");
        await store.finish("a", 1, ok, {
          children: [{ id: "next", function: "g" }],
        });
        expect(await store.get("next")).toMatchObject({ function: "g" });
      }),
    );

    test(
      "that has no parent is told so in a way of its own",
      onExecutions(backend, async ({ store, database }) => {
        await store.create({ id: "a", function: "f" });
        await store.create({ id: "a.n:x_1", function: "g" });
        await database.write("lose", () => run(sql`DELETE FROM holdfast_execution WHERE id = 'a'`));
        for (const call of [
          () => store.create({ id: "a.n:x_2", function: "g" }),
          () => store.finish("a.n:x_1", 1, ok),
        ])
          expect(await rejection(call())).toMatchObject({
            code: "EXECUTION_NOT_FOUND",
            details: { id: "a", missing: "parent" },
          });
      }),
    );
  });
}
