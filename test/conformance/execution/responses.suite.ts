import { describe, expect, test } from "vitest";
import { parseJoinSetId } from "../../../src/model/join-set-id.ts";
import { run } from "../../../src/sql/operation.ts";
import { sql } from "../../../src/sql/statement.ts";
import type { Database } from "../../../src/sql/database.ts";
import { listResponses } from "../../../src/stores/execution/read/read-responses.ts";
import type {
  ListResponses,
  ResponsePage,
} from "../../../src/stores/execution/read/read-responses.ts";
import { rejection, withDatabase } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { codec, create, finish, id } from "./records.ts";

const seqs = (page: ResponsePage): number[] => page.items.map(({ seq }) => seq);

export function executionResponsesSuite(backend: Backend): void {
  const list = (
    database: Database,
    options: Omit<ListResponses, "id" | "limit"> = {},
    limit = 2,
  ): Promise<ResponsePage> =>
    database.read(listResponses, { id: id("order-1"), limit, ...options });

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
    test("[E86] there are none for a new and for an unknown execution", () =>
      withDatabase(backend, async (database) => {
        const none = { items: [], damaged: [], next: undefined, lastSeq: 0 };
        expect(await list(database)).toEqual(none);
        await create(database, "order-1");
        expect(await list(database)).toEqual(none);
        expect(await list(database, { after: 0 })).toEqual(none);
        expect(await list(database, { before: 9 })).toEqual(none);
      }));

    test(
      "[E43] they come in the order of arrival with time, set, child, version and result",
      withFive(async (database) => {
        const { items, lastSeq } = await list(database, { after: 0 });
        expect(items.map((item) => codec.readResponse(item))).toEqual([
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
        expect(lastSeq).toBe(5);
      }),
    );

    test(
      "[E86] both directions answer in ascending order, and their cursors go on to the end",
      withFive(async (database) => {
        const up: number[][] = [];
        let after: number | undefined = 0;
        while (after !== undefined) {
          const page: ResponsePage = await list(database, { after });
          up.push(seqs(page));
          after = page.next;
        }
        expect(up).toEqual([[1, 2], [3, 4], [5]]);

        const down: number[][] = [];
        let page = await list(database);
        down.push(seqs(page));
        while (page.next !== undefined) {
          page = await list(database, { before: page.next });
          down.push(seqs(page));
        }
        expect(down).toEqual([[4, 5], [2, 3], [1]]);
      }),
    );

    test(
      "[E86] the cursor's own response is left out unless it is counted in",
      withFive(async (database) => {
        const at = async (options: Omit<ListResponses, "id" | "limit">) =>
          seqs(await list(database, options));
        expect(await at({ after: 2 })).toEqual([3, 4]);
        expect(await at({ after: 2, inclusive: true })).toEqual([2, 3]);
        expect(await at({ before: 4 })).toEqual([2, 3]);
        expect(await at({ before: 4, inclusive: true })).toEqual([3, 4]);
        expect(await at({ after: 5 })).toEqual([]);
        expect(await at({ after: 5, inclusive: true })).toEqual([5]);
        expect(await at({ before: 1 })).toEqual([]);
        expect(await at({ before: 1, inclusive: true })).toEqual([1]);
        expect(await at({ before: 0 })).toEqual([]);
        expect(await at({ after: 0, inclusive: true })).toEqual([1, 2]);
        expect(await at({ after: 77 })).toEqual([]);
        expect(await at({ before: 77 })).toEqual([4, 5]);
      }),
    );

    test(
      "[E86] those of one join set are listed by themselves",
      withFive(async (database) => {
        const of = (options: Omit<ListResponses, "id" | "limit">) =>
          list(database, { joinSet: parseJoinSetId("n:a"), ...options });
        const first = await of({ after: 0 });
        expect(seqs(first)).toEqual([1, 3]);
        expect(seqs(await of({ after: first.next }))).toEqual([5]);
        const newest = await of({});
        expect(seqs(newest)).toEqual([3, 5]);
        expect(newest.lastSeq).toBe(5);
        expect(seqs(await of({ before: newest.next }))).toEqual([1]);
        expect(
          seqs(await of({ joinSet: parseJoinSetId("n:other"), after: 0 })),
        ).toEqual([]);
      }),
    );

    test(
      "a page goes one way, and its numbers are whole",
      withFive(async (database) => {
        for (const options of [
          { after: 1, before: 3 },
          { after: -1 },
          { before: 0.5 },
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
        const page = await list(database, { after: 0 }, 10);
        expect(seqs(page)).toEqual([1, 3, 4, 5]);
        expect(page.damaged).toEqual([
          { table: "holdfast_execution_response", key: "order-1#2" },
        ]);
      }),
    );
  });
}
