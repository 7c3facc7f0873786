import { describe, expect, test } from "vitest";
import { signal, workflow } from "../../../src/runtime/definition/definitions.ts";
import { manualClock } from "../../../src/model/time/clock.ts";
import { Traffic } from "../../../src/testing/traffic.ts";
import type { Backend } from "../backend.ts";
import { T0 } from "../execution/fixture.ts";
import { onRuntime } from "./fixture.ts";
import { answerLost, appends, Meddling } from "./meddling.ts";
import { gate, kindsOf, Tally, until } from "./waiting.ts";

const note = signal<number>("note");

/** Counts how often workers have read how a run stands. */
function countLooks(meddling: Meddling): () => number {
  let looks = 0;
  meddling.on("readExecution", async (call) => {
    const answer = await call();
    looks += 1;
    return answer;
  });
  return () => looks;
}

/** Runs that begin anew under their id, again and again. */
export function runtimePassesSuite(backend: Backend): void {
  describe("a run that begins anew", () => {
    for (const each of ["in one pass", "in two passes"] as const)
      test(
        `[RT13] reads all signals that were left to it, more than a lock brings, ${each}`,
        onRuntime(backend, async ({ holdfast }) => {
          const count = 210;
          const reading = workflow("reading", async (ctx, read: number) => {
            // Moves what it has seen behind all of the signals.
            await ctx.sleep(1);
            if (read < 0) return ctx.continueWith(0);
            for (let sum = read; sum < count; sum += 1) {
              // The first pass leaves all but a few to the next.
              if (each === "in two passes" && read === 0 && sum === 3) return ctx.continueWith(sum);
              const value = await ctx.receive(note, { timeout: "10s" });
              if (value === undefined) return `all but ${count - sum}`;
            }
            return "all";
          });
          const run = await holdfast.start(reading, -1, { id: "r" });
          await Promise.all(
            Array.from({ length: count }, (_, key) => run.signal(note, 1, { key: `k${key}` })),
          );
          await holdfast.work([reading]);
          expect(await run.result()).toBe("all");
        }),
      );

    test(
      "[RT16] is not parked when its new start is recorded later than the lease that it was to begin",
      onRuntime(backend, async ({ database, another }) => {
        const traffic = new Traffic();
        const meddling = new Meddling(traffic.over(database));
        const clock = manualClock(T0);
        const holdfast = await another({ clock }, meddling.database);
        const twice = workflow("twice", async (ctx, pass: number) =>
          pass < 2 ? ctx.continueWith(pass + 1) : "done",
        );
        await holdfast.work([twice], { lease: "1s" });
        const start = meddling.holdNext("appendEvents", "call", appends("continued"));
        const run = await holdfast.start(twice, 1, { id: "t" });
        await start.reached;
        // Nobody renews it meanwhile, as while the database cannot be reached.
        meddling.on("renewLeases", () => Promise.reject(answerLost()));
        meddling.on("expireTimers", () => Promise.reject(answerLost()));
        clock.advance(60_000);
        start.release();
        meddling.on("expireTimers", () => undefined);
        const kinds = (): Promise<readonly string[]> => kindsOf(holdfast, "t");
        await until(async () => {
          // A small part of the lease, and not while something is being recorded under it: else it might end before that.
          await traffic.quiet(() => false);
          clock.advance(20);
          return (await kinds()).some((kind) => /finished|parked/.test(kind));
        });
        expect(await kinds()).not.toContain("parked");
        expect(await run.result()).toBe("done");
      }),
    );

    for (const held of ["call", "answer"] as const)
      test(
        `[RT15] does not when it is paused ${held === "call" ? "before" : "after"} its new start is recorded, and does as soon as it is resumed`,
        onRuntime(backend, async ({ database, another }) => {
          const meddling = new Meddling(database);
          const holdfast = await another({}, meddling.database);
          const tally = new Tally();
          const polling = workflow("polling", async (ctx, pass: number) => {
            await ctx.step("poll", () => tally.count(`pass ${pass}`));
            return pass < 2 ? ctx.continueWith(pass + 1) : "done";
          });
          // Who waited for the end of the lease would be too late.
          await holdfast.work([polling], { lease: "10 minutes" });
          const start = meddling.holdNext("appendEvents", held, appends("continued"));
          const run = await holdfast.start(polling, 1, { id: "p" });
          await start.reached;
          const looks = countLooks(meddling);
          await run.pause();
          // What begins until its worker knows is done to its end.
          await until(() => looks() > 0);
          start.release();
          await until(async () => (await kindsOf(holdfast, "p")).includes("unlocked"));
          expect(await run.status()).toBe("paused");
          expect(tally.all).toEqual({ "pass 1": 1 });
          await run.resume();
          expect(await run.result()).toBe("done");
          expect(tally.all).toEqual({ "pass 1": 1, "pass 2": 1 });
        }),
      );

    test(
      "[RT15] does not go on when it is paused, though that is read only after its next pass has begun",
      onRuntime(backend, async ({ database, another }) => {
        const meddling = new Meddling(database);
        const holdfast = await another({}, meddling.database);
        const begun = gate();
        const finish = gate();
        const tally = new Tally();
        const polling = workflow("polling", async (ctx, pass: number) => {
          if (pass < 2) return ctx.continueWith(pass + 1);
          await ctx.step("first", async () => {
            begun.open();
            await finish.opened;
          });
          await ctx.step("second", () => tally.count("second"));
          return "done";
        });
        await holdfast.work([polling], { lease: "10 minutes" });
        const start = meddling.holdNext("appendEvents", "answer", appends("continued"));
        const run = await holdfast.start(polling, 1, { id: "p" });
        await start.reached;
        const looked = meddling.holdNext("readExecution", "answer");
        await run.pause();
        await looked.reached;
        start.release();
        await begun.opened;
        const looks = countLooks(meddling);
        looked.release();
        await until(() => looks() > 0);
        await settled();
        finish.open();
        await until(async () =>
          (await kindsOf(holdfast, "p")).some((kind) => /unlocked|finished/.test(kind)),
        );
        expect(tally.all).toEqual({});
        await run.resume();
        expect(await run.result()).toBe("done");
      }),
    );
  });
}

/** A few turns of the event loop: whatever was to happen by itself has begun. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}
