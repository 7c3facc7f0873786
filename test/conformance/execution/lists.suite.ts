import { describe, expect, test } from "vitest";
import { manualClock } from "../../../src/model/time/clock.ts";
import { sql } from "../../../src/sql/statement.ts";
import type { Database } from "../../../src/sql/database.ts";
import { executions } from "../../../src/stores/execution/executions.ts";
import type { ListExecutionsOptions } from "../../../src/stores/execution/read/list-filter.ts";
import type { ExecutionSummary } from "../../../src/stores/execution/read/summary.ts";
import type { Page } from "../../../src/stores/list.ts";
import { rejection, withDatabase } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { create, createMany, finish, id, newExecution } from "./records.ts";
import { standingExecutions } from "./standing-executions.ts";
import { pastChecks } from "../past-checks.ts";

const clock = manualClock(100);

const ids = (page: Page<ExecutionSummary>): string[] => page.items.map((item) => item.id);

function list(
  database: Database,
  filter: ListExecutionsOptions = {},
  limit = 1_000,
  after?: string,
): Promise<Page<ExecutionSummary>> {
  return executions(database, { clock }).list({
    ...filter,
    limit,
    ...(after !== undefined && { after }),
  });
}

/** All pages, from the newest or from what is newer than a place. */
async function pages(
  database: Database,
  filter: ListExecutionsOptions,
  limit: number,
): Promise<Page<ExecutionSummary>[]> {
  const all: Page<ExecutionSummary>[] = [];
  let after: string | undefined;
  do {
    const page = await list(database, filter, limit, after);
    all.push(page);
    after = page.next;
  } while (after !== undefined);
  return all;
}

/** All pages of what is newer than the oldest of all, with that itself: newest first, though the pages go up. */
async function upwards(
  database: Database,
  filter: ListExecutionsOptions,
  limit: number,
  oldest: ExecutionSummary,
): Promise<readonly string[]> {
  const up = await pages(database, { ...filter, newerThan: oldest }, limit);
  return [...up.toReversed().flatMap(ids), oldest.id];
}

/** The text of a cursor that no list gave out. */
function forged(fields: readonly unknown[]): string {
  return Buffer.from(JSON.stringify(fields)).toString("base64url");
}

