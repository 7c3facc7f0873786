import { describe, expect, test } from "vitest";
import type { GivenEvent } from "../../../src/model/execution/given-event.ts";
import { activity, workflow } from "../../../src/runtime/definition/definitions.ts";
import type { Holdfast } from "../../../src/runtime/client/holdfast.ts";
import { manualClock } from "../../../src/model/time/clock.ts";
import { unlimitedRetryPolicy } from "../../../src/model/time/retry-policy.ts";
import { byAnn, T0 } from "../execution/fixture.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { onRuntime } from "./fixture.ts";
import { Meddling } from "./meddling.ts";
import { sql } from "../../../src/sql/statement.ts";
import { pastChecks } from "../past-checks.ts";
import { sleepAsked, stepDone } from "./recorded-run.ts";
import { kindsOf, Tally, until } from "./waiting.ts";

/** Nobody's function: who serves it lets time pass for all. */
const idle = workflow("idle", async () => undefined);

/** A worker that runs nothing else takes a run with a lease of a second, and is not heard of again. */
export async function taken(
  { executions }: Holdfast,
  name: string,
  maxRetries: number | null,
): Promise<string> {
  const { locked } = await executions.lockPending({
    ...byAnn,
    functions: [{ name, retry: { ...unlimitedRetryPolicy, maxRetries, backoffMs: 300 } }],
    limit: 1,
    suspects: "alone",
  });
  return locked[0]?.id ?? "none was due";
}

/** When the last event says that its run is due again. */
async function lastDueAt({ executions }: Holdfast, id: string) {
  const { event } = await executions.lastEvent(id);
  return (event as { dueAt: number }).dueAt;
}

function isWithinQuarterOf(pauseMs: number, dueAt: number, at: number): void {
  expect(dueAt - at).toBeLessThanOrEqual(pauseMs);
  expect(dueAt - at).toBeGreaterThanOrEqual(pauseMs * 0.75);
}

/** Workers that stop without a word, and those whose death is proven. */
export function runtimeExpirySuite(backend: Backend): void {
  describe("a worker that is not heard of again", () => {
    silentTests(backend);
  });
  describe("a worker whose process has died", () => {
    deathTests(backend);
  });
  describe("a sleep", () => {
    damageTests(backend);
    sleepTests(backend);
  });
}

function silentTests(backend: Backend): void {
  test(
    "[E52] with a child that has no retries: it has timed out when its lease ends, and its parent is answered",
    onRuntime(backend, async ({ another }) => {
      const clock = manualClock(T0);
      const holdfast = await another({ clock });
      const child = activity("child", async () => "never asked here");
      const parent = workflow("parent", async (ctx) => {
        const error = await rejection(ctx.call(child));
        return `${error.name} ${(error as { kind?: string }).kind}`;
      });
      await holdfast.work([parent]);
      const run = await holdfast.start(parent);
      await until(async () => (await run.status()) === "blocked");
      const id = await taken(holdfast, "child", 0);
      clock.advance(1_000);
      expect(await run.result()).toBe("RunFailedError timedOut");
      expect(await kindsOf(holdfast, id)).toEqual(["created", "locked", "finished"]);
    }),
  );

  test(
    "[E53] its attempt has timed out and uses up no retry; the next waits its pause, and an activity without retries has timed out",
    onRuntime(backend, async ({ another }) => {
      const clock = manualClock(T0);
      const holdfast = await another({ clock });
      const hangs = activity("hangs", async () => undefined);
      await holdfast.work([idle]);
      const run = await holdfast.start(hangs);
      expect(await taken(holdfast, "hangs", 1)).toBe(run.id);
      clock.advance(1_000);
      await until(async () => (await kindsOf(holdfast, run.id)).includes("attemptTimedOut"));
      const dueAt = await lastDueAt(holdfast, run.id);
      isWithinQuarterOf(300, dueAt, clock.now());
      const { pending, failures, deaths } = (await holdfast.executions.get(run.id)).state;
      expect(pending).toMatchObject({
        kind: "pending",
        dueAt,
        lastLock: byAnn.holder,
      });
      expect([failures, deaths]).toEqual([0, 1]);
      expect(await taken(holdfast, "hangs", 1)).toBe("none was due");
      clock.set(dueAt);
      expect(await taken(holdfast, "hangs", 0)).toBe(run.id);
      clock.advance(1_000);
      expect(await rejection(run.result())).toMatchObject({ kind: "timedOut" });
    }),
  );

  test(
    "[E53] an attempt that hangs on a living worker ends with its timeout, and its code is told to stop",
    onRuntime(backend, async ({ another }) => {
      const clock = manualClock(T0);
      const holdfast = await another({ clock });
      const reasons: string[] = [];
      const tally = new Tally();
      const hangs = activity(
        "hangs",
        { timeout: 500, retry: { maxRetries: 1, backoff: 300 } },
        ({ abortSignal }) => {
          tally.count("attempt");
          abortSignal.addEventListener("abort", () =>
            reasons.push((abortSignal.reason as { code: string }).code),
          );
          return new Promise<void>(() => undefined);
        },
      );
      await holdfast.work([hangs]);
      const run = await holdfast.start(hangs);
      await until(() => tally.of("attempt") === 1);
      clock.advance(500);
      await until(async () => (await kindsOf(holdfast, run.id)).includes("attemptFailed"));
      const dueAt = await lastDueAt(holdfast, run.id);
      isWithinQuarterOf(300, dueAt, clock.now());
      clock.set(dueAt);
      await until(() => tally.of("attempt") === 2);
      clock.advance(500);
      const error = await rejection(run.result());
      expect(error).toMatchObject({ kind: "failed" });
      expect(error.cause).toMatchObject({ code: "ATTEMPT_TIMED_OUT" });
      expect(reasons).toEqual(["ATTEMPT_TIMED_OUT", "ATTEMPT_TIMED_OUT"]);
    }),
  );

  test(
    "[E55] a workflow that had got further goes on at once and nothing is counted; otherwise the attempt has timed out",
    onRuntime(backend, async ({ another }) => {
      const clock = manualClock(T0);
      const holdfast = await another({ clock });
      const tally = new Tally();
      const name = "two";
      const two = workflow(name, async (ctx) => {
        const a = await ctx.step("a", () => tally.count("a") + 100);
        return a + (await ctx.step("b", () => tally.count("b")));
      });
      const further = await holdfast.start(two, undefined, { id: "further" });
      expect(await taken(holdfast, name, null)).toBe("further");
      await holdfast.executions.append("further", 2, [stepDone(1, "a", 10)], {
        fence: byAnn.holder,
      });
      const still = await holdfast.start(two, undefined, { id: "still" });
      expect(await taken(holdfast, name, null)).toBe("still");
      clock.advance(1_000);
      await holdfast.work([two]);
      expect(await further.result()).toBe(11);
      expect(tally.all).toEqual({ b: 1 });
      const events = await further.events();
      expect(events.items.find(({ event }) => event.kind === "unlocked")).toMatchObject({
        at: clock.now(),
        event: { dueAt: clock.now() },
      });
      expect((await holdfast.executions.get("further")).state.failures).toBe(0);
      await until(async () => (await kindsOf(holdfast, "still")).includes("attemptTimedOut"));
      const dueAt = await lastDueAt(holdfast, "still");
      isWithinQuarterOf(300, dueAt, clock.now());
      clock.set(dueAt);
      expect(await still.result()).toBe(103);
    }),
  );
}

