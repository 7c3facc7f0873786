import { describe, expect, test } from "vitest";
import { manualClock } from "../../../src/model/time/clock.ts";
import type { ManualClock } from "../../../src/model/time/clock.ts";
import type { ExecutionResult } from "../../../src/model/execution/result.ts";
import { row } from "../../../src/sql/operation.ts";
import { sql } from "../../../src/sql/statement.ts";
import type { Statement } from "../../../src/sql/statement.ts";
import type { Database } from "../../../src/sql/database.ts";
import { executions } from "../../../src/stores/execution/executions.ts";
import type { Executions } from "../../../src/stores/execution/executions.ts";
import type { RetentionReport } from "../../../src/stores/execution/removal/retention.ts";
import { rejection, withPlace } from "../backend.ts";
import type { Backend } from "../backend.ts";

/** The tables in which something of an execution is kept. */
const tables: readonly Statement[] = [
  sql`holdfast_execution`,
  sql`holdfast_execution_event`,
  sql`holdfast_execution_response`,
  sql`holdfast_execution_tag`,
  sql`holdfast_execution_log`,
  sql`holdfast_execution_backtrace`,
  sql`holdfast_execution_stack`,
  sql`holdfast_execution_delay`,
];

interface Fixture {
  readonly database: Database;
  readonly clock: ManualClock;
  readonly log: Executions;
}

function rowCounts({ database }: Fixture): Promise<readonly number[]> {
  return database.read("count", function* () {
    const counts: number[] = [];
    for (const table of tables) {
      const found = yield* row<{ readonly n: number }>(sql`SELECT count(*) AS n FROM ${table}`);
      counts.push(found?.n ?? 0);
    }
    return counts;
  });
}

async function ids({ log }: Fixture): Promise<readonly string[]> {
  const { items } = await log.list({ limit: 100 });
  return items.map(({ id }) => id as string).toSorted();
}

async function finished(
  { log }: Fixture,
  id: string,
  options: { readonly function?: string } = {},
): Promise<void> {
  await log.create({ id, function: options.function ?? "orders/fulfil" });
  await log.finish(id, 1, { kind: "completed", value: id });
}

/** A run with a child, a grandchild and something in every table, all finished. */
async function finishedTree({ log }: Fixture, id: string): Promise<void> {
  await log.create({ id, function: "orders/fulfil", tags: ["big", "blue"] });
  await log.create({ id: `${id}.n:a_1`, function: "orders/pack" });
  await log.create({ id: `${id}.n:a_1.n:b_1`, function: "orders/tape" });
  await log.log(id, [
    { level: "info", message: "one" },
    { level: "warn", message: "two" },
  ]);
  await log.addBacktraces(id, [{ from: 0, to: 1, stack: `only in ${id}` }]);
  await log.addBacktraces(`${id}.n:a_1`, [{ from: 0, to: 1, stack: "shared" }]);
  await log.finish(`${id}.n:a_1.n:b_1`, 1, { kind: "completed", value: 1 });
  await log.finish(`${id}.n:a_1`, 1, { kind: "completed", value: 2 });
  await log.append(
    id,
    1,
    Array.from({ length: 30 }, (_, call) => ({
      kind: "patched" as const,
      patch: `p${call}`,
      call,
      seen: 0,
    })),
  );
  await log.finish(id, 31, { kind: "completed", value: 3 });
}

