import { describe, expect, test } from "vitest";
import { holdfastOn } from "../../../src/open/open-holdfast.ts";
import { activity, signal, workflow } from "../../../src/runtime/definition/definitions.ts";
import type { RuntimeEvent } from "../../../src/runtime/runtime-event.ts";
import type { Backend } from "../backend.ts";
import { onRuntime } from "./fixture.ts";
import { Meddling } from "./meddling.ts";
import { recordedRun, stepDone } from "./recorded-run.ts";
import { kindsOf, until } from "./waiting.ts";

const twice = { retry: { maxRetries: 1, backoff: 1 } };

export function runtimeLogSuite(backend: Backend): void {
  describe("the progress of a run", () => {
    progressTests(backend);
  });
  describe("lines of the log", () => {
    for (const hotRunsMax of [1_000, 0])
      test(
        `carry run, function, step and attempt, and are written once, ${hotRunsMax === 0 ? "though replayed" : "live"}`,
        onRuntime(backend, async ({ holdfast, said }) => {
          const talking = workflow("talking", async (ctx) => {
            ctx.log.info("begins", { n: 1 });
            await ctx.step("work", twice, ({ attempt }) => {
              ctx.log.warn("tries");
              if (attempt === 1) throw new Error("once");
            });
            ctx.log.debug("worked");
            await ctx.sleep(1);
            ctx.log.error("slept");
          });
          await holdfast.work([talking], { hotRunsMax });
          const run = await holdfast.start(talking, undefined, { id: "t" });
          await run.result();
          const details = { id: "t", function: "talking" };
          const expected = [
            { level: "info", message: "begins", data: { n: 1 }, details },
            {
              level: "warn",
              message: "tries",
              details: { ...details, step: "work", attempt: 1 },
            },
            {
              level: "warn",
              message: "tries",
              details: { ...details, step: "work", attempt: 2 },
            },
            { level: "debug", message: "worked", details },
            { level: "error", message: "slept", details },
          ];
          expect(said.filter(({ source }) => source === "code")).toEqual(
            expected.map((line) => ({ ...line, source: "code" })),
          );
          const kept = async () => (await holdfast.executions.logs("t")).items;
          await until(async () => (await kept()).length >= 5);
          expect(
            (await kept()).map(({ level, message, data, step, attempt }) => ({
              level,
              message,
              data,
              step,
              attempt,
            })),
          ).toEqual(
            expected.map(({ level, message, data, details: at }) => ({
              level,
              message,
              data,
              step: "step" in at ? at.step : null,
              attempt: "attempt" in at ? at.attempt : null,
            })),
          );
        }),
      );

    test(
      "of activities carry run, function and attempt",
      onRuntime(backend, async ({ holdfast, said }) => {
        const trying = activity("trying", twice, async (ctx) => {
          ctx.log.info("tries", [ctx.attempt]);
          if (ctx.attempt === 1) throw new Error("once");
        });
        await holdfast.work([trying]);
        const run = await holdfast.start(trying, undefined, { id: "a" });
        await run.result();
        expect(said.filter(({ source }) => source === "code")).toEqual(
          [1, 2].map((attempt) => ({
            source: "code",
            level: "info",
            message: "tries",
            data: [attempt],
            details: { id: "a", function: "trying", attempt },
          })),
        );
      }),
    );

    test(
      "that cannot be kept, and hooks that throw, stop nothing",
      onRuntime(backend, async ({ database }) => {
        const said: string[] = [];
        const hook = ({ message }: RuntimeEvent): unknown => {
          said.push(message);
          if (message === "rejected") return Promise.reject(new Error());
          throw new Error("a broken hook");
        };
        const holdfast = await holdfastOn(database, {}, hook);
        const talking = workflow("talking", async (ctx) => {
          ctx.log.info("thrown", { fn: () => 1 });
          ctx.log.info("rejected");
          await ctx.step("one", () => 1);
          return "done";
        });
        try {
          await holdfast.work([talking]);
          const run = await holdfast.start(talking);
          expect(await run.result()).toBe("done");
          await until(() => said.some((text) => text.includes("$.fn")));
        } finally {
          await holdfast.close();
        }
      }),
    );
  });
}

function progressTests(backend: Backend): void {
  const go = signal("go");
  const telling = workflow("telling", async (ctx) => {
    ctx.setProgress("begun");
    const sent = ctx.receive(go);
    await ctx.step("a", () => 1);
    ctx.setProgress("a is done");
    await sent;
  });

  test(
    "is kept though its worker died when it had recorded the outcome before",
    onRuntime(backend, async ({ holdfast }) => {
      await recordedRun(holdfast, "r", "telling", [
        { kind: "receiveRequested", signal: "go", expiresAt: null, call: 1 },
        stepDone(2, "a", 1),
      ]);
      await holdfast.work([telling]);
      const run = holdfast.get(telling, "r");
      await until(async () => (await run.progress()) !== undefined);
      expect(await run.progress()).toBe("a is done");
    }),
  );

  test(
    "is written once for all that was said behind the last calls of the log",
    onRuntime(backend, async ({ database, another }) => {
      const counting = workflow("counting", async (ctx) => {
        const steps = [1, 2, 3].map((n) => ctx.step(`s${n}`, () => n));
        let done = 0;
        for (const step of steps) {
          await step;
          ctx.setProgress((done += 1));
        }
        await ctx.receive(go);
      });
      const meddling = new Meddling(database);
      const holdfast = await another({}, meddling.database);
      await recordedRun(holdfast, "r", "counting", [stepDone(1, "s1", 1), stepDone(2, "s2", 2)]);
      let written = 0;
      meddling.on("setProgress", () => {
        written += 1;
        return undefined;
      });
      await holdfast.work([counting]);
      const run = holdfast.get(counting, "r");
      await until(async () => (await run.progress()) === 3);
      // That of the second step, and that of the third.
      expect(written).toBe(2);
    }),
  );

  test(
    "is not written again when a run that waited is replayed",
    onRuntime(backend, async ({ database, another }) => {
      const meddling = new Meddling(database);
      const holdfast = await another({}, meddling.database);
      await holdfast.work([telling], { hotRunsMax: 0 });
      let written = 0;
      meddling.on("setProgress", () => {
        written += 1;
        return undefined;
      });
      const run = await holdfast.start(telling);
      await until(async () => (await kindsOf(holdfast, run.id)).includes("unlocked"));
      await run.signal(go);
      await run.result();
      expect(written).toBe(2);
    }),
  );
}
