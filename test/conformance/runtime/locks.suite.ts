import { describe, expect, test } from "vitest";
import { activity, signal, workflow } from "../../../src/runtime/definition/definitions.ts";
import type { Holdfast } from "../../../src/runtime/client/holdfast.ts";
import { manualClock, type ManualClock } from "../../../src/model/time/clock.ts";

import { T0 } from "../execution/fixture.ts";

import type { Backend } from "../backend.ts";
import { onRuntime } from "./fixture.ts";
import { Meddling } from "./meddling.ts";
import { gate, kindsOf, Tally, until } from "./waiting.ts";

const leaseMs = 3_000;

/** When the lease of a run ends, as its row says. */
async function leaseOf({ executions }: Holdfast, id: string): Promise<number | null> {
  const { pending } = (await executions.get(id)).state;
  return pending.kind === "finished" ? null : pending.leaseUntil;
}

/** Lets three leases go by in steps of a renewal; each is renewed, and its worker knows it, before the next passes. */
async function outliveLeases(
  { holdfast, meddling }: Watched,
  id: string,
  clock: ManualClock,
): Promise<void> {
  let renewals = 0;
  meddling.on("renewLeases", async (call) => {
    const answer = await call();
    renewals += 1;
    return answer;
  });
  for (let turn = 1; turn <= 9; turn += 1) {
    clock.advance(leaseMs / 3);
    await until(() => renewals === turn);
    expect(await leaseOf(holdfast, id)).toBe(clock.now() + leaseMs);
  }
}

/** A runtime, and what stands before the database of all who may have its runs. */
interface Watched {
  readonly holdfast: Holdfast;
  readonly meddling: Meddling;
}

export function runtimeLocksSuite(backend: Backend): void {
  describe("a worker whose lock another has taken", () => {
    staleTests(backend);
  });
  describe("a lease", () => {
    leaseTests(backend);
  });
}

/**
 * A worker whose clock stands still, and another whose clock has passed the
 * lease: it takes over, while the first believes to have the lock.
 */
function staleTests(backend: Backend): void {
  test(
    "[RT8] cannot record a step any more, and changes nothing of what the other records",
    onRuntime(backend, async ({ another, said }) => {
      const stale = await another({ clock: manualClock(T0) });
      const clock = manualClock(T0);
      const other = await another({ clock });
      const begun = gate();
      const late = gate();
      const second = gate();
      const both = (isLate: boolean) =>
        workflow("both", async (ctx) => {
          const first = await ctx.step("first", async () => {
            if (!isLate) return "by the other";
            begun.open();
            await late.opened;
            return "too late";
          });
          await ctx.step("second", () => second.opened);
          return first;
        });
      await stale.work([both(true)], { lease: leaseMs });
      const run = await stale.start(both(true), undefined, { id: "r" });
      await begun.opened;
      await other.work([both(false)], { lease: leaseMs });
      clock.advance(leaseMs);
      // Nothing was recorded since the lock: the attempt timed out, and the next has to wait.
      await until(async () => (await kindsOf(other, "r")).includes("attemptTimedOut"));
      clock.advance(200);
      await until(async () => (await kindsOf(other, "r")).includes("stepFinished"));
      const before = await kindsOf(other, "r");
      late.open();
      await until(() => said.some(({ message }) => message.includes("no longer has run")));
      expect(await kindsOf(other, "r")).toEqual(before);
      second.open();
      expect(await run.result()).toBe("by the other");
      const { items } = await other.executions.events("r", {
        kinds: ["stepFinished"],
      });
      expect(items.map(({ event }) => (event as { value: unknown }).value)).toEqual([
        "by the other",
        undefined,
      ]);
    }),
  );

  test(
    "[RT8] cannot end the run, and an activity's late value is not its result",
    onRuntime(backend, async ({ another }) => {
      const stale = await another({ clock: manualClock(T0) });
      const clock = manualClock(T0);
      const other = await another({ clock });
      const begun = gate();
      const late = gate();
      const ended = gate();
      const charge = (isLate: boolean) =>
        activity("charge", { retry: { backoff: 100 } }, async () => {
          if (!isLate) return "by the other";
          begun.open();
          await late.opened;
          ended.open();
          return "too late";
        });
      await stale.work([charge(true)], { lease: leaseMs });
      const run = await stale.start(charge(true));
      await begun.opened;
      await other.work([charge(false)], { lease: leaseMs });
      clock.advance(leaseMs);
      await until(async () => (await kindsOf(other, run.id)).includes("attemptTimedOut"));
      clock.advance(100);
      expect(await run.result()).toBe("by the other");
      const before = await kindsOf(other, run.id);
      late.open();
      await ended.opened;
      await stale.close();
      expect(before).toEqual(["created", "locked", "attemptTimedOut", "locked", "finished"]);
    }),
  );
}

