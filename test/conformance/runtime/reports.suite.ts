import { describe, expect, test } from "vitest";
import { runtimeContext } from "../../../src/open/open-holdfast.ts";
import { manualClock } from "../../../src/model/time/clock.ts";
import { activity, NonRetryableError, schedule, signal, workflow } from "../../../src/index.ts";
import { holdfastOver, type Holdfast } from "../../../src/runtime/client/holdfast.ts";
import type { RuntimeEvent } from "../../../src/runtime/runtime-event.ts";
import { T0 } from "../execution/fixture.ts";
import { withPlace } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { taken } from "./expiry.suite.ts";
import { onRuntime } from "./fixture.ts";
import { until } from "./waiting.ts";

/** What is reported of failures, and counted. */
export function runtimeReportsSuite(backend: Backend): void {
  describe("failures are reported", () => {
    reportTests(backend);
    timerTests(backend);
  });
  describe("a handler of reports", () => {
    handlerTests(backend);
  });
}

function ofKind(said: readonly RuntimeEvent[], kind: string): readonly RuntimeEvent[] {
  return said.filter(({ details }) => details["kind"] === kind);
}

const once = { retry: { maxRetries: 1, backoff: 1 } } as const;

function reportTests(backend: Backend): void {
  test(
    "[RN4] of steps, transactions and activities that are retried, with where and when",
    onRuntime(backend, async ({ holdfast, said }) => {
      const flaky = activity("billing/flaky", once, async (ctx) => {
        if (ctx.attempt === 1) throw new TypeError("first\nline");
        return ctx.attempt;
      });
      const parent = workflow("parent", async (ctx) => {
        await ctx.step("charge", once, ({ attempt }) => {
          if (attempt === 1) throw new RangeError("declined");
        });
        return ctx.call(flaky);
      });
      await holdfast.work([parent, flaky]);
      const run = await holdfast.start(parent, undefined, { id: "p-1" });
      expect(await run.result()).toBe(2);
      await until(async () => ofKind(said, "attemptFailed").length === 2);
      const [step, attempt] = ofKind(said, "attemptFailed");
      expect(step).toEqual({
        level: "warn",
        source: "runtime",
        message: expect.stringMatching(
          /^Step "charge" of run p-1 of parent failed in attempt 1, and is retried in \d+ ms: RangeError: declined$/,
        ),
        details: {
          kind: "attemptFailed",
          id: "p-1",
          function: "parent",
          step: "charge",
          attempt: 1,
          retryAt: expect.any(Number),
          error: { name: "RangeError", message: "declined" },
        },
      });
      expect(attempt).toMatchObject({
        level: "warn",
        message: expect.stringMatching(
          / failed in attempt 1, and is retried in .*: TypeError: first line$/,
        ),
        details: {
          function: "billing/flaky",
          parent: "p-1",
          attempt: 1,
          error: { name: "TypeError", message: "first\nline" },
        },
      });
      expect(holdfast.stats().functions).toMatchObject({
        parent: { started: 1, completed: 1, failed: 0, failedAttempts: 1 },
        "billing/flaky": { started: 1, completed: 1, failedAttempts: 1 },
      });
    }),
  );

  test(
    "[RN4] of runs that failed, with the step, and of runs that were parked; not of those that were cancelled",
    onRuntime(backend, async ({ holdfast, said }) => {
      const child = activity("child", async () => {
        throw new NonRetryableError("no such card");
      });
      const failing = workflow("failing", async (ctx) => {
        await ctx.step("final", () => {
          throw new NonRetryableError("declined");
        });
      });
      const calling = workflow("calling", async (ctx) => ctx.call(child));
      const lost = workflow("lost", async (ctx, next: number): Promise<string> => {
        ctx.continueWith(next);
        return "forgot to return it";
      });
      const napping = workflow("napping", async (ctx) => ctx.sleep("1 hour"));
      await holdfast.work([child, failing, calling, lost, napping]);
      const runs = await Promise.all(
        [failing, calling].map((fn, n) => holdfast.start(fn, undefined, { id: `f-${n}` })),
      );
      for (const run of runs) await expect(run.result()).rejects.toMatchObject({ kind: "failed" });
      const parked = await holdfast.start(lost, 0, { id: "lost-1" });
      await until(async () => (await parked.status()) === "parked");
      const napped = await holdfast.start(napping);
      await napped.cancel();
      await expect(napped.result()).rejects.toMatchObject({ kind: "cancelled" });
      await until(async () => said.filter(({ level }) => level === "error").length === 4);
      const failed = ofKind(said, "runFailed");
      expect(failed.map(({ details }) => String(details["function"])).toSorted()).toEqual([
        "calling",
        "child",
        "failing",
      ]);
      expect(failed.find(({ details }) => details["id"] === "f-0")).toMatchObject({
        message:
          'Run f-0 of failing failed in step "final" (attempt 1): NonRetryableError: declined',
        details: { step: "final", attempt: 1, error: { message: "declined" } },
      });
      expect(failed.find(({ details }) => details["function"] === "child")).toMatchObject({
        details: { parent: "f-1", error: { name: "NonRetryableError" } },
      });
      expect(ofKind(said, "runParked")).toMatchObject([
        { details: { id: "lost-1", function: "lost", code: "CONTINUATION_LOST" } },
      ]);
      expect(holdfast.stats().functions).toMatchObject({
        failing: { started: 1, failed: 1 },
        child: { started: 1, failed: 1 },
        lost: { started: 1, parked: 1 },
        napping: { started: 1, cancelled: 1, failed: 0 },
      });
    }),
  );

  test(
    "[RN4] once for each run, however often its start is repeated",
    onRuntime(backend, async ({ holdfast, another }) => {
      const done = workflow("done", async () => 1);
      for (let n = 0; n < 3; n += 1) await holdfast.start(done, undefined, { id: "same" });
      expect(holdfast.stats().functions).toMatchObject({ done: { started: 1, completed: 0 } });
      const worker = await another();
      await worker.work([done, schedule("often", { every: "1 hour" }, done)]);
      await holdfast.get(done, "same").result();
      await until(async () => worker.stats().functions["done"]?.completed === 1);
      expect(holdfast.stats().functions["done"]).toMatchObject({ started: 1, completed: 0 });
    }),
  );
}

