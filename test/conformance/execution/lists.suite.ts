import { describe, expect, test } from "vitest";
import { run } from "../../../src/sql/operation.ts";
import { sql } from "../../../src/sql/statement.ts";
import type { Database } from "../../../src/sql/database.ts";
import type { ExecutionFilter } from "../../../src/stores/execution/read/list-filter.ts";
import { listExecutions } from "../../../src/stores/execution/read/list.ts";
import type { ExecutionPage } from "../../../src/stores/execution/read/list.ts";
import { rejection, withDatabase } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { create, createMany, finish, id, newExecution } from "./records.ts";
import { standingExecutions } from "./standing-executions.ts";

const now = 100;

const ids = (page: ExecutionPage): string[] =>
  page.items.map((item) => item.id);

function list(
  database: Database,
  filter: ExecutionFilter = {},
  limit = 1_000,
  cursor?: string,
): Promise<ExecutionPage> {
  return database.read(listExecutions, { filter, limit, cursor, now });
}

/** All pages in one direction, from the newest or from a cursor. */
async function pages(
  database: Database,
  direction: "older" | "newer",
  filter: ExecutionFilter,
  limit: number,
  cursor?: string,
): Promise<ExecutionPage[]> {
  const all: ExecutionPage[] = [];
  let page = await list(database, filter, limit, cursor);
  all.push(page);
  while (page.hasMore) {
    page = await list(database, filter, limit, page[direction]);
    all.push(page);
  }
  return all;
}

