import { describe, expect, test } from "vitest";
import type { LoggedResponse } from "../../../src/model/execution/event.ts";
import { run } from "../../../src/sql/operation.ts";
import { sql } from "../../../src/sql/statement.ts";
import { executions } from "../../../src/stores/execution/executions.ts";
import type { Executions } from "../../../src/stores/execution/executions.ts";
import type { ExpireReport } from "../../../src/stores/execution/timers/expire-timers.ts";
import { block, create, finish, mail, sendSignal, tax } from "./awaited-executions.ts";
import { delayRequested } from "./execution-events.ts";
import { ann } from "./fixture.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { isOpen, waitFixture } from "../wait-fixture.ts";
import type { InFixture } from "../wait-fixture.ts";

/** A day, so that no test can end by its timeout unless it moves the clock. */
const timeout = "1 day";

export function executionWaitsSuite(backend: Backend): void {
  const fixture = waitFixture(backend);
  describe("waiting for pending work", () => {
    pendingTests(fixture);
  });
  describe("waiting for a timer", () => {
    timerTests(fixture);
  });
  describe("waiting for responses", () => {
    responseTests(fixture);
  });
  describe("waiting for a result", () => {
    resultTests(fixture);
  });
}

function pendingTests(fixture: InFixture): void {
  test(
    "[E79] ends at once when something is due",
    fixture(async ({ database }) => {
      await create(database, "a", { scheduledAt: 1_000 });
      const waiting = executions(database).waitForPending([tax, mail], {
        timeout: 0,
      });
      await expect(waiting).resolves.toBeUndefined();
    }),
  );

  test(
    "[E79] ends when something that is due is created, and not for another function",
    fixture(async ({ database, watched }) => {
      const waiting = executions(database).waitForPending([mail], {
        timeout,
      });
      await watched.asleep();
      await create(database, "other", { function: tax });
      expect(await isOpen(waiting)).toBe(true);
      await create(database, "a");
      await waiting;
    }),
  );

  test(
    "[E79] ends when a response unblocks an execution",
    fixture(async ({ database, watched }) => {
      await create(database, "a");
      await block(database, "a");
      const waiting = executions(database).waitForPending([mail], {
        timeout,
      });
      await watched.asleep();
      expect(await isOpen(waiting)).toBe(true);
      await database.write("signal", () => sendSignal("a", "one"));
      await waiting;
    }),
  );

  test(
    "[E79] ends in vain when nothing becomes due in time",
    fixture(async ({ database, watched, clock }) => {
      await create(database, "paused", { isPaused: true });
      const waiting = rejection(
        executions(database).waitForPending([mail, tax], {
          timeout: "1s",
        }),
      );
      await watched.asleep();
      clock.advance(999);
      expect(await isOpen(waiting)).toBe(true);
      clock.advance(1);
      const error = await waiting;
      expect(error).toMatchObject({
        code: "DEADLINE_EXCEEDED",
        retryable: true,
        details: { timeoutMs: 1_000 },
      });
      expect(error.message).toContain("work for mail/send, tax/compute");
    }),
  );

  test(
    "[E79] wakes all who wait for a function, and one that gives up takes nothing from the others",
    fixture(async ({ database, watched }) => {
      const abort = new AbortController();
      const wait = (signal?: AbortSignal) =>
        executions(database).waitForPending([mail], {
          timeout,
          ...(signal && { signal }),
        });
      const first = wait();
      const second = rejection(wait(abort.signal));
      const third = wait();
      await watched.asleep();
      abort.abort();
      expect(await second).toMatchObject({ code: "ABORTED" });
      await create(database, "a");
      await Promise.all([first, third]);
    }),
  );

  test(
    "sleeps exactly until the earliest instant, and hears of an earlier one",
    fixture(async ({ database, watched, clock }) => {
      await create(database, "late", { scheduledAt: 9_000 });
      const waiting = executions(database).waitForPending([mail, tax], {
        timeout,
      });
      await watched.asleep();
      await create(database, "soon", { function: tax, scheduledAt: 5_000 });
      await watched.asleep();
      clock.set(4_999);
      expect(await isOpen(waiting)).toBe(true);
      clock.advance(1);
      await waiting;
    }),
  );
}

const delay = "Delay_a.o:1_1";

/** Ways in which something comes to be over at 1,500, each for an execution "a" that there is. */
const timersSet: Readonly<Record<string, readonly [keyof ExpireReport, SetTimer]>> = {
  "a new delay": ["delays", (store) => store.append("a", 1, [delayRequested(delay, 1_500)])],
  "a delay that is no longer paused": [
    "delays",
    (store) => store.unpauseDelay("Delay_paused.o:1_1"),
  ],
  "a new lock": ["locks", (store) => store.lock("a", 1, ofAnn)],
  "a lock of what was due": [
    "locks",
    (store) => store.lockPending({ ...ofAnn, functions: ["due"], limit: 1 }),
  ],
  "what is created locked": [
    "locks",
    (store) => store.createLocked({ id: "b", function: "g" }, ofAnn),
  ],
  "a new deadline": [
    "deadlines",
    (store) => store.create({ id: "b", function: "g", deadline: 500 }),
  ],
};