function leaseTests(backend: Backend): void {
  test(
    "[RT9] [E77] is renewed before it ends while a step runs that takes longer, and the run goes on past it",
    onRuntime(backend, async ({ database, another }) => {
      const clock = manualClock(T0);
      const meddling = new Meddling(database);
      const holdfast = await another({ clock }, meddling.database);
      const other = await another({ clock }, meddling.database);
      const tally = new Tally();
      const begun = gate();
      const done = gate();
      const long = workflow("long", async (ctx) =>
        ctx.step("long", async () => {
          tally.count("long");
          begun.open();
          await done.opened;
          return "done";
        }),
      );
      await holdfast.work([long], { lease: leaseMs });
      const run = await holdfast.start(long);
      await other.work([long], { lease: leaseMs });
      await begun.opened;
      expect(await leaseOf(holdfast, run.id)).toBe(T0 + leaseMs);
      await outliveLeases({ holdfast, meddling }, run.id, clock);
      done.open();
      expect(await run.result()).toBe("done");
      expect(tally.of("long")).toBe(1);
      expect(await kindsOf(holdfast, run.id)).toEqual([
        "created",
        "locked",
        "stepFinished",
        "finished",
      ]);
    }),
  );

  test(
    "[RT9] is renewed also when a wait that was kept in memory has ended, and nothing was locked since",
    onRuntime(backend, async ({ database, another }) => {
      const clock = manualClock(T0);
      const meddling = new Meddling(database);
      const holdfast = await another({ clock }, meddling.database);
      const other = await another({ clock }, meddling.database);
      const go = signal("go");
      const tally = new Tally();
      const begun = gate();
      const done = gate();
      const long = workflow("long", async (ctx) => {
        await ctx.receive(go);
        return ctx.step("long", async () => {
          tally.count("long");
          begun.open();
          await done.opened;
          return "done";
        });
      });
      await holdfast.work([long], { lease: leaseMs });
      const run = await holdfast.start(long);
      await other.work([long], { lease: leaseMs });
      await until(async () => (await run.status()) === "blocked");
      await run.signal(go);
      await begun.opened;
      await outliveLeases({ holdfast, meddling }, run.id, clock);
      done.open();
      expect(await run.result()).toBe("done");
      expect(tally.of("long")).toBe(1);
      expect(await kindsOf(holdfast, run.id)).toEqual([
        "created",
        "locked",
        "receiveRequested",
        "waiting",
        "stepFinished",
        "finished",
      ]);
    }),
  );

  test(
    "[RT9] of an activity is renewed while it runs, and ends with it",
    onRuntime(backend, async ({ database, another }) => {
      const clock = manualClock(T0);
      const meddling = new Meddling(database);
      const holdfast = await another({ clock }, meddling.database);
      const begun = gate();
      const done = gate();
      const long = activity("long", async ({ attempt }) => {
        begun.open();
        await done.opened;
        return attempt;
      });
      await holdfast.work([long], { lease: leaseMs });
      const run = await holdfast.start(long);
      await begun.opened;
      await outliveLeases({ holdfast, meddling }, run.id, clock);
      done.open();
      expect(await run.result()).toBe(1);
    }),
  );

  test(
    "[RT9] a retry that comes after the hot lease is made once, not earlier, and counts on",
    onRuntime(backend, async ({ another }) => {
      const clock = manualClock(T0);
      const holdfast = await another({ clock });
      const other = await another({ clock });
      const attempts: { attempt: number; at: number }[] = [];
      const flaky = workflow("flaky", async (ctx) =>
        ctx.step("flaky", { retry: { maxRetries: 1, backoff: 10 * leaseMs } }, ({ attempt }) => {
          attempts.push({ attempt, at: clock.now() });
          if (attempt === 1) throw new Error("not yet");
          return "done";
        }),
      );
      await holdfast.work([flaky], { lease: leaseMs });
      await other.work([flaky], { lease: leaseMs });
      const run = await holdfast.start(flaky);
      await until(async () => (await kindsOf(holdfast, run.id)).includes("waiting"));
      const { items } = await holdfast.executions.events(run.id, {
        kinds: ["stepAttemptFailed"],
      });
      const [retryAt = 0] = items.map(({ event }) => (event as { retryAt: number }).retryAt);
      expect(retryAt).toBeGreaterThanOrEqual(T0 + 7.5 * leaseMs);
      expect(retryAt).toBeLessThanOrEqual(T0 + 10 * leaseMs);
      while (clock.now() < retryAt - leaseMs) {
        clock.advance(leaseMs);
        await settled();
      }
      clock.set(retryAt - 1);
      await settled();
      expect(attempts).toHaveLength(1);
      clock.set(retryAt);
      expect(await run.result()).toBe("done");
      expect(attempts).toEqual([
        { attempt: 1, at: T0 },
        { attempt: 2, at: retryAt },
      ]);
    }),
  );

  test(
    "[E58] that has ended when its worker hears of it is not worked on: nothing runs, and the attempt has timed out",
    onRuntime(backend, async ({ database, another }) => {
      const clock = manualClock(T0);
      const meddling = new Meddling(database);
      const slow = await another({ clock }, meddling.database);
      const tally = new Tally();
      const charge = activity("charge", { retry: { backoff: 100 } }, async () =>
        tally.count("charge"),
      );
      const order = workflow("order", async (ctx) => ctx.step("step", () => tally.count("step")));
      await slow.start(charge, undefined, { id: "charge-1" });
      await slow.start(order, undefined, { id: "order-1" });
      const held = meddling.holdNext("lockPending", "answer");
      await slow.work([charge, order], { lease: leaseMs });
      await held.reached;
      clock.advance(leaseMs);
      for (const id of ["charge-1", "order-1"])
        await until(async () => (await kindsOf(slow, id)).includes("attemptTimedOut"));
      held.release();
      await settled();
      expect(tally.all).toEqual({});
      clock.advance(100);
      await Promise.all([
        slow.get(charge, "charge-1").result(),
        slow.get(order, "order-1").result(),
      ]);
      expect(tally.all).toEqual({ charge: 1, step: 1 });
      expect(await kindsOf(slow, "charge-1")).toEqual([
        "created",
        "locked",
        "attemptTimedOut",
        "locked",
        "finished",
      ]);
    }),
  );

  test(
    "[E58] that has ended and that nobody has noticed is not worked on either",
    onRuntime(backend, async ({ database, another }) => {
      const clock = manualClock(T0);
      const meddling = new Meddling(database);
      const slow = await another({ clock }, meddling.database);
      const tally = new Tally();
      const charge = activity("charge", { retry: { backoff: 100 } }, async () =>
        tally.count("charge"),
      );
      const looked = meddling.firstLook();
      await slow.work([charge], { lease: leaseMs });
      await looked;
      // Its own timers do not see it in time.
      const unseen = meddling.holdNext("expiredTimers", "call");
      const held = meddling.holdNext("createAndLock", "answer");
      const starting = slow.start(charge, undefined, { id: "charge-1" });
      await held.reached;
      clock.advance(leaseMs);
      await unseen.reached;
      held.release();
      const run = await starting;
      await settled();
      expect(tally.all).toEqual({});
      unseen.release();
      await until(async () => (await kindsOf(slow, run.id)).includes("attemptTimedOut"));
      clock.advance(100);
      expect(await run.result()).toBe(1);
    }),
  );
}

/** A few turns of the event loop: whatever was to happen by itself has begun. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}
