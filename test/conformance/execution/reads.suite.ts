import { describe, expect, test } from "vitest";
import type { ExecutionEvent } from "../../../src/model/execution/event.ts";
import { parseJoinSetId } from "../../../src/model/ids/join-set-id.ts";
import { run as runStatement } from "../../../src/sql/operation.ts";
import { sql } from "../../../src/sql/statement.ts";
import type { Database } from "../../../src/sql/database.ts";
import { executions } from "../../../src/stores/execution/executions.ts";
import type { ListedEvent, ListEventsOptions } from "../../../src/stores/execution/read/events.ts";
import { finishedResult } from "../../../src/stores/execution/result-row.ts";
import type { Page } from "../../../src/stores/list.ts";
import { rejection, withDatabase } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { append, codec, create, finish, id, locked, patched } from "./records.ts";

const versions = (page: Page<ListedEvent>): number[] => page.items.map((event) => event.version);

const list = (database: Database, options?: ListEventsOptions): Promise<Page<ListedEvent>> =>
  executions(database).events("order-1", options);

/** The page after another one of the same list. */
const following = (
  database: Database,
  { next }: Page<ListedEvent>,
  options?: ListEventsOptions,
): Promise<Page<ListedEvent>> => list(database, { ...options, after: String(next) });

export function executionReadsSuite(backend: Backend): void {
  const onDatabase = (body: (database: Database) => Promise<void>) => () =>
    withDatabase(backend, body);

  describe("reading one execution", () => {
    test(
      "tells all that is known of it",
      onDatabase(async (database) => {
        await create(database, "order-1", {
          at: 1_000,
          scheduledAt: 5_000,
          deadlineAt: 9_000,
          concurrencyKey: "customer-7",
          codeVersion: "v1",
          tags: ["red", "blue"],
        });
        await database.write("progress", () =>
          runStatement(sql`
            UPDATE holdfast_execution SET progress = ${codec.value("half")} WHERE id = ${"order-1"}`),
        );
        const found = await executions(database).get("order-1");
        expect(found).toEqual({
          id: "order-1",
          parent: null,
          role: "workflow",
          function: "orders/fulfil",
          createdAt: 1_000,
          scheduledAt: 5_000,
          nextVersion: 1,
          codeVersion: "v1",
          concurrencyKey: "customer-7",
          deadlineAt: 9_000,
          status: "pending",
          sleepsUntil: null,
          interruption: null,
          tags: ["blue", "red"],
          progress: "half",
          state: {
            role: "workflow",
            version: 0,
            pending: {
              kind: "pending",
              dueAt: 5_000,
              leaseUntil: null,
              lastLock: null,
            },
            lifecycle: "active",
            failures: 0,
            deaths: 0,
            aloneDeaths: 0,
            retry: null,
            codeVersion: "v1",
            historyFrom: 0,
            incompatible: [],
            responsesFrom: 0,
            continuations: 0,
            responses: 0,
          },
        });
      }),
    );

    test(
      "a child names its parent, and a finished one its last version",
      onDatabase(async (database) => {
        await create(database, "order-1");
        await create(database, "order-1.n:pay_1");
        await append(database, "order-1.n:pay_1", 1, 10, locked(60));
        await append(database, "order-1.n:pay_1", 2, 20, codec.finished({ kind: "timedOut" }));
        expect(await executions(database).get("order-1.n:pay_1")).toMatchObject({
          parent: "order-1",
          nextVersion: 2,
          tags: [],
          progress: null,
          state: {
            version: 2,
            pending: {
              kind: "finished",
              finishedAt: 20,
              resultKind: "timedOut",
            },
          },
        });
        expect(await executions(database).get("order-1")).toMatchObject({
          nextVersion: 1,
          state: { responses: 1 },
        });
      }),
    );

    test(
      "what it was created with comes back",
      onDatabase(async (database) => {
        await create(database, "order-1", {
          at: 7,
          input: { sku: "a" },
          metadata: { trace: "t1" },
        });
        await append(database, "order-1", 1, 8, patched("p"));
        expect(await executions(database).created("order-1")).toMatchObject({
          function: "orders/fulfil",
          metadata: { trace: "t1" },
          input: { sku: "a" },
        });
        expect((await executions(database).event("order-1", 0)).at).toBe(7);
      }),
    );

    test(
      "a result is there once it has finished",
      onDatabase(async (database) => {
        await create(database, "order-1");
        const { result } = executions(database);
        expect(await result("order-1")).toBeUndefined();
        await finish(database, "order-1", 30, {
          kind: "cancelled",
          reason: "no stock",
        });
        expect(await result("order-1")).toEqual({
          kind: "cancelled",
          reason: "no stock",
        });
        expect(await database.read("ended", () => finishedResult(id("order-1")))).toMatchObject({
          version: 1,
          finishedAt: 30,
          resultKind: "cancelled",
        });
      }),
    );

    test(
      "of an unknown one there is nothing to read",
      onDatabase(async (database) => {
        const log = executions(database);
        for (const read of [
          () => log.get("order-1"),
          () => log.created("order-1"),
          () => log.result("order-1"),
          () => log.lastEvent("order-1"),
          () => log.event("order-1", 0),
        ])
          expect(await rejection(read())).toMatchObject({
            code: "EXECUTION_NOT_FOUND",
            details: { id: "order-1" },
          });
      }),
    );
  });

  describe("reading events", () => {
    test(
      "[E20] the key order of a stored result is kept by single reads and lists, and does not matter to its hash",
      onDatabase(async (database) => {
        await create(database, "one");
        await create(database, "two");
        await finish(database, "one", 1, {
          kind: "completed",
          value: { b: 1, a: { d: 2, c: 3 } },
        });
        await finish(database, "two", 1, {
          kind: "completed",
          value: { a: { c: 3, d: 2 }, b: 1 },
        });
        const log = executions(database);
        const last = await log.lastEvent("one");
        const single = await log.event("one", 1);
        const { items } = await log.events("one");
        const listed = items[1];
        expect(single).toEqual(last);
        for (const found of [single, last, listed]) {
          if (found?.event.kind !== "finished") throw new Error("Not finished");
          expect(JSON.stringify(found.event.result)).toBe(
            '{"kind":"completed","value":{"b":1,"a":{"d":2,"c":3}}}',
          );
        }
        const stored = (name: string) => database.read("ended", () => finishedResult(id(name)));
        const one = await stored("one");
        const two = await stored("two");
        expect(one?.resultHash).toBe(two?.resultHash);
        expect(one?.result).not.toBe(two?.result);
      }),
    );

    test(
      "a missing event of an execution that exists is told apart from a missing execution",
      onDatabase(async (database) => {
        await create(database, "order-1");
        const error = await rejection(executions(database).event("order-1", 4));
        expect(error).toMatchObject({
          code: "EXECUTION_NOT_FOUND",
          details: { missing: "event", version: 4, lastVersion: 0 },
        });
      }),
    );

    test(
      "a list has the versions asked for, in order, and goes on where it ended",
      onDatabase(async (database) => {
        await create(database, "order-1");
        const five = ["a", "b", "c", "d", "e"].map(patched);
        await append(database, "order-1", 1, 5, ...five);
        const first = await list(database, { limit: 4 });
        expect(versions(first)).toEqual([0, 1, 2, 3]);
        const second = await following(database, first, { limit: 4 });
        expect(versions(second)).toEqual([4, 5]);
        expect(second.items[1]).toEqual({
          version: 5,
          at: 5,
          event: { kind: "patched", patch: "e", call: 0, seen: 0 },
        });
        expect(second.next).toBeUndefined();
        expect(versions(await list(database, { from: 4, limit: 4 }))).toEqual([4, 5]);
        expect(versions(await list(database, { from: 2, limit: 1 }))).toEqual([2]);
        for (const from of [6, Number.MAX_SAFE_INTEGER])
          expect(await list(database, { from, limit: 4 })).toMatchObject({
            items: [],
            next: undefined,
          });
      }),
    );

    test(
      "newest first it goes down from the end or from a version",
      onDatabase(async (database) => {
        await create(database, "order-1");
        await append(database, "order-1", 1, 5, ...["a", "b"].map(patched));
        const down = { limit: 2, newestFirst: true };
        const first = await list(database, down);
        expect(versions(first)).toEqual([2, 1]);
        const second = await following(database, first, down);
        expect(versions(second)).toEqual([0]);
        expect(second.next).toBeUndefined();
        expect(await list(database, { ...down, from: 0 })).toEqual(second);
        expect(versions(await list(database, { ...down, from: 99 }))).toEqual([2, 1]);
      }),
    );

    test(
      "those of an unknown execution are refused, and limits are checked",
      onDatabase(async (database) => {
        expect(await rejection(list(database, { limit: 1 }))).toMatchObject({
          code: "EXECUTION_NOT_FOUND",
        });
        for (const limit of [0, 1_001, 1.5, Number.NaN])
          expect(await rejection(list(database, { limit }))).toMatchObject({
            code: "OPTION_INVALID",
            details: { option: "limit" },
          });
      }),
    );

    test(
      "by kind it passes over the others, 2,000 versions to a page",
      onDatabase(async (database) => {
        await create(database, "order-1");
        const many = Array.from({ length: 700 }, (_, n) => patched(`p${n}`));
        for (const from of [1, 701, 1_401]) await append(database, "order-1", from, 5, ...many);
        await append(database, "order-1", 2_101, 6, {
          kind: "joinSetCreated",
          joinSet: parseJoinSetId("n:pay"),
          call: 1,
          seen: 0,
        });
        const options = (newestFirst: boolean): ListEventsOptions => ({
          limit: 10,
          newestFirst,
          kinds: ["created", "joinSetCreated"],
        });
        for (const [newestFirst, firstVersion, secondVersion] of [
          [false, 0, 2_101],
          [true, 2_101, 0],
        ] as const) {
          const first = await list(database, options(newestFirst));
          expect(versions(first)).toEqual([firstVersion]);
          const second = await following(database, first, options(newestFirst));
          expect(versions(second)).toEqual([secondVersion]);
          expect(second.next).toBeUndefined();
        }
        const from = 101;
        expect(versions(await list(database, { ...options(true), from }))).toEqual([0]);
        expect(versions(await list(database, { ...options(false), from }))).toEqual([]);
        expect(versions(await list(database, { ...options(false), from: 102 }))).toEqual([2_101]);
      }),
    );

    test(
      "a page ends where its values are too large together, with one at least",
      onDatabase(async (database) => {
        await create(database, "order-1");
        const large = (name: string, characters: number): ExecutionEvent => ({
          kind: "stepFinished",
          name,
          inputHash: null,
          outcome: "completed",
          value: codec.value(name.repeat(characters)),
          call: 0,
          seen: 0,
        });
        await append(
          database,
          "order-1",
          1,
          5,
          large("a", 600_000),
          large("b", 600_000),
          large("c", 1_500_000),
          patched("d"),
        );
        const pages: number[][] = [];
        let page = await list(database);
        pages.push(versions(page));
        while (page.next !== undefined) {
          page = await following(database, page);
          pages.push(versions(page));
        }
        expect(pages).toEqual([[0, 1], [2], [3], [4]]);
      }),
    );

    test(
      "a damaged event is named and the others are listed; read alone it is an error",
      onDatabase(async (database) => {
        await create(database, "order-1");
        await append(database, "order-1", 1, 5, patched("a"), patched("b"));
        await database.write("damage", () =>
          runStatement(sql`UPDATE holdfast_execution_event SET body = 'torn' WHERE version = 1`),
        );
        const page = await list(database);
        expect(versions(page)).toEqual([0, 2]);
        expect(page.damaged).toEqual([{ table: "holdfast_execution_event", key: "order-1#1" }]);
        const error = await rejection(executions(database).event("order-1", 1));
        expect(error.code).toBe("CORRUPT_ROW");
      }),
    );
  });
}