const ofAnn = { holder: ann, lease: 500 };

type SetTimer = (store: Executions) => Promise<unknown>;

function timerTests(fixture: InFixture): void {
  test.each(Object.entries(timersSet))(
    "[R6] hears of %s, and finds it at its instant and not a millisecond before",
    (_, [kind, set]) =>
      fixture(async ({ database, watched, clock }) => {
        const store = executions(database, { clock });
        await store.create({ id: "a", function: "f", deadline: 60_000 });
        await store.create({ id: "due", function: "due" });
        await store.create({ id: "paused", function: "f" });
        await store.append("paused", 1, [delayRequested("Delay_paused.o:1_1", 1_500)]);
        await store.pauseDelay("Delay_paused.o:1_1");
        expect(await store.nextTimerAt()).toBe(61_000);
        const waiting = store.waitForTimer({ timeout });
        await watched.asleep();
        await set(store);
        await watched.asleep();
        expect(await store.nextTimerAt()).toBe(1_500);
        clock.set(1_499);
        expect(await isOpen(waiting)).toBe(true);
        const nothing = { delays: 0, locks: 0, deadlines: 0 };
        expect(await store.expireTimers()).toMatchObject(nothing);
        clock.advance(1);
        await waiting;
        expect(await store.expireTimers()).toMatchObject({
          ...nothing,
          [kind]: 1,
        });
      })(),
  );

  test(
    "ends when as much has passed as the leeway lets pass, so that there is something to do then",
    fixture(async ({ database, watched, clock }) => {
      const store = executions(database, { clock });
      const leeway = "500ms";
      await store.create({ id: "a", function: "f", deadline: 1_000 });
      const waiting = store.waitForTimer({ leeway, timeout });
      await watched.asleep();
      clock.advance(1_499);
      expect(await isOpen(waiting)).toBe(true);
      expect((await store.expireTimers({ leeway })).deadlines).toBe(0);
      clock.advance(1);
      await waiting;
      expect((await store.expireTimers({ leeway })).deadlines).toBe(1);
    }),
  );
}

function responseTests(fixture: InFixture): void {
  test(
    "[E80] gives those after the cursor that are there already",
    fixture(async ({ database }) => {
      await create(database, "a");
      for (const key of ["one", "two", "three"])
        await database.write("signal", () => sendSignal("a", key));
      const found = await executions(database).waitForResponses("a", 1, {
        timeout: 0,
      });
      expect(found).toEqual([
        {
          seq: 2,
          at: 0,
          response: {
            kind: "signal",
            signal: "go",
            signalKey: "two",
            value: "two",
          },
        },
        {
          seq: 3,
          at: 0,
          response: {
            kind: "signal",
            signal: "go",
            signalKey: "three",
            value: "three",
          },
        },
      ]);
    }),
  );

  test(
    "[E80] ends when a new one comes, for every waiter, and not for another execution",
    fixture(async ({ database, watched }) => {
      await create(database, "a");
      await create(database, "b");
      const waits = [0, 1].map(() => executions(database).waitForResponses("a", 0, { timeout }));
      await watched.asleep();
      await database.write("signal", () => sendSignal("b", "other"));
      expect(await isOpen(Promise.race(waits))).toBe(true);
      await database.write("signal", () => sendSignal("a", "mine"));
      for (const found of await Promise.all(waits))
        expect(found.map(({ seq }) => seq)).toEqual([1]);
    }),
  );

  test(
    "[E80] ends in vain when none comes in time",
    fixture(async ({ database, watched, clock }) => {
      await create(database, "a");
      await database.write("signal", () => sendSignal("a", "seen"));
      const waiting = rejection(executions(database).waitForResponses("a", 1, { timeout: "1s" }));
      await watched.asleep();
      clock.advance(1_000);
      expect(await waiting).toMatchObject({ code: "DEADLINE_EXCEEDED" });
    }),
  );

  test(
    "[E80] two responses committed together come together, none is lost and stored order is kept",
    fixture(async ({ database, watched }) => {
      await create(database, "a");
      const waiting = executions(database).waitForResponses("a", 0, {
        timeout,
      });
      await watched.asleep();
      await database.write("both", function* () {
        yield* sendSignal("a", "first");
        yield* sendSignal("a", "second");
      });
      expect(signalKeys(await waiting)).toEqual(["first", "second"]);
    }),
  );

  test(
    "[E80] of responses committed at once by several none is lost, whatever hint came first",
    fixture(async ({ database }) => {
      await create(database, "a");
      const keys = Array.from({ length: 20 }, (_, index) => `k${index}`);
      const sent = Promise.all(
        keys.map((key) => database.write("signal", () => sendSignal("a", key))),
      );
      const seen: number[] = [];
      const heard: string[] = [];
      while (heard.length < 20) {
        const found = await executions(database).waitForResponses("a", seen.at(-1) ?? 0, {
          timeout,
        });
        seen.push(...found.map(({ seq }) => seq));
        heard.push(...signalKeys(found));
      }
      await sent;
      expect(seen).toEqual(Array.from({ length: 20 }, (_, i) => i + 1));
      expect(heard.toSorted()).toEqual(keys.toSorted());
    }),
  );

  test(
    "gives a page at most, and refuses an unknown execution",
    fixture(async ({ database }) => {
      await create(database, "a");
      await database.write("many", function* () {
        for (let n = 1; n <= 450; n += 1) yield* sendSignal("a", `k${n}`);
      });
      const found = await executions(database).waitForResponses("a", 5);
      expect(found).toHaveLength(200);
      expect(found.at(-1)?.seq).toBe(205);
      expect(await executions(database).waitForResponses("a", 405)).toHaveLength(45);
      expect(await rejection(executions(database).waitForResponses("none", 0))).toMatchObject({
        code: "EXECUTION_NOT_FOUND",
        details: { id: "none" },
      });
    }),
  );
}

