import { describe, expect, test } from "vitest";
import { sql } from "../../../src/sql/statement.ts";
import type { Database } from "../../../src/sql/database.ts";
import { manualClock } from "../../../src/model/time/clock.ts";
import { executions } from "../../../src/stores/execution/executions.ts";
import type { CountProgress, ExecutionCount } from "../../../src/stores/execution/read/counts.ts";
import type { PageOptions } from "../../../src/stores/list.ts";
import { rejection, withDatabase } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { create } from "./records.ts";
import { standingExecutions } from "./standing-executions.ts";
import { pastChecks } from "../past-checks.ts";

const told = (of: ExecutionCount): string => `${of.function} ${of.status} ${of.count}`;

export function executionOverviewsSuite(backend: Backend): void {
  const onDatabase = (body: (database: Database) => Promise<void>) => () =>
    withDatabase(backend, body);

  describe("the tree of an execution", () => {
    const names = ["order", "order.n:a_1", "order.n:a_1.o:1_1", "order.n:a_10", "order.n:a_2"];
    // Ids that begin the same and lie around the tree.
    const others = ["orde", "order-1", "order/1", "order1", "order-1.n:a_1"];

    test(
      "holds all below it, each after its parent, page by page",
      onDatabase(async (database) => {
        for (const name of [...others, ...names]) await create(database, name);
        for (const limit of [1, 2, 5, 100]) {
          const found: string[] = [];
          let after: string | undefined;
          do {
            const page = await executions(database).tree("order", {
              limit,
              ...(after !== undefined && { after }),
            });
            expect(page.items.length).toBeLessThanOrEqual(limit);
            found.push(...page.items.map((item) => item.id));
            after = page.next;
          } while (after !== undefined);
          expect(found).toEqual(names);
        }
        const below = await executions(database).tree("order.n:a_1");
        expect(below.items.map((item) => [item.id, item.parent])).toEqual([
          ["order.n:a_1", "order"],
          ["order.n:a_1.o:1_1", "order.n:a_1"],
        ]);
      }),
    );

    test(
      "of an unknown execution cannot be read, nor from a place outside it",
      onDatabase(async (database) => {
        await create(database, "order-1");
        await create(database, "order-1.n:a_1");
        const { tree } = executions(database);
        const { next: after } = await tree("order-1", { limit: 1 });
        const read = (name: string, options: PageOptions = {}) => rejection(tree(name, options));
        expect(await read("order")).toMatchObject({
          code: "EXECUTION_NOT_FOUND",
        });
        expect(await read("order", { after: String(after) })).toMatchObject({
          code: "CURSOR_INVALID",
          details: { reason: "filter" },
        });
        expect(await read("order-1", { limit: 0 })).toMatchObject({
          code: "OPTION_INVALID",
        });
      }),
    );
  });

  describe("counting executions", () => {
    test(
      "gives their number by function and status, slice by slice",
      onDatabase(async (database) => {
        await standingExecutions(database);
        const seen: CountProgress[] = [];
        const log = executions(database, { clock: manualClock(100) });
        let pauses = 0;
        const pause = database.pause.bind(database);
        database.pause = () => {
          pauses += 1;
          return pause();
        };
        const { counts, unreadable } = await log.count({
          rowsPerSlice: 5,
          onProgress: (progress) => void seen.push(progress),
        });
        expect(counts.map(told)).toEqual([
          "mail/send pending 2",
          "mail/send timedOut 1",
          "orders/fulfil blocked 1",
          "orders/fulfil cancelled 1",
          "orders/fulfil cancelling 1",
          "orders/fulfil completed 1",
          "orders/fulfil failed 1",
          "orders/fulfil parked 1",
          "orders/fulfil paused 1",
          "orders/fulfil pending 1",
          "orders/fulfil scheduled 1",
          "orders/refund running 1",
        ]);
        expect(unreadable).toBe(0);
        expect(seen.map(({ counted }) => counted)).toEqual([5, 10, 13]);
        expect(seen.at(-1)?.share).toBe(1);
        expect(pauses).toBe(2);
      }),
    );

    test(
      "of nothing is nothing, and a row without a status is told",
      onDatabase(async (database) => {
        const count = () => executions(database).count();
        expect(await count()).toEqual({ counts: [], unreadable: 0 });
        await create(database, "a");
        await create(database, "b");
        await database.write("damage", () =>
          pastChecks(database, sql`UPDATE holdfast_execution SET state = 'odd' WHERE id = 'b'`),
        );
        expect(await count()).toEqual({
          counts: [{ function: "orders/fulfil", status: "pending", count: 1 }],
          unreadable: 1,
        });
      }),
    );

    test(
      "stops when its signal aborts",
      onDatabase(async (database) => {
        await standingExecutions(database);
        const abort = new AbortController();
        const error = await rejection(
          executions(database).count({
            rowsPerSlice: 1,
            signal: abort.signal,
            onProgress: ({ counted }) => {
              if (counted === 3) abort.abort();
            },
          }),
        );
        expect(error.code).toBe("ABORTED");
      }),
    );
  });
}
