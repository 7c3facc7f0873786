import { describe, expect, test } from "vitest";
import { delayId } from "../../../src/model/ids/delay-id.ts";
import { oneOffJoinSet } from "../../../src/model/ids/join-set-id.ts";
import type { HistoryFact } from "../../../src/model/execution/history-event.ts";
import { sql } from "../../../src/sql/statement.ts";
import { run } from "../../../src/sql/operation.ts";
import type { Database } from "../../../src/sql/database.ts";
import { appendEvents } from "../../fixtures/execution-operations.ts";
import { earliestDue } from "../../../src/stores/execution/lock/lockable.ts";
import { earliestTimer, expiredTimers } from "../../fixtures/execution-operations.ts";
import type {
  ExpiredTimer,
  ExpiredTimers,
  TimerPlace,
} from "../../../src/stores/execution/timers/due.ts";
import { lockExecution } from "../../fixtures/execution-operations.ts";
import {
  block,
  create,
  executionId,
  finish,
  holder,
  mail,
  retry,
  tax,
} from "./awaited-executions.ts";
import { withDatabase } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { pastChecks } from "../past-checks.ts";

const set = oneOffJoinSet(7);

export function executionTimersSuite(backend: Backend): void {
  const onDatabase = (body: (database: Database) => Promise<void>) => () =>
    withDatabase(backend, body);

  describe("expired timers", () => {
    expiredTests(onDatabase);
  });
  describe("pages of expired timers", () => {
    pageTests(onDatabase);
  });
  describe("the earliest instant", () => {
    earliestTests(onDatabase);
  });
}

type OnDatabase = (body: (database: Database) => Promise<void>) => () => Promise<void>;

function expiredTests(onDatabase: OnDatabase): void {
  const lockOfA = {
    kind: "lock",
    expiresAt: 200,
    execution: "a",
    lockedAtVersion: 1,
    nextVersion: 2,
    failures: 0,
    retry: { maxRetries: 5, backoffMs: 100, backoffMaxMs: 60_000 },
    holder: {
      executor: "Exr_01ARZ3NDEKTSV4RRFFQ69G5FAV",
      run: "Run_01ARZ3NDEKTSV4RRFFQ69G5FAV",
      owner: null,
    },
  };

  test(
    "[E32] are none before expiry, and at it exactly one lock with what its end needs",
    onDatabase(async (database) => {
      await create(database, "a");
      await lock(database, "a", 200);
      expect(await expired(database, 199)).toEqual(nothing);
      expect(await expired(database, 200)).toEqual({
        ...nothing,
        timers: [lockOfA],
      });
    }),
  );

  test(
    "[E33] tell the progress that was made since the lock",
    onDatabase(async (database) => {
      await create(database, "a");
      await lock(database, "a", 200);
      await append(database, "a", 2, { kind: "joinSetCreated", joinSet: set });
      expect((await expired(database, 200)).timers).toEqual([{ ...lockOfA, nextVersion: 3 }]);
    }),
  );

  test(
    "[E34] are a delay first and the lock later, each at its instant",
    onDatabase(async (database) => {
      await create(database, "a");
      await lock(database, "a", 200);
      await requestDelay(database, "a", 2, 1, 100);
      const delay = {
        kind: "delay",
        expiresAt: 100,
        id: "Delay_a.o:7_1",
        execution: "a",
        joinSet: "o:7",
      };
      expect(await expired(database, 0)).toEqual(nothing);
      expect((await expired(database, 100)).timers).toEqual([delay]);
      expect((await expired(database, 200)).timers).toEqual([
        delay,
        { ...lockOfA, nextVersion: 3 },
      ]);
    }),
  );

  test(
    "[E38] are never blocked or pending executions, whoever keeps them in memory",
    onDatabase(async (database) => {
      await create(database, "pending");
      await create(database, "blocked");
      await block(database, "blocked");
      await create(database, "kept");
      await lock(database, "kept", 50);
      await append(database, "kept", 2, {
        kind: "waiting",
        runExpiresAt: 50,
        wakeAt: null,
      });
      expect(await expired(database, 1_000_000)).toEqual(nothing);
    }),
  );

  test(
    "include deadlines of what has neither finished nor is being cancelled",
    onDatabase(async (database) => {
      for (const id of ["open", "finished", "cancelling"])
        await create(database, id, { deadlineAt: 300 });
      await create(database, "without");
      await finish(database, "finished");
      await database.write(appendEvents, {
        id: executionId("cancelling"),
        version: 1,
        at: 0,
        events: [{ kind: "cancellationRequested", reason: null, cause: "request" }],
      });
      expect(await expired(database, 299)).toEqual(nothing);
      expect((await expired(database, 300)).timers).toEqual([
        { kind: "deadline", expiresAt: 300, execution: "open" },
      ]);
    }),
  );

  test(
    "leave out delays that are paused",
    onDatabase(async (database) => {
      await create(database, "a");
      await requestDelay(database, "a", 1, 1, 100);
      await database.write("pause", () =>
        run(sql`UPDATE holdfast_execution_delay SET is_paused = 1`),
      );
      expect(await expired(database, 100)).toEqual(nothing);
      expect(await database.read(earliestTimer, undefined)).toBeUndefined();
    }),
  );
}

