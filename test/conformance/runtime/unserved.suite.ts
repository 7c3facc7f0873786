import { describe, expect, test } from "vitest";
import { manualClock } from "../../../src/model/time/clock.ts";
import { workflow } from "../../../src/runtime/definition/definitions.ts";
import type { RuntimeEvent } from "../../../src/runtime/runtime-event.ts";
import { schedule } from "../../../src/runtime/schedules/schedule.ts";
import type { Backend } from "../backend.ts";
import { onRuntime } from "./fixture.ts";
import { gate, until } from "./waiting.ts";

const T0 = 1_700_000_000_000;

const warnings = (said: readonly RuntimeEvent[]) =>
  said.filter(({ message }) => message.startsWith("No worker has taken"));

export function runtimeUnservedSuite(backend: Backend): void {
  describe("functions nobody serves", () => {
    test(
      "are named by the status of their runs and warned about once, and are run when somebody comes",
      onRuntime(backend, async ({ another, said }) => {
        const clock = manualClock(T0);
        const client = await another({ clock });
        const lonely = workflow("lonely", async () => "served");
        const first = await client.start(lonely, undefined, { id: "first" });
        const second = await client.start(lonely, undefined, { id: "second" });
        expect(await first.status()).toBe("pending");
        clock.set(T0 + 1_999);
        expect(await first.status()).toBe("pending");
        clock.set(T0 + 2_000);
        expect(await first.status()).toBe("unserved");
        await until(() => warnings(said).length > 0);
        await client.start(lonely, undefined, { id: "third" });
        clock.set(T0 + 10_000);
        expect(await second.status()).toBe("unserved");
        await expect(second.result({ timeout: 0 })).rejects.toMatchObject({
          code: "DEADLINE_EXCEEDED",
          details: { status: "unserved" },
        });
        expect(warnings(said)).toMatchObject([
          {
            level: "warn",
            message: expect.stringContaining('run first of "lonely"') as string,
            details: { id: "first", function: "lonely" },
          },
        ]);
        const server = await another({ clock });
        await server.work([lonely]);
        expect(await first.result()).toBe("served");
        expect(await second.result()).toBe("served");
        expect(await first.status()).toBe("completed");
      }),
    );

    test(
      "are warned about also when others were started a moment before",
      onRuntime(backend, async ({ another, said }) => {
        const clock = manualClock(T0);
        const client = await another({ clock });
        const first = workflow("first", async () => undefined);
        const second = workflow("second", async () => undefined);
        await client.start(first);
        clock.set(T0 + 1_000);
        await client.start(second);
        for (const [at, count] of [
          [T0 + 2_000, 1],
          [T0 + 4_000, 2],
        ] as const) {
          clock.set(at);
          await until(() => warnings(said).length === count);
        }
        expect(warnings(said)).toMatchObject([
          { details: { function: "first" } },
          { details: { function: "second" } },
        ]);
      }),
    );

    test(
      "are warned about by a process that only starts their runs by a schedule",
      onRuntime(backend, async ({ another, said }) => {
        const clock = manualClock(T0);
        const lonely = workflow("lonely", async () => "served");
        const minutely = schedule("minutely", { every: "1 minute" }, lonely);
        const holdfast = await another({ clock });
        await holdfast.work([minutely]);
        clock.set(T0 + 60_000);
        const started = async () => (await holdfast.runs.list({ tag: "schedule:minutely" })).items;
        await until(async () => (await started()).length > 0);
        await until(() => {
          // Workers look at everything again after a minute.
          clock.set(Math.min(clock.now() + 1_000, T0 + 100_000));
          return warnings(said).length > 0;
        });
        expect(warnings(said)).toMatchObject([{ level: "warn", details: { function: "lonely" } }]);
      }),
    );

    test(
      "are found by workers: children of theirs, and what was left by code that is gone",
      onRuntime(backend, async ({ another, said }) => {
        const clock = manualClock(T0);
        const gone = workflow("gone", async () => undefined);
        const child = workflow("child", async () => undefined);
        const parent = workflow("parent", async (ctx) => ctx.call(child));
        await (await another({ clock })).start(gone, undefined, { id: "g" });
        const holdfast = await another({ clock });
        await holdfast.work([parent]);
        const run = await holdfast.start(parent, undefined, { id: "p" });
        await until(async () => (await run.status()) === "blocked");
        clock.set(T0 + 2_000);
        await until(() => warnings(said).length >= 2);
        expect(new Set(warnings(said).map(({ details }) => details["function"]))).toEqual(
          new Set(["gone", "child"]),
        );
      }),
    );

    test(
      "are not those that somebody runs, however many wait",
      onRuntime(backend, async ({ another, said }) => {
        const clock = manualClock(T0);
        const begun = gate();
        const end = gate();
        const slow = workflow("slow", async (ctx) =>
          ctx.step("hold", async () => {
            begun.open();
            await end.opened;
          }),
        );
        const server = await another({ clock });
        await server.work([slow], { concurrency: 1 });
        const client = await another({ clock });
        const first = await client.start(slow);
        await begun.opened;
        const second = await client.start(slow);
        clock.set(T0 + 5_000);
        expect(await second.status()).toBe("pending");
        expect(warnings(said)).toEqual([]);
        end.open();
        await Promise.all([first.result(), second.result()]);
      }),
    );
  });
}
