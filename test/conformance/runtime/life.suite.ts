import { describe, expect, test } from "vitest";
import { activity, signal, workflow } from "../../../src/runtime/definition/definitions.ts";
import { schedule } from "../../../src/runtime/schedules/schedule.ts";
import { NonRetryableError } from "../../../src/runtime/failures.ts";
import { manualClock } from "../../../src/model/time/clock.ts";
import type { Holdfast } from "../../../src/runtime/client/holdfast.ts";
import { T0 } from "../execution/fixture.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { onRuntime } from "./fixture.ts";
import { kindsOf, Tally, until } from "./waiting.ts";

/** When each failed attempt is to be made again. */
async function failuresOf({ executions }: Holdfast, id: string): Promise<readonly number[]> {
  const { items } = await executions.events(id, { kinds: ["attemptFailed"] });
  return items.map(({ event }) => (event as { dueAt: number }).dueAt);
}

/** What a newcomer's first programs do. */
export function runtimeLifeSuite(backend: Backend): void {
  describe("a run", () => {
    test(
      "[E48] is created, locked and finished, at instants that do not go back",
      onRuntime(backend, async ({ holdfast }) => {
        const greet = workflow("greet", async (_, name: string) => `hello ${name}`);
        await holdfast.work([greet]);
        const run = await holdfast.start(greet, "ada");
        expect(await run.result()).toBe("hello ada");
        const { items } = await holdfast.executions.events(run.id);
        expect(items.map(({ event }) => event.kind)).toEqual(["created", "locked", "finished"]);
        const instants = items.map(({ at }) => at);
        expect(instants).toEqual(instants.toSorted((a, b) => a - b));
      }),
    );

    test(
      "[RN14] is served by a worker that was given one function, or one schedule, whose names have dots",
      onRuntime(backend, async ({ holdfast, another }) => {
        const go = signal<string>("go.now");
        const greet = workflow("greet.people", async (ctx) => `hello ${await ctx.receive(go)}`);
        await holdfast.work(greet);
        const run = await holdfast.start(greet);
        await run.signal(go, "ada");
        expect(await run.result()).toBe("hello ada");
        const second = await another();
        await second.work(schedule("nightly", { cron: "0 2 * * *" }, greet));
        expect((await second.schedules.list()).items).toMatchObject([{ name: "nightly" }]);
        for (const given of [undefined, null, {}, "greet", () => undefined, { kind: "workflow" }])
          expect(await rejection(holdfast.work(given as never))).toMatchObject({
            code: "OPTION_INVALID",
          });
      }),
    );

    test(
      "[E49] of an activity that fails is tried again after a pause, which its log tells",
      onRuntime(backend, async ({ another }) => {
        const clock = manualClock(T0);
        const holdfast = await another({ clock });
        const flaky = activity("flaky", { retry: { maxRetries: 1, backoff: 100 } }, async (ctx) => {
          if (ctx.attempt === 1) throw new RangeError("not yet");
          return ctx.attempt;
        });
        await holdfast.work([flaky]);
        const run = await holdfast.start(flaky);
        await until(async () => (await kindsOf(holdfast, run.id)).includes("attemptFailed"));
        const { event, at } = await holdfast.executions.lastEvent(run.id);
        expect(at).toBe(T0);
        expect(event).toMatchObject({
          kind: "attemptFailed",
          error: { name: "RangeError", message: "not yet" },
        });
        const { dueAt } = event as { dueAt: number };
        // Up to a quarter shorter, so that those that failed together come back apart.
        expect(dueAt).toBeLessThanOrEqual(T0 + 100);
        expect(dueAt).toBeGreaterThanOrEqual(T0 + 75);
        expect(await run.status()).toBe("scheduled");
        clock.set(dueAt);
        expect(await run.result()).toBe(2);
        expect(await kindsOf(holdfast, run.id)).toEqual([
          "created",
          "locked",
          "attemptFailed",
          "locked",
          "finished",
        ]);
      }),
    );

    test(
      "[E50] of an activity without retries fails with the error that it threw",
      onRuntime(backend, async ({ holdfast }) => {
        const failing = activity("failing", { retry: { maxRetries: 0 } }, async () => {
          throw Object.assign(new TypeError("broken"), { code: "E_BROKEN" });
        });
        await holdfast.work([failing]);
        const run = await holdfast.start(failing);
        const error = await rejection(run.result());
        expect(error).toMatchObject({
          name: "RunFailedError",
          runId: run.id,
          kind: "failed",
        });
        expect(error.message).toContain(run.id);
        expect(error.message).toContain("broken");
        expect(error.cause).toMatchObject({
          name: "TypeError",
          message: "broken",
          code: "E_BROKEN",
        });
        expect((error.cause as Error).stack).toContain("life.suite.ts");
        expect(await kindsOf(holdfast, run.id)).toEqual(["created", "locked", "finished"]);
      }),
    );

    test(
      "[E51] gives a child's failure to its parent as an error with its cause",
      onRuntime(backend, async ({ holdfast }) => {
        const failing = activity("failing", { retry: { maxRetries: 0 } }, async () => {
          throw new Error("no paper");
        });
        const parent = workflow("parent", async (ctx) => {
          try {
            return await ctx.call(failing);
          } catch (error) {
            const { name, cause } = error as Error;
            return `${name} because ${(cause as Error).message}`;
          }
        });
        await holdfast.work([parent, failing]);
        const run = await holdfast.start(parent);
        expect(await run.result()).toBe("RunFailedError because no paper");
      }),
    );

    test(
      "[E54] is tried as often as its policy says, with pauses that double up to their maximum",
      onRuntime(backend, async ({ another }) => {
        const clock = manualClock(T0);
        const holdfast = await another({ clock });
        const tally = new Tally();
        const failing = activity(
          "failing",
          { retry: { maxRetries: 4, backoff: 100, maxBackoff: 300 } },
          async () => {
            tally.count("attempt");
            throw new Error("always");
          },
        );
        await holdfast.work([failing]);
        const run = await holdfast.start(failing);
        const pauses: number[] = [];
        for (let failures = 1; failures <= 4; failures += 1) {
          await until(async () => (await failuresOf(holdfast, run.id)).length === failures);
          const dueAt = (await failuresOf(holdfast, run.id)).at(-1) ?? 0;
          pauses.push(dueAt - clock.now());
          clock.set(dueAt);
        }
        await rejection(run.result());
        expect(tally.of("attempt")).toBe(5);
        [100, 200, 300, 300].forEach((whole, index) => {
          expect(pauses[index]).toBeLessThanOrEqual(whole);
          expect(pauses[index]).toBeGreaterThanOrEqual(whole * 0.75);
        });
      }),
    );

    test(
      "[E57] of an activity that says a retry is useless fails at once",
      onRuntime(backend, async ({ holdfast }) => {
        const tally = new Tally();
        const declined = activity("declined", async () => {
          tally.count("attempt");
          throw new NonRetryableError("declined", {
            cause: new Error("no funds"),
          });
        });
        await holdfast.work([declined]);
        const error = await rejection((await holdfast.start(declined)).result());
        expect(tally.of("attempt")).toBe(1);
        expect(error.cause).toMatchObject({
          name: "NonRetryableError",
          message: "declined",
        });
      }),
    );

    test(
      "waits for a signal, also for one that came before it asked",
      onRuntime(backend, async ({ holdfast }) => {
        const approval = signal<{ ok: boolean }>("approval");
        const waiting = workflow("waiting", async (ctx) => {
          const first = await ctx.receive(approval);
          const second = await ctx.receive(approval, { timeout: "1 minute" });
          const third = await ctx.receive(approval, { timeout: 5 });
          return [first, second, third];
        });
        const run = await holdfast.start(waiting, undefined, { id: "w-1" });
        await run.signal(approval, { ok: true }, { key: "one" });
        await run.signal(approval, { ok: true }, { key: "one" });
        await holdfast.work([waiting]);
        await until(async () => (await kindsOf(holdfast, run.id)).includes("waiting"));
        await run.signal(approval, { ok: false });
        expect(await run.result()).toEqual([{ ok: true }, { ok: false }, undefined]);
      }),
    );

    test(
      "a signal without a value is received as true, and a wait whose time is over as undefined",
      onRuntime(backend, async ({ holdfast }) => {
        const stop = signal("stop");
        const waiting = workflow("stopped", async (ctx) => [
          await ctx.receive(stop, { timeout: "1 minute" }),
          await ctx.receive(stop, { timeout: "1 minute" }),
          await ctx.receive(stop, { timeout: 5 }),
        ]);
        await holdfast.work([waiting]);
        const run = await holdfast.start(waiting);
        await run.signal(stop);
        await run.signal(stop, undefined, { key: "again" });
        expect(await run.result()).toEqual([true, true, undefined]);
      }),
    );

    test(
      "started twice under one id is one run; with another input it is refused",
      onRuntime(backend, async ({ holdfast }) => {
        const echo = workflow("echo", async (_, value: number) => value);
        await holdfast.work([echo]);
        const runs = await Promise.all(
          [1, 2, 3].map(() => holdfast.start(echo, 7, { id: "once" })),
        );
        expect(await Promise.all(runs.map((run) => run.result()))).toEqual([7, 7, 7]);
        expect(await rejection(holdfast.start(echo, 8, { id: "once" }))).toMatchObject({
          code: "EXECUTION_EXISTS",
        });
      }),
    );
  });
}
