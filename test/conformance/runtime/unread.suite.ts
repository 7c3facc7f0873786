import { describe, expect, test } from "vitest";
import { activity, signal, workflow } from "../../../src/runtime/definition/definitions.ts";
import { replayHistory } from "../../../src/testing.ts";
import type { Backend } from "../backend.ts";
import { onRuntime } from "./fixture.ts";
import { answerLost, appends, Meddling } from "./meddling.ts";
import { kindsOf, Tally, until } from "./waiting.ts";

const go = signal<number>("go");
const stop = signal("stop");

/** Messages that come while a receive times out. */
export function runtimeUnreadSuite(backend: Backend): void {
  describe("a message that comes before its receive has timed out", () => {
    timeoutTests(backend);
  });
  describe("the end of a run that has messages left", () => {
    endTests(backend);
  });
}

const isTimeout = appends("receiveTimedOut");

function timeoutTests(backend: Backend): void {
  test(
    "[RN5] is received, also when the runtime learns of it from the refusal alone",
    onRuntime(backend, async ({ database, another }) => {
      const meddling = new Meddling(database);
      const holdfast = await another({}, meddling.database);
      const waiting = workflow("waiting", async (ctx) => [
        await ctx.receive(go, { timeout: 20 }),
        await ctx.receive(go, { timeout: 5 }),
      ]);
      const held = meddling.holdNext("appendEvents", "call", isTimeout);
      await holdfast.work([waiting]);
      const run = await holdfast.start(waiting);
      await held.reached;
      await run.signal(go, 7);
      held.release();
      expect(await run.result()).toEqual([7, undefined]);
      const kinds = await kindsOf(holdfast, run.id);
      expect(kinds.filter((kind) => kind === "receiveTimedOut")).toHaveLength(1);
    }),
  );

  test(
    "[RN5] takes only the timeouts from the append, which is made again with all the rest",
    onRuntime(backend, async ({ database, another }) => {
      const meddling = new Meddling(database);
      const holdfast = await another({}, meddling.database);
      const tally = new Tally();
      const child = activity("child", async () => tally.count("child"));
      const busy = workflow("busy", async (ctx) => {
        const stepped = ctx.step("s", async () => {
          tally.count("s");
          await until(async () => tally.of("sent") === 1);
        });
        // Timeouts of both names, the end of the step and the request of a child in one append.
        const late = ctx.receive(stop, { timeout: 30 });
        const first = ctx.receive(go, { timeout: 30 });
        const second = ctx.receive(go, { timeout: 30 });
        const called = ctx.sleep(25).then(() => ctx.call(child));
        return [await first, await second, await late, await called, await stepped];
      });
      const held = meddling.holdNext("appendEvents", "call", isTimeout);
      await holdfast.work([busy, child]);
      const run = await holdfast.start(busy);
      await held.reached;
      tally.count("sent");
      await run.signal(go, 7);
      held.release();
      expect(await run.result()).toEqual([7, undefined, undefined, 1, undefined]);
      expect(tally.all).toMatchObject({ s: 1, child: 1 });
      expect(await replayHistory(busy, await run.history())).toMatchObject({ kind: "ends" });
    }),
  );

  for (const isDone of [true, false])
    test(
      `[RN5] is received once when the append's outcome is unknown and it ${isDone ? "was" : "was not"} made`,
      onRuntime(backend, async ({ database, another }) => {
        const meddling = new Meddling(database);
        const holdfast = await another({}, meddling.database);
        const waiting = workflow("waiting", async (ctx) => [
          await ctx.receive(go, { timeout: 20 }),
          await ctx.receive(go, { timeout: "1 minute" }),
        ]);
        let lost = 0;
        meddling.on("appendEvents", async (call, input) => {
          if (lost > 0 || !isTimeout(input)) return call();
          lost += 1;
          if (isDone) await call();
          await holdfast.executions.signal("lost", "go", 7);
          throw answerLost();
        });
        await holdfast.work([waiting]);
        const run = await holdfast.start(waiting, undefined, { id: "lost" });
        await until(async () => lost === 1);
        if (!isDone) await run.signal(go, 8);
        expect(await run.result()).toEqual(isDone ? [undefined, 7] : [7, 8]);
      }),
    );

  test(
    "[RN5] is received while the run is cancelled, paused or continued at the same time",
    onRuntime(backend, async ({ database, another }) => {
      const meddling = new Meddling(database);
      const holdfast = await another({}, meddling.database);
      const waiting = workflow("waiting", async (ctx, passes: number): Promise<unknown> => {
        const got = await ctx.receive(go, { timeout: 20 });
        return passes === 0 ? got : ctx.continueWith(passes - 1);
      });
      await holdfast.work([waiting]);
      const tally = new Tally();
      const sleeping = workflow("sleeping", async (ctx) => {
        if ((await ctx.receive(go, { timeout: 20 })) === 1) tally.count("received");
        await ctx.sleep("1 hour");
      });
      await holdfast.work([sleeping]);
      let held = meddling.holdNext("appendEvents", "call", isTimeout);
      const cancelled = await holdfast.start(sleeping);
      await held.reached;
      await cancelled.signal(go, 1);
      await cancelled.cancel();
      held.release();
      const { kind, unread = 0 } = await holdfast.executions.waitForResult(cancelled.id);
      expect([kind, tally.of("received") + unread]).toEqual(["cancelled", 1]);
      held = meddling.holdNext("appendEvents", "call", isTimeout);
      const paused = await holdfast.start(waiting, 0);
      await held.reached;
      await paused.signal(go, 2);
      await paused.pause();
      held.release();
      await paused.resume();
      expect(await paused.result()).toBe(2);
      held = meddling.holdNext("appendEvents", "call", isTimeout);
      const continued = await holdfast.start(waiting, 1);
      await held.reached;
      await continued.signal(go, 3);
      await continued.signal(go, 4);
      held.release();
      expect(await continued.result()).toBe(4);
    }),
  );
}