function signalKeys(found: readonly LoggedResponse<unknown>[]): readonly string[] {
  return found.flatMap(({ response }) => (response.kind === "signal" ? response.signalKey : []));
}

function resultTests(fixture: InFixture): void {
  const done = { kind: "completed", value: "done" };

  test(
    "[E81] several waiters get the value, whether they came before or after the end",
    fixture(async ({ database, watched }) => {
      await create(database, "a");
      const early = [0, 1, 2].map(() => executions(database).waitForResult("a", { timeout }));
      await watched.asleep();
      await finish(database, "a");
      expect(await Promise.all(early)).toEqual([done, done, done]);
      expect(await executions(database).waitForResult("a")).toEqual(done);
    }),
  );

  test(
    "[E81] an execution that has finished wins against a timeout that is over",
    fixture(async ({ database }) => {
      await create(database, "a");
      expect(
        await rejection(executions(database).waitForResult("a", { timeout: 0 })),
      ).toMatchObject({
        code: "DEADLINE_EXCEEDED",
        details: { timeoutMs: 0 },
      });
      await finish(database, "a");
      expect(await executions(database).waitForResult("a", { timeout: 0 })).toEqual(done);
    }),
  );

  test(
    "[E81] an unknown execution is refused, not waited for",
    fixture(async ({ database }) => {
      expect(await rejection(executions(database).waitForResult("none"))).toMatchObject({
        code: "EXECUTION_NOT_FOUND",
        details: { id: "none" },
      });
    }),
  );

  test(
    "[E81] many at once get what each would alone, by few reads",
    fixture(async ({ database, watched }) => {
      const ids = Array.from({ length: 300 }, (_, index) => `run-${index}`);
      const large = "x".repeat(10_000);
      await Promise.all(ids.map((id) => create(database, id)));
      await create(database, "large");
      await finish(database, "large", large);
      await create(database, "damaged");
      await finish(database, "damaged");
      await database.write("damage", () =>
        run(sql`DELETE FROM holdfast_execution_event WHERE version = 1 AND execution = (
          SELECT key FROM holdfast_execution WHERE id = 'damaged')`),
      );
      await finish(database, "run-7");
      const store = executions(database);
      const before = watched.reads;
      const all = ids.map((id) => store.waitForResult(id, { timeout }));
      const [found, missing, damaged] = await Promise.all([
        store.waitForResult("large"),
        rejection(store.waitForResult("none")),
        rejection(store.waitForResult("damaged")),
      ]);
      expect(found).toEqual({ kind: "completed", value: large });
      expect(missing.code).toBe("EXECUTION_NOT_FOUND");
      expect(damaged.code).toBe("CORRUPT_ROW");
      expect(await all[7]).toEqual(done);
      await watched.asleep();
      // Two pages of at most 256, three that are read alone, and a look or two for hints that come late.
      expect(watched.reads - before).toBeLessThan(20);
      await Promise.all(ids.filter((id) => id !== "run-7").map((id) => finish(database, id)));
      expect(await Promise.all(all)).toEqual(ids.map(() => done));
    }),
  );

  test(
    "what else happens to the execution does not end it",
    fixture(async ({ database, watched }) => {
      await create(database, "a");
      const waiting = executions(database).waitForResult("a", { timeout });
      await watched.asleep();
      await database.write("signal", () => sendSignal("a", "one"));
      expect(await isOpen(waiting)).toBe(true);
      await finish(database, "a");
      expect(await waiting).toEqual({ ...done, unread: 1 });
    }),
  );
}