export function executionListsSuite(backend: Backend): void {
  const onDatabase = (body: (database: Database) => Promise<void>) => () =>
    withDatabase(backend, body);

  describe("listing executions", () => {
    test(
      "[E87] they come newest first, equal times by id, without skips or repeats in both directions",
      onDatabase(async (database) => {
        // Three times shared by 30 executions, created in an order of their own.
        const names = Array.from({ length: 30 }, (_, n) => `run-${n + 10}`);
        await createMany(
          database,
          names.map((name, n) =>
            newExecution(name, { at: 1_000 + Math.floor(n / 13) }),
          ),
        );
        const newestFirst = names.toReversed();
        for (const limit of [1, 4, 7, 13, 30, 100]) {
          const down = await pages(database, "older", {}, limit);
          expect(down.flatMap(ids)).toEqual(newestFirst);
          expect(down).toHaveLength(Math.ceil(30 / limit));
          expect(down.at(-1)?.older).toBeUndefined();

          const last = down.at(-1);
          const up = await pages(database, "newer", {}, limit, last?.newer);
          // Each page is newest first, and the pages go up.
          expect(
            [...up.toReversed(), last].flatMap((page) => page && ids(page)),
          ).toEqual(newestFirst);
        }
      }),
    );

    test(
      "[E87] what is created meanwhile is found by going newer, and moves no other page",
      onDatabase(async (database) => {
        for (const [name, at] of [
          ["a", 1],
          ["b", 2],
          ["c", 2],
        ] as const)
          await create(database, name, { at });
        const first = await list(database, {}, 2);
        expect(ids(first)).toEqual(["c", "b"]);
        await create(database, "d", { at: 2 });
        expect(ids(await list(database, {}, 2, first.older))).toEqual(["a"]);
        const newer = await list(database, {}, 2, first.newer);
        expect(ids(newer)).toEqual(["d"]);
        expect(newer.hasMore).toBe(false);
        const later = await list(database, {}, 2, newer.newer);
        expect(ids(later)).toEqual([]);
        await create(database, "e", { at: 3 });
        expect(ids(await list(database, {}, 2, later.newer))).toEqual(["e"]);
        // The way back from a page without rows begins with what was there.
        expect(ids(await list(database, {}, 2, later.older))).toEqual([
          "d",
          "c",
        ]);
      }),
    );

    test(
      "[E87] a list without rows has no cursors",
      onDatabase(async (database) => {
        expect(await list(database)).toEqual({
          items: [],
          damaged: [],
          hasMore: false,
          older: undefined,
          newer: undefined,
        });
      }),
    );

    test(
      "[E87] filters are answered alone and together, page by page",
      onDatabase(async (database) => {
        await standingExecutions(database);
        const cases: readonly (readonly [ExecutionFilter, string])[] = [
          [{}, "k j i h g f e d c.n:x_1.n:y_1 c.n:x_1 c b a"],
          [{ status: "pending" }, "c.n:x_1.n:y_1 c.n:x_1 a"],
          [{ status: "scheduled" }, "b"],
          [{ status: "locked" }, "c"],
          [{ status: "blocked" }, "e"],
          [{ status: "paused" }, "d"],
          [{ status: "cancelling" }, "f"],
          [{ status: "parked" }, "g"],
          [{ status: "finished" }, "k j i h"],
          [{ status: "completed" }, "h"],
          [{ status: "failed" }, "i"],
          [{ status: "cancelled" }, "j"],
          [{ status: "timedOut" }, "k"],
          [{ function: "mail/send" as never }, "k c.n:x_1.n:y_1 c.n:x_1"],
          [{ functionPrefix: "orders/" }, "j i h g f e d c b a"],
          [{ functionPrefix: "orders/r" }, "c"],
          [
            { functionPrefix: "" },
            "k j i h g f e d c.n:x_1.n:y_1 c.n:x_1 c b a",
          ],
          [{ functionPrefix: "mail/sendé" }, ""],
          [{ topLevelOnly: true }, "k j i h g f e d c b a"],
          [{ parent: id("c") }, "c.n:x_1"],
          [{ parent: id("nobody") }, ""],
          [{ createdFrom: 60, createdTo: 80 }, "g f"],
          [{ idPrefix: "c" }, "c.n:x_1.n:y_1 c.n:x_1 c"],
          [{ idPrefix: "c.n:x" }, "c.n:x_1.n:y_1 c.n:x_1"],
          [{ tag: "red" }, "h a"],
          [{ tag: "blue" }, "a"],
          [{ tag: "green" }, ""],
          [{ hideFinished: true }, "g f e d c.n:x_1.n:y_1 c.n:x_1 c b a"],
          [{ hideFinished: true, status: "finished" }, ""],
          [{ topLevelOnly: true, parent: id("c") }, ""],
          [{ topLevelOnly: true, hideFinished: true }, "g f e d c b a"],
          [{ function: "mail/send" as never, topLevelOnly: true }, "k"],
          [{ function: "mail/send" as never, functionPrefix: "orders" }, ""],
          [{ tag: "red", status: "completed" }, "h"],
          [{ tag: "red", idPrefix: "a", functionPrefix: "orders/" }, "a"],
          [{ status: "locked", function: "mail/send" as never }, ""],
          [{ status: "finished", createdFrom: 85 }, "k j i"],
        ];
        for (const [filter, expected] of cases)
          for (const limit of [1, 3, 100]) {
            const down = await pages(database, "older", filter, limit);
            expect([filter, down.flatMap(ids).join(" ")]).toEqual([
              filter,
              expected,
            ]);
            const last = down.at(-1);
            if (last?.newer === undefined) continue;
            const up = await pages(
              database,
              "newer",
              filter,
              limit,
              last.newer,
            );
            expect([...up.toReversed(), last].flatMap(ids).join(" ")).toBe(
              expected,
            );
          }
      }),
    );

    test(
      "[E87] a page looks at 2,000 rows and no more, and tells where to go on",
      onDatabase(async (database) => {
        await createMany(
          database,
          Array.from({ length: 2_100 }, (_, n) =>
            newExecution(`run-${n}`, {
              at: n,
              function: "bulk",
              tags: ["all", ...(n === 50 ? ["one"] : [])],
            }),
          ),
        );
        await finish(database, "run-50", 9_000, { kind: "timedOut" });
        const failed = {
          function: "bulk" as never,
          status: "timedOut",
        } as const;
        const first = await list(database, failed);
        expect(first).toMatchObject({ items: [], hasMore: true });
        expect(ids(await list(database, failed, 10, first.older))).toEqual([
          "run-50",
        ]);
        // Filters that leave too many rows are asked along the way.
        for (const filter of [
          { tag: "all", status: "finished" },
          { idPrefix: "run-", status: "finished" },
          { functionPrefix: "b", status: "finished" },
        ] as const) {
          const all = await pages(database, "older", filter, 10);
          expect(all.map(ids)).toEqual([[], ["run-50"]]);
          const up = await pages(database, "newer", filter, 10, all[1]?.newer);
          expect(up.map(ids)).toEqual([[], []]);
        }
        // An index of its own, or few rows, need no second page.
        for (const filter of [
          { status: "timedOut" },
          { tag: "one" },
          { idPrefix: "run-50", status: "finished" },
        ] as const)
          expect(ids(await list(database, filter))).toEqual(["run-50"]);
      }),
    );

    test(
      "[E87] a cursor is refused when it is not one, or for other filters",
      onDatabase(async (database) => {
        await create(database, "a", { at: 1 });
        await create(database, "b", { at: 2 });
        const { older } = await list(database, { topLevelOnly: true }, 1);
        const refused = async (text: string | undefined, filter = {}) =>
          (await rejection(list(database, filter, 1, text))) as unknown;
        // [2,"older",2,"b",0,"[]"] and ["x"], as base64url.
        for (const [text, reason] of [
          ["", "malformed"],
          ["garbage!", "malformed"],
          ["WyJ4Il0", "format"],
          ["WzIsIm9sZGVyIiwyLCJiIiwwLCJbXSJd", "format"],
          ["WzEsIm9sZGVyIiwiMiIsImIiLDAsIltdIl0", "malformed"],
          [older, "filter"],
        ] as const)
          expect(await refused(text)).toMatchObject({
            code: "CURSOR_INVALID",
            details: { reason },
          });
        expect(
          ids(
            await list(
              database,
              { hideFinished: false, topLevelOnly: true, tag: undefined },
              1,
              older,
            ),
          ),
        ).toEqual(["a"]);
      }),
    );

    test(
      "options outside their range are refused",
      onDatabase(async (database) => {
        for (const [filter, limit] of [
          [{}, 0],
          [{}, 1_001],
          [{ status: "toString" as never }, 1],
          [{ createdFrom: Number.NaN }, 1],
          [{ createdTo: -1 }, 1],
        ] as const)
          expect(await rejection(list(database, filter, limit))).toMatchObject({
            code: "OPTION_INVALID",
          });
      }),
    );

    test(
      "a damaged row is named, and the pages go on past it",
      onDatabase(async (database) => {
        for (const [n, name] of ["a", "b", "c"].entries())
          await create(database, name, { at: n });
        await database.write("damage", () =>
          run(sql`UPDATE holdfast_execution SET due_at = NULL WHERE id = 'b'`),
        );
        const all = await pages(database, "older", {}, 1);
        expect(all.map(ids)).toEqual([["c"], [], ["a"]]);
        expect(all.flatMap(({ damaged }) => damaged)).toEqual([
          { table: "holdfast_execution", key: "b" },
        ]);
      }),
    );
  });
}