function endTests(backend: Backend): void {
  test(
    "[RN5] counts and reports those that its code did not take, and those that came last",
    onRuntime(backend, async ({ database, said, another }) => {
      const meddling = new Meddling(database);
      const holdfast = await another({}, meddling.database);
      const once = workflow("once", async (ctx) => {
        const got = await ctx.receive(go);
        await ctx.step("s", () => holdfast.executions.signal(ctx.id, "stop", true));
        return got;
      });
      const held = meddling.holdNext("appendEvents", "call", appends("finished"));
      await holdfast.work([once]);
      const run = await holdfast.start(once, undefined, { id: "once" });
      for (const n of [1, 2, 3]) await run.signal(go, n);
      await held.reached;
      await run.signal(go, 4);
      held.release();
      expect(await run.result()).toBe(1);
      const result = await holdfast.executions.waitForResult("once");
      expect(result).toEqual({ kind: "completed", value: 1, unread: 4 });
      const reports = () => said.filter(({ details }) => details["unread"] !== undefined);
      await until(async () => reports().length > 0);
      const told = reports();
      expect(told).toHaveLength(1);
      expect(told[0]).toMatchObject({
        level: "warn",
        source: "runtime",
        details: { id: "once", function: "once", unread: 4 },
      });
      expect(told[0]?.message).toContain("4 messages");
      await expect(run.signal(go, 5)).rejects.toMatchObject({ code: "EXECUTION_FINISHED" });
    }),
  );

  test(
    "[RN5] says nothing when all were received, and leaves them to the next pass",
    onRuntime(backend, async ({ said, holdfast }) => {
      const passing = workflow("passing", async (ctx, left: number): Promise<unknown> => {
        const got = await ctx.receive(go);
        return left === 0 ? got : ctx.continueWith(left - 1);
      });
      const run = await holdfast.start(passing, 3);
      for (const n of [1, 2, 3, 4, 5]) await run.signal(go, n);
      await holdfast.work([passing]);
      expect(await run.result()).toBe(4);
      expect(await holdfast.executions.result(run.id)).toMatchObject({ unread: 1 });
      const all = await holdfast.start(passing, 0);
      await all.signal(go, 9);
      expect(await all.result()).toBe(9);
      expect(await holdfast.executions.result(all.id)).toEqual({ kind: "completed", value: 9 });
      await until(async () => said.some(({ details }) => details["unread"] === 1));
      expect(said.filter(({ details }) => details["unread"] !== undefined)).toHaveLength(1);
    }),
  );

  test(
    "[RN5] counts those of failed and cancelled runs, but not of names that only Holdfast sends",
    onRuntime(backend, async ({ holdfast }) => {
      expect(() => signal("holdfast/mine")).toThrow(/Holdfast's own/);
      const failing = workflow("failing", async (ctx) => {
        await ctx.receive(stop);
        throw new Error("no");
      });
      await holdfast.work([failing]);
      const failed = await holdfast.start(failing);
      await failed.signal(go, 1);
      await failed.signal(stop);
      await expect(failed.result()).rejects.toThrow("no");
      const cancelled = await holdfast.start(failing);
      await cancelled.signal(go, 1);
      await until(async () => (await kindsOf(holdfast, cancelled.id)).includes("waiting"));
      await cancelled.cancel();
      await expect(cancelled.result()).rejects.toMatchObject({ kind: "cancelled" });
      for (const { id } of [failed, cancelled])
        expect(await holdfast.executions.result(id)).toMatchObject({ unread: 1 });
    }),
  );
}