function deathTests(backend: Backend): void {
  test(
    "[E52] [E53] for an activity that is an attempt: made again after its pause, using up no retry, or failed without retries",
    onRuntime(backend, async ({ database, another }) => {
      const clock = manualClock(T0);
      const meddling = new Meddling(database);
      const holdfast = await another({ clock }, meddling.database);
      const again = activity("again", async ({ attempt }) => attempt);
      const once = activity("once", async ({ attempt }) => attempt);
      const retried = await holdfast.start(again);
      const failed = await holdfast.start(once);
      await taken(holdfast, "again", 1);
      await taken(holdfast, "once", 0);
      meddling.liveness = "dead";
      await holdfast.work([again, once]);
      const error = await rejection(failed.result());
      expect(error).toMatchObject({ kind: "failed" });
      expect(error.message).toContain("died");
      const { event } = await holdfast.executions.lastEvent(retried.id);
      expect(event).toMatchObject({ kind: "ownerDied", counts: "death" });
      const dueAt = await lastDueAt(holdfast, retried.id);
      isWithinQuarterOf(300, dueAt, T0);
      clock.set(dueAt);
      expect(await retried.result()).toBe(2);
    }),
  );

  test(
    "[E55] for a workflow it is free after progress; without any it waits, and at the fifth time alone it is parked",
    onRuntime(backend, async ({ database, another, said }) => {
      const clock = manualClock(T0);
      const meddling = new Meddling(database);
      meddling.liveness = "dead";
      const holdfast = await another({ clock }, meddling.database);
      const { executions } = holdfast;
      const one = workflow("one", async (ctx) => ctx.step("a", () => 1));
      await holdfast.start(one, undefined, { id: "further" });
      expect(await taken(holdfast, "one", null)).toBe("further");
      await executions.append("further", 2, [stepDone(1, "a", 10)], {
        fence: byAnn.holder,
      });
      await executions.releaseDead();
      expect((await executions.lastEvent("further")).event).toMatchObject({
        kind: "ownerDied",
        counts: "nothing",
        dueAt: T0,
      });
      await holdfast.get(one, "further").pause();
      const run = await holdfast.start(one, undefined, { id: "deadly" });
      for (const pauseMs of [300, 600, 1_200, 2_400, 4_800, 9_600, 19_200]) {
        expect(await taken(holdfast, "one", null)).toBe("deadly");
        await executions.releaseDead();
        const dueAt = await lastDueAt(holdfast, "deadly");
        isWithinQuarterOf(pauseMs, dueAt, clock.now());
        clock.set(dueAt);
      }
      expect(await taken(holdfast, "one", null)).toBe("deadly");
      await executions.releaseDead();
      expect(await run.status()).toBe("parked");
      expect((await executions.lastEvent("deadly")).event).toMatchObject({
        code: "RUN_KEEPS_KILLING_WORKERS",
      });
      meddling.liveness = undefined;
      await holdfast.work([one]);
      await run.unpark();
      expect(await run.result()).toBe(1);
      expect(said.filter(({ level }) => level === "error")).toEqual([]);
    }),
  );
}

