import { describe, expect, test } from "vitest";
import { run } from "../../../src/sql/operation.ts";
import { sql } from "../../../src/sql/statement.ts";
import type { Database } from "../../../src/sql/database.ts";
import type { LoggedResponse } from "../../../src/model/execution/event.ts";
import { executions } from "../../../src/stores/execution/executions.ts";
import type { ListResponsesOptions } from "../../../src/stores/execution/read/responses.ts";
import type { Page } from "../../../src/stores/list.ts";
import { rejection, withDatabase } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { create, finish } from "./records.ts";

type ResponsePage = Page<LoggedResponse<unknown>>;

const seqs = (page: ResponsePage): number[] => page.items.map(({ seq }) => seq);

export function executionResponsesSuite(backend: Backend): void {
  const list = (
    database: Database,
    options: ListResponsesOptions = {},
    limit = 2,
  ): Promise<ResponsePage> => executions(database).responses("order-1", { limit, ...options });

  const allPages = async (
    database: Database,
    options: ListResponsesOptions,
  ): Promise<number[][]> => {
    const pages: number[][] = [];
    let after: string | undefined;
    do {
      const page = await list(database, {
        ...options,
        ...(after !== undefined && { after }),
      });
      pages.push(seqs(page));
      after = page.next;
    } while (after !== undefined);
    return pages;
  };

  /** Five children finish: 1, 3 and 5 in set "a", 2 and 4 in set "b". */
  const withFive = (body: (database: Database) => Promise<void>) => () =>
    withDatabase(backend, async (database) => {
      await create(database, "order-1");
      for (const [n, child] of ["a_1", "b_1", "a_2", "b_2", "a_3"].entries()) {
        await create(database, `order-1.n:${child}`);
        await finish(database, `order-1.n:${child}`, 10 + n, {
          kind: "completed",
          value: child,
        });
      }
      await body(database);
    });

  describe("listing responses", () => {
    test("[E86] there are none for a new execution, and an unknown one is refused", () =>
      withDatabase(backend, async (database) => {
        const none = { items: [], damaged: [], next: undefined };
        expect(await rejection(list(database))).toMatchObject({
          code: "EXECUTION_NOT_FOUND",
        });
        await create(database, "order-1");
        expect(await list(database)).toEqual(none);
        expect(await list(database, { backward: true })).toEqual(none);
        expect(await list(database, { from: 9 })).toEqual(none);
        expect(await list(database, { from: 9, backward: true })).toEqual(none);
      }));

    test(
      "[E43] they come in the order of arrival with time, set, child, version and result",
      withFive(async (database) => {
        const { items } = await list(database);
        expect(items).toEqual([
          {
            seq: 1,
            at: 10,
            response: {
              kind: "child",
              joinSet: "n:a",
              child: "order-1.n:a_1",
              finishedVersion: 1,
              resultKind: "completed",
              result: { kind: "completed", value: "a_1" },
            },
          },
          {
            seq: 2,
            at: 11,
            response: {
              kind: "child",
              joinSet: "n:b",
              child: "order-1.n:b_1",
              finishedVersion: 1,
              resultKind: "completed",
              result: { kind: "completed", value: "b_1" },
            },
          },
        ]);
      }),
    );

    test(
      "[E86] both directions answer in ascending order, and their cursors go on to the end",
      withFive(async (database) => {
        expect(await allPages(database, {})).toEqual([[1, 2], [3, 4], [5]]);
        expect(await allPages(database, { backward: true })).toEqual([[4, 5], [2, 3], [1]]);
      }),
    );

    test(
      "[E86] a list begins with the response of a number, whichever way it goes",
      withFive(async (database) => {
        const at = async (options: ListResponsesOptions) => seqs(await list(database, options));
        const backward = true;
        expect(await at({ from: 3 })).toEqual([3, 4]);
        expect(await at({ from: 2 })).toEqual([2, 3]);
        expect(await at({ from: 3, backward })).toEqual([2, 3]);
        expect(await at({ from: 4, backward })).toEqual([3, 4]);
        expect(await at({ from: 6 })).toEqual([]);
        expect(await at({ from: 5 })).toEqual([5]);
        expect(await at({ from: 0, backward })).toEqual([]);
        expect(await at({ from: 1, backward })).toEqual([1]);
        expect(await at({ from: 0 })).toEqual([1, 2]);
        expect(await at({ from: 77 })).toEqual([]);
        expect(await at({ from: 77, backward })).toEqual([4, 5]);
        expect(await allPages(database, { from: 2 })).toEqual([
          [2, 3],
          [4, 5],
        ]);
        expect(await allPages(database, { from: 4, backward })).toEqual([
          [3, 4],
          [1, 2],
        ]);
      }),
    );

    test(
      "[E86] those of one join set are listed by themselves",
      withFive(async (database) => {
        const joinSet = "n:a";
        expect(await allPages(database, { joinSet })).toEqual([[1, 3], [5]]);
        expect(await allPages(database, { joinSet, backward: true })).toEqual([[3, 5], [1]]);
        expect(await allPages(database, { joinSet: "n:other" })).toEqual([[]]);
      }),
    );

    test(
      "a page goes one way, and its numbers are whole",
      withFive(async (database) => {
        const { next } = await list(database);
        expect(
          await rejection(list(database, { backward: true, after: String(next) })),
        ).toMatchObject({
          code: "CURSOR_INVALID",
          details: { reason: "filter" },
        });
        for (const options of [
          { from: -1 },
          { from: 0.5 },
          { backward: 1 as never },
          { before: 3 } as never,
        ])
          expect(await rejection(list(database, options))).toMatchObject({
            code: "OPTION_INVALID",
          });
      }),
    );

    test(
      "a response that has lost its value is named, and the others are listed",
      withFive(async (database) => {
        await database.write("damage", () =>
          run(sql`
            UPDATE holdfast_execution_response SET finished_version = 7 WHERE seq = 2`),
        );
        const page = await list(database, {}, 10);
        expect(seqs(page)).toEqual([1, 3, 4, 5]);
        expect(page.damaged).toEqual([{ table: "holdfast_execution_response", key: "order-1#2" }]);
      }),
    );
  });
}
