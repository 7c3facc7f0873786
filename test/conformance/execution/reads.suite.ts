import { describe, expect, test } from "vitest";
import { parseJoinSetId } from "../../../src/model/join-set-id.ts";
import { run as runStatement } from "../../../src/sql/operation.ts";
import { sql } from "../../../src/sql/statement.ts";
import type { Database } from "../../../src/sql/database.ts";
import {
  listEvents,
  readEvent,
  readLastEvent,
} from "../../../src/stores/execution/read/read-events.ts";
import type {
  EventPage,
  ListedEvent,
} from "../../../src/stores/execution/read/read-events.ts";
import {
  readCreated,
  readExecution,
  readResult,
} from "../../../src/stores/execution/read/read.ts";
import { rejection, withDatabase } from "../backend.ts";
import type { Backend } from "../backend.ts";
import {
  append,
  codec,
  create,
  finish,
  id,
  locked,
  patched,
} from "./records.ts";

const versions = (page: EventPage): number[] =>
  page.items.map((event: ListedEvent) => event.version);

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
        const { progress, ...found } = await database.read(
          readExecution,
          id("order-1"),
        );
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
          tags: ["blue", "red"],
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
            retry: null,
            codeVersion: "v1",
            historyFrom: 0,
            responsesFrom: 0,
            continuations: 0,
            responses: 0,
          },
        });
        expect(progress && codec.readValue(progress)).toBe("half");
      }),
    );

    test(
      "a child names its parent, and a finished one its last version",
      onDatabase(async (database) => {
        await create(database, "order-1");
        await create(database, "order-1.n:pay_1");
        await append(database, "order-1.n:pay_1", 1, 10, locked(60));
        await append(
          database,
          "order-1.n:pay_1",
          2,
          20,
          codec.finished({ kind: "timedOut" }),
        );
        expect(
          await database.read(readExecution, id("order-1.n:pay_1")),
        ).toMatchObject({
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
        expect(await database.read(readExecution, id("order-1"))).toMatchObject(
          { nextVersion: 1, state: { responses: 1 } },
        );
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
        const { at, created } = await database.read(readCreated, id("order-1"));
        expect(at).toBe(7);
        expect(created).toMatchObject({
          function: "orders/fulfil",
          metadata: { trace: "t1" },
        });
        expect(codec.readValue(created.input)).toEqual({ sku: "a" });
      }),
    );

    test(
      "a result is there once it has finished",
      onDatabase(async (database) => {
        await create(database, "order-1");
        expect(await database.read(readResult, id("order-1"))).toBeUndefined();
        await finish(database, "order-1", 30, {
          kind: "cancelled",
          reason: "no stock",
        });
        const found = await database.read(readResult, id("order-1"));
        expect(found).toMatchObject({
          version: 1,
          finishedAt: 30,
          resultKind: "cancelled",
        });
        expect(found && codec.readResult(found.result)).toEqual({
          kind: "cancelled",
          reason: "no stock",
        });
      }),
    );

    test(
      "of an unknown one there is nothing to read",
      onDatabase(async (database) => {
        const unknown = id("order-1");
        for (const read of [
          () => database.read(readExecution, unknown),
          () => database.read(readCreated, unknown),
          () => database.read(readResult, unknown),
          () => database.read(readLastEvent, unknown),
          () => database.read(readEvent, { id: unknown, version: 0 }),
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
        const last = await database.read(readLastEvent, id("one"));
        const single = await database.read(readEvent, {
          id: id("one"),
          version: 1,
        });
        const { items } = await database.read(listEvents, {
          id: id("one"),
          limit: 10,
        });
        const listed = items[1];
        expect(single).toEqual(last);
        for (const found of [single, last, listed]) {
          if (found?.event.kind !== "finished") throw new Error("Not finished");
          expect(JSON.stringify(codec.readResult(found.event.result))).toBe(
            '{"kind":"completed","value":{"b":1,"a":{"d":2,"c":3}}}',
          );
        }
        const one = await database.read(readResult, id("one"));
        const two = await database.read(readResult, id("two"));
        expect(one?.resultHash).toBe(two?.resultHash);
        expect(one?.result).not.toBe(two?.result);
      }),
    );

    test(
      "a missing event of an execution that exists is told apart from a missing execution",
      onDatabase(async (database) => {
        await create(database, "order-1");
        const error = await rejection(
          database.read(readEvent, { id: id("order-1"), version: 4 }),
        );
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
        const list = (from: number | undefined, limit: number) =>
          database.read(listEvents, { id: id("order-1"), from, limit });
        const first = await list(undefined, 4);
        expect(versions(first)).toEqual([0, 1, 2, 3]);
        expect(first).toMatchObject({ next: 4, lastVersion: 5 });
        const second = await list(4, 4);
        expect(versions(second)).toEqual([4, 5]);
        expect(second.items[1]).toEqual({
          version: 5,
          at: 5,
          event: { kind: "patched", patch: "e", call: 0, seen: 0 },
        });
        expect(second.next).toBeUndefined();
        expect(versions(await list(2, 1))).toEqual([2]);
        expect(await list(6, 4)).toMatchObject({ items: [], next: undefined });
        expect(await list(Number.MAX_SAFE_INTEGER, 4)).toMatchObject({
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
        const list = (from?: number) =>
          database.read(listEvents, {
            id: id("order-1"),
            from,
            limit: 2,
            newestFirst: true,
          });
        const first = await list();
        expect(versions(first)).toEqual([2, 1]);
        expect(first.next).toBe(0);
        const second = await list(0);
        expect(versions(second)).toEqual([0]);
        expect(second.next).toBeUndefined();
        expect(versions(await list(99))).toEqual([2, 1]);
      }),
    );

    test(
      "an unknown execution has no events, and limits are checked",
      onDatabase(async (database) => {
        const nobody = id("nobody");
        expect(
          await database.read(listEvents, { id: nobody, limit: 1 }),
        ).toEqual({
          items: [],
          damaged: [],
          next: undefined,
          lastVersion: undefined,
        });
        for (const limit of [0, 1_001, 1.5, Number.NaN])
          expect(
            await rejection(database.read(listEvents, { id: nobody, limit })),
          ).toMatchObject({
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
        for (const from of [1, 701, 1_401])
          await append(database, "order-1", from, 5, ...many);
        await append(database, "order-1", 2_101, 6, {
          kind: "joinSetCreated",
          joinSet: parseJoinSetId("n:pay"),
          call: 1,
          seen: 0,
        });
        const list = (from: number | undefined, newestFirst: boolean) =>
          database.read(listEvents, {
            id: id("order-1"),
            from,
            limit: 10,
            newestFirst,
            kinds: ["created", "joinSetCreated"],
          });
        const first = await list(undefined, false);
        expect(versions(first)).toEqual([0]);
        expect(first.next).toBe(2_000);
        const second = await list(2_000, false);
        expect(versions(second)).toEqual([2_101]);
        expect(second.next).toBeUndefined();
        const newest = await list(undefined, true);
        expect(versions(newest)).toEqual([2_101]);
        expect(newest.next).toBe(101);
        expect(versions(await list(101, true))).toEqual([0]);
      }),
    );

    test(
      "a damaged event is named and the others are listed; read alone it is an error",
      onDatabase(async (database) => {
        await create(database, "order-1");
        await append(database, "order-1", 1, 5, patched("a"), patched("b"));
        await database.write("damage", () =>
          runStatement(
            sql`UPDATE holdfast_execution_event SET body = 'torn' WHERE version = 1`,
          ),
        );
        const page = await database.read(listEvents, {
          id: id("order-1"),
          limit: 10,
        });
        expect(versions(page)).toEqual([0, 2]);
        expect(page.damaged).toEqual([
          { table: "holdfast_execution_event", key: "order-1#1" },
        ]);
        const error = await rejection(
          database.read(readEvent, { id: id("order-1"), version: 1 }),
        );
        expect(error.code).toBe("CORRUPT_ROW");
      }),
    );
  });
}
