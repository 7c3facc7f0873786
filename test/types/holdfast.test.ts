import { expect, expectTypeOf, test } from "vitest";
import { openHoldfast, workflow, type ActivityContext, type Holdfast } from "../../src/index.ts";

const plain = workflow("plain", async () => "done");

/** The bodies are compiled and never run. */
function compiles(uses: (...given: never[]) => unknown): void {
  expect(uses).toBeTypeOf("function");
}

test("the rest of a Holdfast is told by names that exist", () => {
  compiles((holdfast: Holdfast) => {
    expectTypeOf(holdfast.resolve("token", { ok: true })).toEqualTypeOf<Promise<void>>();
    expectTypeOf(holdfast.closeOnSignals()).toEqualTypeOf<() => void>();
    return [
      openHoldfast("./app.db", { sqlite: { durability: "normal" } }),
      openHoldfast("postgres://h/d", { postgres: { schema: "orders" } }),
      holdfast.work([plain], {
        concurrency: 5,
        lease: "10s",
        codeVersion: "1",
      }),
      holdfast.runs.list({ status: "failed", tag: "eu", limit: 5 }),
      holdfast.runs.cancelAll({}, { dryRun: true, reason: "enough" }),
      holdfast.schedules.fire("nightly", { key: "once" }),
      holdfast.close({ timeout: "5s" }),
      // @ts-expect-error: it is called `sqlite`.
      openHoldfast("./app.db", { sqllite: {} }),
      // @ts-expect-error: there is no such durability.
      openHoldfast("./app.db", { sqlite: { durability: "none" } }),
      // @ts-expect-error: it is called `concurrency`.
      holdfast.work([plain], { concurency: 5 }),
      // @ts-expect-error: a token is a text.
      holdfast.resolve(5, { ok: true }),
      // @ts-expect-error: there is no such status.
      holdfast.runs.list({ status: "gone" }),
      // @ts-expect-error: it is called `tag`.
      holdfast.runs.list({ tags: ["eu"] }),
      // @ts-expect-error: which runs?
      holdfast.runs.cancelAll(),
      // @ts-expect-error: it resumes those that are paused.
      holdfast.runs.resumeAll({ status: "failed" }),
      // @ts-expect-error: only a cancellation has a reason.
      holdfast.runs.pauseAll({}, { reason: "enough" }),
      // @ts-expect-error: a schedule is named by a text.
      holdfast.schedules.pause(5),
      // @ts-expect-error: no such unit.
      holdfast.close({ timeout: "1 fortnight" }),
      // @ts-expect-error: no such signal.
      holdfast.closeOnSignals({ signals: ["SIGSTOPP"] }),
    ];
  });
});

test("what the code of an activity is given", () => {
  compiles((ctx: ActivityContext) => {
    expectTypeOf(ctx.attempt).toEqualTypeOf<number>();
    expectTypeOf(ctx.isRepeat).toEqualTypeOf<boolean>();
    expectTypeOf(ctx.idempotencyKey).toEqualTypeOf<string>();
    expectTypeOf(ctx.abortSignal).toEqualTypeOf<AbortSignal>();
    expectTypeOf(ctx.lastHeartbeat).toEqualTypeOf<unknown>();
    // Those are for workflows.
    expectTypeOf(ctx).not.toHaveProperty("step");
    expectTypeOf(ctx).not.toHaveProperty("sleep");
    return [
      ctx.heartbeat({ page: 1 }),
      ctx.heartbeat(),
      // @ts-expect-error: it tells one thing.
      ctx.heartbeat(1, 2),
      // @ts-expect-error: a line is a text.
      ctx.log.info(5),
    ];
  });
});
