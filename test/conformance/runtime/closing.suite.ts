import { describe, expect, test } from "vitest";
import { manualClock } from "../../../src/model/time/clock.ts";
import { signal, workflow } from "../../../src/runtime/definition/definitions.ts";
import type { Holdfast } from "../../../src/runtime/client/holdfast.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { T0 } from "../execution/fixture.ts";
import { onRuntime } from "./fixture.ts";
import { kindsOf, until } from "./waiting.ts";

const go = signal<string>("go");
const stop = signal<string>("stop");

/** A child that ends at once when it is asked to, or has a long cleanup. */
const child = workflow("child", async (ctx, hasCleanup: boolean) => {
  try {
    await ctx.receive(go);
  } finally {
    if (hasCleanup) await ctx.sleep("1 day");
  }
});

/** Waits until as many children of a run have begun to wait. */
async function childrenWait(holdfast: Holdfast, id: string, count: number): Promise<void> {
  await until(async () => {
    const { items } = await holdfast.executions.tree(id);
    const children = items.filter((item) => item.id !== id);
    return children.length === count && children.every(({ status }) => status === "blocked");
  });
}

/** What a run does between the end of its code and its own. */
export function runtimeClosingSuite(backend: Backend): void {
  describe("a run that waits for children that its code has left", () => {
    const parent = workflow(
      "parent",
      { cleanupTimeout: "10s" },
      async (ctx, children: boolean[]) => {
        for (const hasCleanup of children) ctx.spawn(child, hasCleanup);
        await ctx.receive(stop);
        return "ended";
      },
    );
    const quick = workflow("quick", async (ctx) => ctx.step("s", () => "quick"));
    const functions = [parent, child, quick];

    test(
      "holds no place after one of them has ended, nor after it was cancelled",
      onRuntime(backend, async ({ another }) => {
        const clock = manualClock(T0);
        const holdfast = await another({ clock });
        await holdfast.work(functions, { concurrency: 1 });
        const run = await holdfast.start(parent, [true, false], { id: "p" });
        await childrenWait(holdfast, "p", 2);
        await run.signal(stop, "now");
        await until(async () => {
          const { items } = await holdfast.executions.tree("p");
          return items.some(({ status }) => status === "cancelled");
        });
        expect(await (await holdfast.start(quick)).result()).toBe("quick");
        await run.cancel();
        expect(await (await holdfast.start(quick)).result()).toBe("quick");
        expect(await run.status()).toBe("cancelling");
      }),
    );

    test(
      "holds none either when it has left a step between two attempts, and is replayed",
      onRuntime(backend, async ({ another }) => {
        const clock = manualClock(T0);
        const holdfast = await another({ clock });
        const leaving = workflow("leaving", async (ctx) => {
          ctx.spawn(child, true);
          ctx.spawn(child, false);
          void ctx.step("left", { retry: { backoff: "1 day" } }, () => {
            throw new Error("not today");
          });
          await ctx.receive(stop);
          return "ended";
        });
        await holdfast.work([leaving, child, quick], {
          concurrency: 1,
          hotRunsMax: 0,
        });
        const run = await holdfast.start(leaving, undefined, { id: "p" });
        await childrenWait(holdfast, "p", 2);
        await run.signal(stop, "now");
        await until(async () => {
          const { items } = await holdfast.executions.tree("p");
          return items.some(({ status }) => status === "cancelled");
        });
        expect(await (await holdfast.start(quick)).result()).toBe("quick");
        await until(async () => (await run.status()) === "blocked");
        expect((await kindsOf(holdfast, "p")).at(-1)).toBe("unlocked");
      }),
    );

    test(
      "[RT10] ends them by force when the time of its cleanup is over",
      onRuntime(backend, async ({ another }) => {
        const clock = manualClock(T0);
        const holdfast = await another({ clock });
        await holdfast.work(functions, { concurrency: 1 });
        const run = await holdfast.start(parent, [true], { id: "p" });
        await childrenWait(holdfast, "p", 1);
        await run.cancel();
        await until(async () => (await holdfast.executions.nextTimerAt()) !== undefined);
        clock.advance(10_000);
        expect(await rejection(run.result())).toMatchObject({
          kind: "cancelled",
        });
        expect(await (await holdfast.start(quick)).result()).toBe("quick");
      }),
    );

    test(
      "is given back when its worker closes, and ends at the next one",
      onRuntime(backend, async ({ another }) => {
        const clock = manualClock(T0);
        const holdfast = await another({ clock });
        await holdfast.work(functions);
        const run = await holdfast.start(parent, [true], { id: "p" });
        await childrenWait(holdfast, "p", 1);
        await run.signal(stop, "now");
        await until(async () => (await holdfast.executions.nextTimerAt()) !== undefined);
        // On this clock the timeout never comes.
        await holdfast.close({ timeout: "1 hour" });
        expect((await kindsOf(holdfast, "p")).at(-1)).toBe("unlocked");
        const next = await another({ clock });
        await next.work(functions);
        clock.advance(24 * 3_600_000);
        expect(await next.get(parent, "p").result()).toBe("ended");
      }),
    );
  });

  describe("a cancelled run whose code has changed", () => {
    test(
      "ends with the children of its log, and begins nothing that the new code asks for",
      onRuntime(backend, async ({ holdfast, another }) => {
        const other = workflow("other", async () => "began");
        const before = workflow("changing", async (ctx) => {
          await ctx.step("first", () => 1);
          await Promise.all([ctx.call(child, true), ctx.call(other)]);
        });
        const after = workflow("changing", async (ctx) => {
          for (const name of ["other", "than", "before"]) void ctx.step(name, () => 1);
          void ctx.start(other, undefined, { id: "detached" });
          ctx.spawn(other);
          await ctx.receive(stop);
        });
        await holdfast.work([before, child, other]);
        const run = await holdfast.start(before, undefined, { id: "p" });
        await until(async () => {
          const { items } = await holdfast.executions.tree("p");
          const statuses = items.map(({ status }) => status);
          return statuses.toSorted().join() === "blocked,blocked,completed";
        });
        await holdfast.close();
        await run.cancel();
        const next = await another();
        await next.work([after, child, other]);
        expect(await rejection(next.get(after, "p").result())).toMatchObject({
          kind: "cancelled",
        });
        const { items } = await next.executions.tree("p");
        expect(items.map(({ status }) => status).toSorted()).toEqual([
          "cancelled",
          "cancelled",
          "completed",
        ]);
        expect(await rejection(next.executions.get("detached"))).toMatchObject({
          code: "EXECUTION_NOT_FOUND",
        });
      }),
    );
  });

  describe("a run that begins anew", () => {
    test(
      "leaves signals to its next pass that came for a call which nobody awaits any more",
      onRuntime(backend, async ({ holdfast }) => {
        const loop = workflow("loop", async (ctx, isLast: boolean) => {
          if (isLast) return ctx.receive(stop);
          await Promise.race([ctx.receive(stop), ctx.receive(go)]);
          return ctx.continueWith(true);
        });
        const run = await holdfast.start(loop, false);
        await run.signal(go, "first");
        await run.signal(stop, "second");
        await holdfast.work([loop]);
        expect(await run.result()).toBe("second");
      }),
    );

    test(
      "fails with what is wrong about its input when that cannot be recorded",
      onRuntime(backend, async ({ holdfast }) => {
        const loop = workflow("loop", async (ctx) =>
          ctx.continueWith({ callback: () => 1 } as never),
        );
        await holdfast.work([loop]);
        const run = await holdfast.start(loop);
        const failed = await rejection(run.result());
        expect(failed).toMatchObject({ kind: "failed" });
        expect(failed.message).toContain("callback");
      }),
    );
  });
}