export function executionRetentionSuite(backend: Backend): void {
  const onFixture = (body: (fixture: Fixture) => Promise<void>) => () =>
    withPlace(backend, async (place) => {
      const clock = manualClock(1_000);
      const database = await place.open({ clock });
      await body({ database, clock, log: executions(database) });
    });

  describe("retention", () => {
    test(
      "removes what finished before an age, and leaves what runs or is younger",
      onFixture(async (fixture) => {
        const { log, clock } = fixture;
        await finished(fixture, "old");
        await log.create({ id: "running", function: "orders/fulfil" });
        clock.set(5_000);
        await finished(fixture, "young");
        clock.set(6_000);
        const report = await log.removeFinished({ olderThan: 5_000 });
        expect(report).toEqual({ trees: 0, rows: 0, skipped: 0 });
        clock.set(6_001);
        expect(await log.removeFinished({ olderThan: 5_000 })).toEqual({
          trees: 1,
          rows: 3,
          skipped: 0,
        });
        expect(await ids(fixture)).toEqual(["running", "young"]);
      }),
    );

    test(
      "keeps the newest so many of each function",
      onFixture(async (fixture) => {
        for (const [index, id] of ["a", "b", "c", "d"].entries()) {
          fixture.clock.set(2_000 + index);
          await finished(fixture, id);
          await finished(fixture, `other-${id}`, { function: "orders/other" });
        }
        await fixture.log.removeFinished({
          keepNewest: 2,
          function: "orders/fulfil",
        });
        expect(await ids(fixture)).toEqual(["c", "d", "other-a", "other-b", "other-c", "other-d"]);
        await fixture.log.removeFinished({ keepNewest: 1 });
        expect(await ids(fixture)).toEqual(["d", "other-d"]);
      }),
    );

    test(
      "either of age and number is enough",
      onFixture(async (fixture) => {
        await finished(fixture, "a");
        fixture.clock.set(9_000);
        await finished(fixture, "b");
        fixture.clock.set(9_001);
        await finished(fixture, "c");
        fixture.clock.set(9_002);
        await fixture.log.removeFinished({
          keepNewest: 1,
          olderThan: 1_000_000,
        });
        expect(await ids(fixture)).toEqual(["c"]);
        await fixture.log.removeFinished({ keepNewest: 1, olderThan: 0 });
        expect(await ids(fixture)).toEqual([]);
      }),
    );

    test(
      "removes only what ended so, past any number that did not",
      onFixture(async (fixture) => {
        const { log, clock } = fixture;
        const end = async (id: string, result: ExecutionResult): Promise<void> => {
          await log.create({ id, function: "f" });
          await log.finish(id, 1, result);
        };
        for (let n = 10; n < 130; n += 1)
          await end(`completed-${n}`, { kind: "completed", value: n });
        await end("failed", {
          kind: "failed",
          error: { name: "Error", message: "x" },
        });
        await end("timedOut", { kind: "timedOut" });
        await end("cancelled", { kind: "cancelled" });
        clock.advance(2);
        const policy = { function: "f", olderThan: 1 };
        expect(
          await log.removeFinished({
            ...policy,
            results: ["failed", "timedOut"],
          }),
        ).toMatchObject({ trees: 2 });
        for (const status of ["failed", "timedOut"] as const)
          expect((await log.list({ status })).items).toEqual([]);
        expect(await log.removeFinished({ ...policy, results: ["completed"] })).toMatchObject({
          trees: 120,
        });
        expect(await ids(fixture)).toEqual(["cancelled"]);
        for (const results of ["failed", ["odd"], [1], [["failed"]]])
          expect(
            await rejection(log.removeFinished({ ...policy, results: results as never })),
          ).toMatchObject({ code: "OPTION_INVALID" });
      }),
    );

    test(
      "takes everything of a tree with it, and nothing of another",
      onFixture(async (fixture) => {
        const { log, clock } = fixture;
        clock.set(2_000);
        await finishedTree(fixture, "kept");
        const before = await rowCounts(fixture);
        clock.set(1_500);
        await finishedTree(fixture, "gone");
        clock.set(2_100);
        const report = await log.removeFinished({ olderThan: 500 });
        expect(report).toMatchObject({ trees: 1, skipped: 0 });
        expect(await rowCounts(fixture)).toEqual(before);
        expect(await log.result("kept")).toEqual({
          kind: "completed",
          value: 3,
        });
        expect((await log.backtrace("kept.n:a_1", "first")).stack).toBe("shared");
      }),
    );

    test(
      "works in slices of so many rows, and says how far it is",
      onFixture(async (fixture) => {
        await finishedTree(fixture, "gone");
        const total = (await rowCounts(fixture)).reduce((a, b) => a + b, 0);
        const heard: RetentionReport[] = [];
        fixture.clock.set(9_000);
        const report = await fixture.log.removeFinished(
          { olderThan: 1 },
          { rowsPerSlice: 7, onProgress: (soFar) => heard.push(soFar) },
        );
        expect(report).toEqual({ trees: 1, rows: total, skipped: 0 });
        expect(heard.at(-1)).toEqual(report);
        expect(heard.length).toBeGreaterThan(5);
        let last = 0;
        for (const { rows } of heard) {
          expect(rows - last).toBeLessThanOrEqual(10);
          last = rows;
        }
        expect(await rowCounts(fixture)).toEqual(tables.map(() => 0));
      }),
    );

    test(
      "can be given up between slices, and goes on when called again",
      onFixture(async (fixture) => {
        await finishedTree(fixture, "gone");
        fixture.clock.set(9_000);
        const giveUp = new AbortController();
        const stopped = await rejection(
          fixture.log.removeFinished(
            { olderThan: 1 },
            {
              rowsPerSlice: 7,
              signal: giveUp.signal,
              onProgress: () => giveUp.abort(),
            },
          ),
        );
        expect(stopped.code).toBe("ABORTED");
        expect(await rowCounts(fixture)).not.toEqual(tables.map(() => 0));
        expect(await ids(fixture)).not.toContain("gone");
        expect(await fixture.log.removeFinished({ olderThan: 1 })).toMatchObject({
          trees: 1,
        });
        expect(await rowCounts(fixture)).toEqual(tables.map(() => 0));
      }),
    );

    test(
      "leaves a tree in which something has not finished, and says so",
      onFixture(async (fixture) => {
        await fixture.log.create({ id: "a", function: "orders/fulfil" });
        await fixture.log.create({ id: "a.n:x_1", function: "orders/pack" });
        await fixture.log.finish("a", 1, { kind: "completed", value: 1 });
        fixture.clock.set(9_000);
        expect(await fixture.log.removeFinished({ olderThan: 1 })).toEqual({
          trees: 0,
          rows: 0,
          skipped: 1,
        });
        expect(await ids(fixture)).toEqual(["a", "a.n:x_1"]);
      }),
    );

    test(
      "frees the id, and a fork keeps what it copied",
      onFixture(async (fixture) => {
        const { log, clock } = fixture;
        await finishedTree(fixture, "gone");
        await log.fork("gone", 31 - 1, { id: "copy" });
        clock.set(9_000);
        expect(await log.removeFinished({ olderThan: 1 })).toMatchObject({
          trees: 1,
        });
        expect((await log.events("copy", { limit: 100 })).items).toHaveLength(32);
        const again = await log.create({
          id: "gone",
          function: "orders/other",
          input: "another",
        });
        expect(again).toMatchObject({ existed: false, nextVersion: 1 });
      }),
    );

    test(
      "asks what to remove, and refuses what makes no sense",
      onFixture(async ({ log }) => {
        expect((await rejection(log.removeFinished({}))).code).toBe("OPTION_INVALID");
        expect((await rejection(log.removeFinished({ keepNewest: -1 }))).code).toBe(
          "OPTION_INVALID",
        );
        expect((await rejection(log.removeFinished({ olderThan: "soon" as "1s" }))).code).toBe(
          "DURATION_INVALID",
        );
        expect(
          (await rejection(log.removeFinished({ keepNewest: 1 }, { rowsPerSlice: 0 }))).code,
        ).toBe("OPTION_INVALID");
      }),
    );
  });
}
