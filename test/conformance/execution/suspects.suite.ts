import { describe, expect, test } from "vitest";
import { parseExecutionId } from "../../../src/model/ids/execution-id.ts";
import { executionContext } from "../../../src/stores/execution/context.ts";
import { releaseExecution } from "../../../src/stores/execution/timers/release.ts";
import type { LockPendingOptions } from "../../../src/stores/execution/lock/lock-pending.ts";
import { row, run } from "../../../src/sql/operation.ts";
import { sql } from "../../../src/sql/statement.ts";
import { rejection, type Backend } from "../backend.ts";
import { step } from "./execution-events.ts";
import {
  T0,
  ann,
  annLater,
  bob,
  byAnn,
  byBob,
  dump,
  logOf,
  onExecutions,
  standing,
  stateOfExecution,
  type ExecutionFixture,
} from "./fixture.ts";

/** Retried at once, so that the clock need not be moved between deaths. */
const atOnce = { maxRetries: null, backoffMs: 0, backoffMaxMs: 0 };

/** The process that holds a run dies. */
async function die({ database, clock }: ExecutionFixture, id: string): Promise<string> {
  const { outcome } = await database.write(releaseExecution(executionContext(database)), {
    id: parseExecutionId(id),
    owner: database.owner,
    at: clock.now(),
    random: 0,
  });
  return outcome;
}

async function locked(
  { store }: ExecutionFixture,
  options: Partial<LockPendingOptions> = {},
): Promise<readonly string[]> {
  const outcome = await store.lockPending({
    ...byAnn,
    functions: [{ name: "f", retry: atOnce }],
    limit: 10,
    suspects: "none",
    ...options,
  });
  return outcome.locked.map(({ id }) => id);
}

/** A run of "f" that a number of processes have died beside. */
async function diedBeside(
  fixture: ExecutionFixture,
  id: string,
  deaths: number,
  role: "workflow" | "activity" = "workflow",
): Promise<void> {
  const { store } = fixture;
  await store.create({ id, function: "f", role });
  for (let death = 0; death < deaths; death += 1) {
    const { nextVersion } = await store.get(id);
    await store.lock(id, nextVersion, { ...byAnn, retry: atOnce });
    expect(await die(fixture, id)).toBe("released");
  }
}

const alone = { suspects: "alone" } as const;

async function keyOf({ database }: ExecutionFixture, id: string): Promise<number> {
  const found = await database.read("keyOf", () =>
    row<{ key: number }>(sql`SELECT key FROM holdfast_execution WHERE id = ${id}`),
  );
  return found?.key ?? 0;
}

/** The states that the two counts of deaths are in. */
async function deathsOf({ database }: ExecutionFixture, id: string): Promise<readonly number[]> {
  const { deaths, aloneDeaths, failures } = await stateOfExecution(database, id);
  return [deaths, aloneDeaths, failures];
}

export function executionSuspectsSuite(backend: Backend): void {
  describe("a suspect, which three processes died of or beside", () => {
    taking(backend);
    convicting(backend);
    clearing(backend);
  });
}