function pageTests(onDatabase: OnDatabase): void {
  test(
    "come in the order of expiry whatever their kind, each timer once",
    onDatabase(async (database) => {
      await create(database, "a", { deadlineAt: 20 });
      await create(database, "b", { deadlineAt: 40 });
      await lock(database, "a", 20);
      await lock(database, "b", 30);
      await requestDelay(database, "a", 2, 1, 20);
      await requestDelay(database, "a", 3, 2, 20);
      await requestDelay(database, "b", 2, 1, 10);
      for (const limit of [1, 2, 3, 100])
        expect(await allPages(database, limit)).toEqual([
          "delay Delay_b.o:7_1 10",
          "delay Delay_a.o:7_1 20",
          "delay Delay_a.o:7_2 20",
          "lock a 20",
          "deadline a 20",
          "lock b 30",
          "deadline b 40",
        ]);
    }),
  );

  test(
    "go on past rows that cannot be read, and name them",
    onDatabase(async (database) => {
      for (const id of ["a", "b", "c"]) {
        await create(database, id);
        await lock(database, id, 20);
      }
      await requestDelay(database, "a", 2, 1, 10);
      await database.write("damage", () =>
        pastChecks(
          database,
          sql`UPDATE holdfast_execution SET executor = NULL WHERE id = 'b'`,
          sql`UPDATE holdfast_execution_delay SET execution = 0 WHERE id = 'Delay_a.o:7_1'`,
        ),
      );
      const first = await expired(database, 20, 3);
      expect(first.timers.map(nameOf)).toEqual(["lock a 20"]);
      expect(first.damaged).toEqual([
        { table: "holdfast_execution_delay", key: "Delay_a.o:7_1" },
        { table: "holdfast_execution", key: "b" },
      ]);
      const second = await expired(database, 20, 3, first.next);
      expect(second.timers.map(nameOf)).toEqual(["lock c 20"]);
      expect(second.next).toBeUndefined();
    }),
  );
}

function earliestTests(onDatabase: OnDatabase): void {
  test(
    "at which something of a function is due comes per function and overall",
    onDatabase(async (database) => {
      const due = (...names: readonly (typeof mail)[]) =>
        database.read("due", () => earliestDue(names));
      expect(await due(mail, tax)).toEqual({
        earliest: undefined,
        byFunction: new Map(),
      });
      await create(database, "a", { scheduledAt: 500 });
      await create(database, "b", { scheduledAt: 300 });
      await create(database, "c", { scheduledAt: 400, function: tax });
      await create(database, "paused", { scheduledAt: 100, isPaused: true });
      await create(database, "locked", { scheduledAt: 0 });
      await lock(database, "locked", 50);
      expect(await due(mail, tax)).toEqual({
        earliest: 300,
        byFunction: new Map([
          [mail, 300],
          [tax, 400],
        ]),
      });
      expect(await due()).toEqual({
        earliest: undefined,
        byFunction: new Map(),
      });
    }),
  );

  test(
    "of all timers is that of the earliest delay, lock or deadline",
    onDatabase(async (database) => {
      const earliest = () => database.read(earliestTimer, undefined);
      expect(await earliest()).toBeUndefined();
      await create(database, "a", { deadlineAt: 900 });
      expect(await earliest()).toBe(900);
      await lock(database, "a", 800);
      expect(await earliest()).toBe(800);
      await requestDelay(database, "a", 2, 1, 700);
      expect(await earliest()).toBe(700);
    }),
  );
}

const nothing: ExpiredTimers = { timers: [], damaged: [], next: undefined };

function expired(
  database: Database,
  at: number,
  limit = 100,
  after?: TimerPlace,
): Promise<ExpiredTimers> {
  return database.read(expiredTimers, { at, limit, after });
}

async function allPages(database: Database, limit: number): Promise<readonly string[]> {
  const names: string[] = [];
  let after: TimerPlace | undefined;
  do {
    const page = await expired(database, 1_000, limit, after);
    expect(page.timers.length).toBeLessThanOrEqual(limit);
    names.push(...page.timers.map(nameOf));
    after = page.next;
  } while (after !== undefined);
  return names;
}

function nameOf(timer: ExpiredTimer): string {
  const id = timer.kind === "delay" ? timer.id : timer.execution;
  return `${timer.kind} ${id} ${timer.expiresAt}`;
}

async function lock(database: Database, id: string, leaseUntil: number): Promise<void> {
  await database.write(lockExecution, {
    id: executionId(id),
    version: 1,
    at: 0,
    holder,
    leaseUntil,
    retry,
    codeVersion: null,
  });
}

async function append(
  database: Database,
  id: string,
  version: number,
  event: HistoryFact,
): Promise<void> {
  await database.write(appendEvents, {
    id: executionId(id),
    version,
    at: 0,
    events: [{ call: 0, seen: 0, ...event }],
  });
}

async function requestDelay(
  database: Database,
  id: string,
  version: number,
  index: number,
  expiresAt: number,
): Promise<void> {
  await append(database, id, version, {
    kind: "delayRequested",
    joinSet: set,
    delay: delayId(executionId(id), set, index),
    expiresAt,
    startAt: { at: expiresAt },
  });
}