function timerTests(backend: Backend): void {
  test(
    "[RN4] of runs that timed out, and of attempts that were lost, by the process whose timers recorded it",
    onRuntime(backend, async ({ another, said }) => {
      const clock = manualClock(T0);
      const holdfast = await another({ clock });
      const late = workflow("late", async (ctx) => ctx.sleep("1 hour"));
      const child = activity("child", async () => "never asked here");
      const message = signal("message");
      const unserved = await holdfast.start(late, undefined, { id: "late-1", deadline: "1m" });
      await unserved.signal(message);
      await holdfast.start(child, undefined, { id: "silent" });
      expect(await taken(holdfast, "child", 5)).toBe("silent");
      await holdfast.work([workflow("idle", async () => undefined)]);
      clock.advance(61_000);
      await until(async () => ofKind(said, "runTimedOut").length === 1);
      await until(async () => ofKind(said, "attemptFailed").length === 1);
      expect(ofKind(said, "runTimedOut")).toMatchObject([
        { level: "error", details: { id: "late-1", function: "late" } },
      ]);
      expect(ofKind(said, "attemptFailed")).toMatchObject([
        {
          level: "warn",
          details: { id: "silent", function: "child", retryAt: expect.any(Number) },
        },
      ]);
      await until(async () => ofKind(said, "messagesUnread").length === 1);
      expect(holdfast.stats().functions).toMatchObject({
        late: { timedOut: 1, unread: 1 },
        child: { failedAttempts: 1 },
      });
    }),
  );
}

/** A runtime whose handler of events is given. */
async function withHandler(
  backend: Backend,
  onEvent: (event: RuntimeEvent) => void,
  body: (holdfast: Holdfast) => Promise<void>,
): Promise<void> {
  await withPlace(backend, async (place) => {
    const database = await place.open();
    const holdfast = holdfastOver(await runtimeContext(database, {}, onEvent), async () => {});
    try {
      await body(holdfast);
    } finally {
      await holdfast.close({ timeout: "2s" });
    }
  });
}

function handlerTests(backend: Backend): void {
  const failing = workflow("failing", async (_, fails: boolean) => {
    if (fails) throw new Error("no");
    return "done";
  });

  async function bothEnd(holdfast: Holdfast): Promise<void> {
    await holdfast.work([failing]);
    for (let n = 0; n < 5; n += 1) {
      const failed = await holdfast.start(failing, true);
      await expect(failed.result()).rejects.toThrow("no");
      expect(await (await holdfast.start(failing, false)).result()).toBe("done");
    }
  }

  test("[RN4] that throws, rejects or blocks changes nothing", async () => {
    const warned = (): void => undefined;
    process.on("warning", warned);
    let calls = 0;
    await withHandler(
      backend,
      ({ level }) => {
        if (level !== "error") return undefined;
        calls += 1;
        if (calls === 1) throw new Error("a handler of the user");
        if (calls === 2) return Promise.reject(new Error("an async handler")) as never;
        const end = performance.now() + 250;
        while (performance.now() < end);
        return undefined;
      },
      bothEnd,
    );
    process.off("warning", warned);
    expect(calls).toBe(5);
  });

  test("[RN4] is told of 20 failures a second at most, and then how many were left out", async () => {
    const clock = manualClock(T0);
    const said: RuntimeEvent[] = [];
    await withPlace(backend, async (place) => {
      const database = await place.open();
      const context = await runtimeContext(database, {}, (event) => said.push(event), clock);
      const holdfast = holdfastOver(context, async () => {});
      const other = workflow("other", async () => {
        throw new Error("too");
      });
      await holdfast.work([failing, other]);
      const runs = await holdfast.startMany(
        failing,
        Array.from({ length: 50 }, () => ({ input: true })),
      );
      await Promise.allSettled(runs.map((run) => run.result()));
      await expect((await holdfast.start(other)).result()).rejects.toThrow("too");
      await until(async () => ofKind(said, "runFailed").length === 21);
      expect(ofKind(said, "reportsLeftOut")).toEqual([]);
      clock.advance(1_000);
      await until(async () => ofKind(said, "reportsLeftOut").length === 1);
      expect(ofKind(said, "reportsLeftOut")).toMatchObject([
        { level: "error", details: { function: "failing", leftOut: 30 } },
      ]);
      expect(holdfast.stats().functions).toMatchObject({ failing: { failed: 50 } });
      await expect((await holdfast.start(failing, true)).result()).rejects.toThrow("no");
      await until(async () => ofKind(said, "runFailed").length === 22);
      await holdfast.close();
      expect(ofKind(said, "reportsLeftOut")).toHaveLength(1);
    });
  });
}