function taking(backend: Backend): void {
  test(
    "is skipped by ordinary locks, and the callers are told that there is one",
    onExecutions(backend, async (fixture) => {
      await diedBeside(fixture, "two", 2);
      await diedBeside(fixture, "three", 3);
      const options = { ...byBob, functions: ["f"], limit: 10, suspects: "none" } as const;
      const first = await fixture.store.lockPending(options);
      expect(first.locked.map(({ id, isAlone }) => [id, isAlone])).toEqual([["two", false]]);
      expect(first.hasSuspects).toBe(true);
      const again = await fixture.store.lockPending(options);
      expect([again.locked, again.hasSuspects]).toEqual([[], true]);
      expect(await fixture.store.lockPending({ ...options, functions: ["g"] })).toMatchObject({
        hasSuspects: false,
      });
    }),
  );

  test(
    "is told of while it is due and was not locked",
    onExecutions(backend, async (fixture) => {
      for (const id of ["a", "b"]) await diedBeside(fixture, id, 3);
      const options = { ...byBob, functions: ["f"], limit: 10, ...alone };
      for (const [id, hasSuspects] of [
        ["a", true],
        ["b", false],
      ])
        expect(await fixture.store.lockPending(options)).toMatchObject({
          locked: [{ id }],
          hasSuspects,
        });
    }),
  );

  test(
    "is locked alone, that with most deaths first, and nothing beside it",
    onExecutions(backend, async (fixture) => {
      const { store, database } = fixture;
      await diedBeside(fixture, "a", 3);
      await diedBeside(fixture, "b", 5, "activity");
      await store.create({ id: "fresh", function: "f" });
      expect(await locked(fixture, alone)).toEqual(["b"]);
      expect((await standing(fixture, "b")).pending).toEqual({
        kind: "locked",
        holder: { ...ann, owner: database.owner },
        leaseUntil: T0 + 1_000,
        lockVersion: 11,
        isAlone: true,
      });
      expect((await logOf(fixture, "b")).at(-1)).toMatchObject([11, "locked", { alone: true }]);
      expect(await locked(fixture, { ...alone, holder: bob })).toEqual(["a"]);
      expect(await locked(fixture, alone)).toEqual(["fresh"]);
      expect(await locked(fixture, alone)).toEqual([]);
    }),
  );

  test(
    "is locked beside other work, one in each call, when it has been due for a minute",
    onExecutions(backend, async (fixture) => {
      const { clock, store } = fixture;
      for (const id of ["a", "b"]) await diedBeside(fixture, id, 3);
      await store.create({ id: "fresh", function: "f" });
      clock.advance(59_999);
      const overdue = { suspects: "overdue" } as const;
      expect(await locked(fixture, { ...overdue, limit: 1 })).toEqual(["fresh"]);
      expect(await locked(fixture, overdue)).toEqual([]);
      clock.advance(1);
      expect(await locked(fixture)).toEqual([]);
      expect(await locked(fixture, overdue)).toEqual(["a"]);
      expect((await standing(fixture, "a")).pending).toMatchObject({ isAlone: false });
      expect(await locked(fixture, overdue)).toEqual(["b"]);
    }),
  );

  test(
    "waits for its time, its code version and a place within the limits of its function",
    onExecutions(backend, async (fixture) => {
      const { store, clock } = fixture;
      const limited = { functions: [{ name: "f", concurrencyMax: 1, perKeyMax: 1 }], ...alone };
      await diedBeside(fixture, "a", 3);
      await store.create({ id: "other", function: "f" });
      const other = await store.lock("other", 1, byBob);
      expect(await locked(fixture, limited)).toEqual([]);
      await store.unlock("other", other.nextVersion, { holder: bob, reason: "done", after: 9_000 });
      expect(await locked(fixture, limited)).toEqual(["a"]);
      const { nextVersion } = await store.get("a");
      const parked = { kind: "parked", code: "NO", reason: "no", codeVersion: "v1" } as const;
      await store.append("a", nextVersion, [parked], { fence: ann });
      clock.advance(70_000);
      expect(await locked(fixture, { ...alone, codeVersion: "v1" })).toEqual(["other"]);
      expect(await locked(fixture, { ...alone, codeVersion: "v2" })).toEqual(["a"]);
    }),
  );

  test(
    "is found behind any hundreds that this code version, or a full key, may not run",
    onExecutions(backend, async (fixture) => {
      const { store, database } = fixture;
      for (let n = 0; n < 250; n += 1)
        await store.create({ id: `other-${n}`, function: "f", concurrencyKey: "full" });
      await store.create({ id: "holds", function: "f", concurrencyKey: "full" });
      await store.lock("holds", 1, { ...byBob, lease: "1 hour" });
      const makeSuspects = (incompatible: string | null): Promise<unknown> =>
        database.write("makeSuspects", () =>
          run(sql`UPDATE holdfast_execution SET deaths = 9, incompatible = ${incompatible}
            WHERE state = 'pending' AND id <> 'a'`),
        );
      const limited = { functions: [{ name: "f", perKeyMax: 1, retry: atOnce }], ...alone };
      await makeSuspects(null);
      await diedBeside(fixture, "a", 3);
      await store.waitForPending(limited.functions, { ...alone, timeout: 0 });
      expect(await locked(fixture, limited)).toEqual(["a"]);
      await die(fixture, "a");
      await makeSuspects('["v1"]');
      expect(await locked(fixture, { ...alone, codeVersion: "v1" })).toEqual(["a"]);
    }),
  );

  test(
    "is waited for by callers that may take it",
    onExecutions(backend, async (fixture) => {
      const { store, clock } = fixture;
      await diedBeside(fixture, "a", 3);
      const waited = (suspects: "alone" | "overdue" | "none"): Promise<unknown> =>
        store.waitForPending(["f"], { suspects, timeout: 0 }).then(
          () => "there",
          ({ code }: { code: string }) => code,
        );
      expect(await waited("alone")).toBe("there");
      expect(await waited("overdue")).toBe("DEADLINE_EXCEEDED");
      expect(await waited("none")).toBe("DEADLINE_EXCEEDED");
      const later = store.waitForPending(["f"]);
      clock.advance(60_000);
      await later;
      expect(await waited("none")).toBe("DEADLINE_EXCEEDED");
    }),
  );

  test(
    "is not waited for while it has no place, also at the very instant at which it is due",
    onExecutions(backend, async (fixture) => {
      const { store } = fixture;
      await diedBeside(fixture, "a", 3);
      expect((await standing(fixture, "a")).pending).toMatchObject({ dueAt: T0 });
      await store.create({ id: "b", function: "f" });
      await store.lock("b", 1, byBob);
      const functions = [{ name: "f", concurrencyMax: 1 }];
      const options = { suspects: "alone", timeout: 0 } as const;
      const error = await rejection(store.waitForPending(functions, options));
      expect(error).toMatchObject({ code: "DEADLINE_EXCEEDED" });
      await store.unlock("b", 2, { holder: byBob.holder, reason: "closed", after: "1 day" });
      await store.waitForPending(functions, options);
    }),
  );

  test(
    "is taken as told, and nothing else is: hostile options are refused and write nothing",
    onExecutions(backend, async (fixture) => {
      await diedBeside(fixture, "a", 3);
      const before = await dump(fixture);
      for (const suspects of ["ALONE", "", null, true, 3, {}, []])
        for (const call of [
          () => locked(fixture, { suspects: suspects as never }),
          () => fixture.store.waitForPending(["f"], { suspects: suspects as never }),
        ])
          expect((await rejection(call())) as { code?: string }).toMatchObject({
            code: "OPTION_INVALID",
          });
      for (const beside of ["yes", null, 1])
        expect(
          (await rejection(fixture.store.renew([], { ...byAnn, beside: beside as never }))) as {
            code?: string;
          },
        ).toMatchObject({ code: "OPTION_INVALID" });
      expect(await dump(fixture)).toEqual(before);
    }),
  );
}