function changed(
  cursor: string | undefined,
  change: (fields: readonly unknown[]) => readonly unknown[],
): string {
  const text = Buffer.from(cursor ?? "", "base64url").toString();
  return forged(change(JSON.parse(text) as readonly unknown[]));
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
          names.map((name, n) => newExecution(name, { at: 1_000 + Math.floor(n / 13) })),
        );
        const newestFirst = names.toReversed();
        for (const limit of [1, 4, 7, 13, 30, 100]) {
          const down = await pages(database, {}, limit);
          expect(down.flatMap(ids)).toEqual(newestFirst);
          expect(down).toHaveLength(Math.ceil(30 / limit));
          const oldest = down.at(-1)?.items.at(-1);
          if (oldest === undefined) throw new Error("Nothing was listed");
          expect(await upwards(database, {}, limit, oldest)).toEqual(newestFirst);
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
        expect(ids(await list(database, {}, 2, first.next))).toEqual(["a"]);
        const newerThan = (page: Page<ExecutionSummary>) => ({
          newerThan: page.items[0] as ExecutionSummary,
        });
        const newer = await list(database, newerThan(first), 2);
        expect(ids(newer)).toEqual(["d"]);
        expect(newer.next).toBeUndefined();
        const later = await list(database, newerThan(newer), 2);
        expect(ids(later)).toEqual([]);
        await create(database, "e", { at: 3 });
        expect(ids(await list(database, newerThan(newer), 2))).toEqual(["e"]);
        // What is newer than an execution that is gone is known all the same.
        const gone = { createdAt: 2, id: "cc" };
        expect(ids(await list(database, { newerThan: gone }, 2))).toEqual(["e", "d"]);
      }),
    );

    test(
      "[E87] a list without rows has no cursor",
      onDatabase(async (database) => {
        expect(await list(database)).toEqual({
          items: [],
          damaged: [],
          next: undefined,
        });
      }),
    );

    test(
      "[E87] filters are answered alone and together, page by page",
      onDatabase(async (database) => {
        await standingExecutions(database);
        const cases: readonly (readonly [ListExecutionsOptions, string])[] = [
          [{}, "k j i h g f e d c.n:x_1.n:y_1 c.n:x_1 c b a"],
          [{ status: "pending" }, "c.n:x_1.n:y_1 c.n:x_1 a"],
          [{ status: "scheduled" }, "b"],
          [{ status: "running" }, "c"],
          [{ status: "blocked" }, "e"],
          [{ status: "paused" }, "d"],
          [{ status: "cancelling" }, "f"],
          [{ status: "parked" }, "g"],
          [{ status: "finished" }, "k j i h"],
          [{ status: "completed" }, "h"],
          [{ status: "failed" }, "i"],
          [{ status: "cancelled" }, "j"],
          [{ status: "timedOut" }, "k"],
          [{ function: "mail/send" }, "k c.n:x_1.n:y_1 c.n:x_1"],
          [{ functionPrefix: "orders/" }, "j i h g f e d c b a"],
          [{ functionPrefix: "orders/r" }, "c"],
          [{ functionPrefix: "" }, "k j i h g f e d c.n:x_1.n:y_1 c.n:x_1 c b a"],
          [{ functionPrefix: "mail/sendé" }, ""],
          [{ topLevelOnly: true }, "k j i h g f e d c b a"],
          [{ parent: id("c") }, "c.n:x_1"],
          [{ parent: id("nobody") }, ""],
          [{ createdFrom: 60, createdTo: 80 }, "g f"],
          [{ createdFrom: new Date(60), createdTo: new Date(80) }, "g f"],
          [{ idPrefix: "c" }, "c.n:x_1.n:y_1 c.n:x_1 c"],
          [{ idPrefix: "c.n:x" }, "c.n:x_1.n:y_1 c.n:x_1"],
          [{ tag: "red" }, "h a"],
          [{ tag: "blue" }, "a"],
          [{ tag: "green" }, ""],
          [{ hideFinished: true }, "g f e d c.n:x_1.n:y_1 c.n:x_1 c b a"],
          [{ hideFinished: true, status: "finished" }, ""],
          [{ topLevelOnly: true, parent: id("c") }, ""],
          [{ topLevelOnly: true, hideFinished: true }, "g f e d c b a"],
          [{ function: "mail/send", topLevelOnly: true }, "k"],
          [{ function: "mail/send", functionPrefix: "orders" }, ""],
          [{ tag: "red", status: "completed" }, "h"],
          [{ tag: "red", idPrefix: "a", functionPrefix: "orders/" }, "a"],
          [{ status: "running", function: "mail/send" }, ""],
          [{ status: "finished", createdFrom: 85 }, "k j i"],
        ];
        for (const [filter, expected] of cases)
          for (const limit of [1, 3, 100]) {
            const down = await pages(database, filter, limit);
            expect([filter, down.flatMap(ids).join(" ")]).toEqual([filter, expected]);
            const oldest = down.flatMap(({ items }) => items).at(-1);
            if (oldest === undefined) continue;
            const up = await upwards(database, filter, limit, oldest);
            expect(up.join(" ")).toBe(expected);
          }
      }),
    );

    test(
      "[E87] a page is filled from as many as 10,000 runs, and then tells how many it looked at and where to go on",
      onDatabase(async (database) => {
        await createMany(
          database,
          Array.from({ length: 10_100 }, (_, n) =>
            newExecution(`run-${n}`, {
              at: n,
              function: "bulk",
              tags: [...(n > 8_000 ? ["late"] : []), ...(n === 50 ? ["one"] : [])],
            }),
          ),
        );
        await finish(database, "run-50", 90_000, { kind: "timedOut" });
        await finish(database, "run-4000", 90_000, { kind: "cancelled" });
        await finish(database, "run-9000", 90_000, { kind: "cancelled" });
        const timedOut = { function: "bulk", status: "timedOut" } as const;
        const none = await list(database, timedOut);
        expect(none).toMatchObject({ items: [], next: expect.any(String), looked: 10_000 });
        const second = await list(database, timedOut, 10, none.next);
        expect(ids(second)).toEqual(["run-50"]);
        expect(second.next).toBeUndefined();
        expect(second.looked).toBeUndefined();
        // Behind 6,000 newer ones it is found all the same; a full page says nothing.
        const cancelled = { function: "bulk", status: "cancelled" } as const;
        expect(await list(database, cancelled)).toMatchObject({
          items: [{ id: "run-9000" }, { id: "run-4000" }],
          looked: 10_000,
        });
        const one = await list(database, cancelled, 1);
        expect(ids(one)).toEqual(["run-9000"]);
        expect(one.looked).toBeUndefined();
        const two = await list(database, cancelled, 2);
        expect(ids(two)).toEqual(["run-9000", "run-4000"]);
        expect(two.looked).toBeUndefined();
        expect((await pages(database, cancelled, 1)).flatMap(ids)).toEqual([
          "run-9000",
          "run-4000",
        ]);
        // Filters that leave too many rows are asked along the way.
        const [oldest] = second.items;
        if (oldest === undefined) throw new Error("Nothing was listed");
        for (const [filter, first, last] of [
          [{ tag: "late", status: "finished" }, ["run-9000"], []],
          [{ idPrefix: "run-", status: "finished" }, ["run-9000", "run-4000"], ["run-50"]],
          [{ functionPrefix: "b", status: "finished" }, ["run-9000", "run-4000"], ["run-50"]],
        ] as const) {
          const down = await pages(database, filter, 10);
          expect(down.map(({ looked }) => looked)).toEqual([10_000, undefined]);
          expect(down.map(ids)).toEqual([first, last]);
          const up = await pages(database, { ...filter, newerThan: oldest }, 10);
          expect(up.map(({ looked }) => looked)).toEqual([10_000, undefined]);
          expect(up.map(ids)).toEqual([first, []]);
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
        const { next } = await list(database, { topLevelOnly: true }, 1);
        const all = await list(database, {}, 1);
        const refused = async (text: string | undefined, filter = {}) =>
          (await rejection(list(database, filter, 1, text))) as unknown;
        for (const [text, reason] of [
          ["", "malformed"],
          ["garbage!", "malformed"],
          [forged(["x"]), "malformed"],
          [changed(all.next, (fields) => [2, ...fields.slice(1)]), "malformed"],
          [changed(all.next, ([a, b, , d]) => [a, b, "2", d]), "malformed"],
          [changed(all.next, ([a, b, c]) => [a, b, c, 7]), "malformed"],
          [changed(all.next, ([a, b]) => [a, b]), "malformed"],
          [next, "filter"],
        ] as const)
          expect([text, await refused(text)]).toMatchObject([
            text,
            { code: "CURSOR_INVALID", details: { reason } },
          ]);
        expect(
          ids(await list(database, { topLevelOnly: true, hideFinished: false }, 1, next)),
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
          [{ createdFrom: new Date(Number.NaN) }, 1],
          [{ createdTo: new Date(-1) }, 1],
          [{ createdTo: "2026-11-17" as never }, 1],
          [{ newerThan: { createdAt: 1, id: "\0" } }, 1],
          [{ newerThan: "a" as never }, 1],
          [{ topLevelOnly: "yes" as never }, 1],
          [{ staus: "failed" } as never, 1],
        ] as const)
          expect(await rejection(list(database, filter, limit))).toMatchObject({
            code: "OPTION_INVALID",
          });
      }),
    );

    test(
      "a damaged row is named, and the pages go on past it",
      onDatabase(async (database) => {
        for (const [n, name] of ["a", "b", "c"].entries()) await create(database, name, { at: n });
        await database.write("damage", () =>
          pastChecks(database, sql`UPDATE holdfast_execution SET due_at = NULL WHERE id = 'b'`),
        );
        const all = await pages(database, {}, 1);
        expect(all.map(ids)).toEqual([["c"], [], ["a"]]);
        expect(all.flatMap(({ damaged }) => damaged)).toEqual([
          { table: "holdfast_execution", key: "b" },
        ]);
      }),
    );
  });
}