function damageTests(backend: Backend): void {
  test(
    "timers that nobody can read are not asked for without pause",
    onRuntime(backend, async ({ database, another }) => {
      const clock = manualClock(T0);
      const meddling = new Meddling(database);
      let looks = 0;
      meddling.on("earliestTimer", () => {
        looks += 1;
        return undefined;
      });
      const holdfast = await another({ clock }, meddling.database);
      const { executions } = holdfast;
      await executions.create({ id: "torn", function: "one" });
      expect(await taken(holdfast, "one", null)).toBe("torn");
      await database.write("damage", () =>
        pastChecks(database, sql`UPDATE holdfast_execution SET executor = NULL WHERE id = 'torn'`),
      );
      clock.advance(1_000);
      await holdfast.work([idle]);
      await until(() => looks > 0);
      // A busy loop would ask thousands of times meanwhile.
      for (let turn = 0; turn < 50; turn += 1) await executions.get("torn").catch(() => undefined);
      expect(looks).toBeLessThan(5);
      // It goes on looking, though.
      const before = looks;
      clock.advance(60_000);
      await until(() => looks > before);
    }),
  );
}

function sleepTests(backend: Backend): void {
  const nap = workflow("nap", async (ctx) => {
    await ctx.sleep(5_000);
    return "rested";
  });

  test(
    "[E76] of a run that is forgotten holds nothing; when it is over the run is due at once, for any worker",
    onRuntime(backend, async ({ another }) => {
      const stopped = await another({ clock: manualClock(T0) });
      const clock = manualClock(T0);
      const other = await another({ clock });
      await stopped.work([nap], { hotRunsMax: 0, lease: 10_000 });
      const run = await stopped.start(nap);
      const pendingOf = async () => (await other.executions.get(run.id)).state.pending;
      await until(async () => {
        const pending = await pendingOf();
        return pending.kind === "blocked" && pending.leaseUntil === null;
      });
      clock.advance(5_000);
      expect(await taken(other, "nap", null)).toBe("none was due");
      expect(await other.executions.expireTimers()).toMatchObject({
        delays: 1,
        locks: 0,
        deadlines: 0,
      });
      expect(await pendingOf()).toMatchObject({
        kind: "pending",
        dueAt: T0 + 5_000,
      });
      await other.work([nap]);
      expect(await run.result()).toBe("rested");
      const { items } = await run.events({ kinds: ["locked"] });
      const holders = items.map(({ event }) => (event as { holder: { run: string } }).holder.run);
      expect(new Set(holders).size).toBe(2);
    }),
  );

  test(
    "[E76] of a run that is kept in memory leaves it its lease; when it is over it goes on without another lock",
    onRuntime(backend, async ({ another }) => {
      const clock = manualClock(T0);
      const holdfast = await another({ clock });
      await holdfast.work([nap], { lease: 10_000 });
      const run = await holdfast.start(nap);
      await until(async () => (await run.status()) === "blocked");
      expect((await holdfast.executions.get(run.id)).state.pending).toMatchObject({
        kind: "blocked",
        leaseUntil: T0 + 10_000,
      });
      clock.advance(5_000);
      expect(await run.result()).toBe("rested");
      expect(await kindsOf(holdfast, run.id)).toEqual([
        "created",
        "locked",
        "delayRequested",
        "waiting",
        "finished",
      ]);
    }),
  );

  test(
    "[E76] is not lost with the worker that kept the run: it ends at its time, and another goes on when the lease ends",
    onRuntime(backend, async ({ another }) => {
      const clock = manualClock(T0);
      const holdfast = await another({ clock });
      const { executions } = holdfast;
      await executions.createLocked({ id: "r", function: "nap" }, { ...byAnn, lease: 10_000 });
      await executions.append(
        "r",
        2,
        [
          { ...sleepAsked("r", 1, 5_000), expiresAt: T0 + 5_000 } as GivenEvent,
          { kind: "waiting", runExpiresAt: T0 + 10_000, call: 1 },
        ],
        { fence: byAnn.holder },
      );
      clock.advance(5_000);
      expect(await executions.expireTimers()).toMatchObject({ delays: 1 });
      expect((await executions.get("r")).state.pending).toMatchObject({
        kind: "pending",
        dueAt: T0 + 10_000,
        lastLock: byAnn.holder,
      });
      expect(await executions.expireTimers()).toMatchObject({ locks: 0 });
      await holdfast.work([nap]);
      clock.advance(4_999);
      expect((await kindsOf(holdfast, "r")).at(-1)).toBe("waiting");
      clock.advance(1);
      expect(await holdfast.get(nap, "r").result()).toBe("rested");
      expect(await kindsOf(holdfast, "r")).toEqual([
        "created",
        "locked",
        "delayRequested",
        "waiting",
        "locked",
        "finished",
      ]);
    }),
  );
}