function convicting(backend: Backend): void {
  test.each(["workflow", "activity"] as const)(
    "is parked after five deaths alone, of an %s, and unparked begins with none",
    (role) =>
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await diedBeside(fixture, "a", 4, role);
        for (let death = 1; death <= 5; death += 1) {
          expect((await standing(fixture, "a")).lifecycle).toBe("active");
          expect(await locked(fixture, alone)).toEqual(["a"]);
          expect(await die(fixture, "a")).toBe(death < 5 ? "released" : "parked");
          expect(await deathsOf(fixture, "a")).toEqual([4 + death, death, 0]);
        }
        expect(await standing(fixture, "a")).toMatchObject({
          lifecycle: "parked",
          pending: { kind: "pending", leaseUntil: null },
        });
        expect((await logOf(fixture, "a")).slice(-2)).toMatchObject([
          [18, "ownerDied", { counts: "aloneDeath" }],
          [19, "parked", { code: "RUN_KEEPS_KILLING_WORKERS", codeVersion: null }],
        ]);
        expect(await locked(fixture, { ...alone, codeVersion: "v9" })).toEqual([]);
        await store.unpark("a");
        expect(await deathsOf(fixture, "a")).toEqual([0, 0, 0]);
        expect(await locked(fixture)).toEqual(["a"]);
      })(),
  );

  test(
    "is parked when its lock alone ran out five times",
    onExecutions(backend, async (fixture) => {
      const { store, clock } = fixture;
      await diedBeside(fixture, "a", 3, "activity");
      for (let death = 1; death <= 5; death += 1) {
        expect(await locked(fixture, alone)).toEqual(["a"]);
        clock.advance(1_000);
        const { locks, parked } = await store.expireTimers();
        expect([locks, parked.length]).toEqual([1, death < 5 ? 0 : 1]);
      }
      expect((await logOf(fixture, "a")).slice(-2)).toMatchObject([
        [16, "attemptTimedOut", { counts: "aloneDeath" }],
        [17, "parked", { code: "RUN_KEEPS_KILLING_WORKERS" }],
      ]);
    }),
  );

  test(
    "is not convicted by a death beside other work: overdue, or renewed so",
    onExecutions(backend, async (fixture) => {
      const { store, clock } = fixture;
      await diedBeside(fixture, "a", 3);
      for (let death = 1; death <= 4; death += 1) {
        await locked(fixture, alone);
        await die(fixture, "a");
      }
      expect(await deathsOf(fixture, "a")).toEqual([7, 4, 0]);
      clock.advance(60_000);
      expect(await locked(fixture, { suspects: "overdue" })).toEqual(["a"]);
      expect(await die(fixture, "a")).toBe("released");
      expect(await locked(fixture, alone)).toEqual(["a"]);
      const key = await keyOf(fixture, "a");
      await store.renew([{ id: "a", key }], byAnn);
      expect((await standing(fixture, "a")).pending).toMatchObject({ isAlone: true });
      await store.renew([{ id: "a", key }], { ...byAnn, beside: true });
      expect((await standing(fixture, "a")).pending).toMatchObject({ isAlone: false });
      expect(await die(fixture, "a")).toBe("released");
      expect(await deathsOf(fixture, "a")).toEqual([9, 4, 0]);
    }),
  );

  test(
    "does not count a lock that ran out while its worker renewed others",
    onExecutions(backend, async (fixture) => {
      const { store, clock } = fixture;
      await diedBeside(fixture, "a", 3);
      await store.create({ id: "other", function: "f" });
      expect(await locked(fixture)).toEqual(["other"]);
      expect(await locked(fixture, alone)).toEqual(["a"]);
      const key = await keyOf(fixture, "other");
      clock.advance(600);
      await store.renew([{ id: "other", key }], byAnn);
      clock.advance(400);
      expect((await store.expireTimers()).locks).toBe(1);
      expect((await logOf(fixture, "a")).at(-1)).toMatchObject([
        8,
        "attemptTimedOut",
        { counts: "nothing" },
      ]);
      expect(await deathsOf(fixture, "a")).toEqual([3, 0, 0]);
    }),
  );

  test.each([
    [500, 1],
    [501, 0],
  ])(
    "counts a lock that ran out unless another of its worker's lasts half a lease longer: %i ms of 1,000",
    (longerMs, deaths) =>
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        for (const id of ["a", "other"]) await store.create({ id, function: "f" });
        await store.lock("a", 1, { ...byAnn, retry: atOnce });
        clock.advance(longerMs);
        await store.lock("other", 1, byAnn);
        clock.set(T0 + 1_000);
        expect((await store.expireTimers()).locks).toBe(1);
        expect(await deathsOf(fixture, "a")).toEqual([deaths, 0, 0]);
      })(),
  );

  test(
    "counts a lock that ran out when only another round of its executor renewed",
    onExecutions(backend, async (fixture) => {
      const { store, clock } = fixture;
      await diedBeside(fixture, "a", 1);
      await store.create({ id: "other", function: "f" });
      await store.lock("other", 1, { holder: annLater, lease: 9_000 });
      expect(await locked(fixture)).toEqual(["a"]);
      clock.advance(1_000);
      await store.expireTimers();
      expect(await deathsOf(fixture, "a")).toEqual([2, 0, 0]);
    }),
  );
}

function clearing(backend: Backend): void {
  test(
    "is none any more when it records something, and what others do to it is nothing of its own",
    onExecutions(backend, async (fixture) => {
      const { store } = fixture;
      await diedBeside(fixture, "a", 3);
      await locked(fixture, alone);
      await store.pause("a");
      await die(fixture, "a");
      expect(await deathsOf(fixture, "a")).toEqual([4, 1, 0]);
      await store.unpause("a");
      await locked(fixture, alone);
      await store.append("a", (await store.get("a")).nextVersion, [step("s")], { fence: ann });
      expect(await deathsOf(fixture, "a")).toEqual([0, 0, 0]);
      await store.pause("a");
      expect(await die(fixture, "a")).toBe("released");
      expect((await logOf(fixture, "a")).at(-1)).toMatchObject([
        14,
        "ownerDied",
        { counts: "nothing" },
      ]);
      await store.unpause("a");
      expect(await locked(fixture)).toEqual(["a"]);
    }),
  );

  test(
    "is none any more when an attempt of it ends by itself, which uses up the first of its retries",
    onExecutions(backend, async (fixture) => {
      const { store, clock } = fixture;
      await diedBeside(fixture, "a", 3, "activity");
      await locked(fixture, alone);
      const { nextVersion } = await store.get("a");
      const failed = { kind: "attemptFailed", dueAt: clock.now(), error: "no" } as const;
      await store.append("a", nextVersion, [failed], { fence: ann });
      expect(await deathsOf(fixture, "a")).toEqual([0, 0, 1]);
      const { locked: again } = await store.lockPending({ ...byBob, functions: ["f"], limit: 1 });
      expect(again).toMatchObject([{ id: "a", attempt: 5, failures: 1, deaths: 0 }]);
    }),
  );

  test(
    "begins with none as a fork, as a retry, and with a new pass",
    onExecutions(backend, async (fixture) => {
      const { store } = fixture;
      await diedBeside(fixture, "a", 3);
      const fork = await store.fork("a", 0, { id: "fork" });
      expect(await deathsOf(fixture, fork.id)).toEqual([0, 0, 0]);
      await locked(fixture, alone);
      const { nextVersion } = await store.get("a");
      await store.append("a", nextVersion, [{ kind: "continued", input: 1 }], { fence: ann });
      expect(await deathsOf(fixture, "a")).toEqual([0, 0, 0]);
      await store.finish("a", nextVersion + 1, {
        kind: "failed",
        error: { name: "E", message: "" },
      });
      const retry = await store.retry("a", { id: "retry" });
      expect(await deathsOf(fixture, retry.id)).toEqual([0, 0, 0]);
    }),
  );

  test(
    "keeps its deaths when it is cancelled, and those alone are counted anew for its cleanup",
    onExecutions(backend, async (fixture) => {
      const { store } = fixture;
      await diedBeside(fixture, "a", 3);
      await locked(fixture, alone);
      await die(fixture, "a");
      await store.create({ id: "a.n:x_1", function: "g" });
      expect(await store.cancel("a")).toBe("requested");
      expect(await deathsOf(fixture, "a")).toEqual([4, 0, 0]);
      for (let death = 1; death <= 6; death += 1) {
        expect(await locked(fixture, alone)).toEqual(["a"]);
        expect(await die(fixture, "a")).toBe("released");
      }
      expect(await deathsOf(fixture, "a")).toEqual([10, 6, 0]);
    }),
  );
}
