import { describe, expect, test } from "vitest";
import { manualClock } from "../../../src/model/time/clock.ts";
import { activity, workflow } from "../../../src/runtime/definition/definitions.ts";
import { Traffic } from "../../../src/testing/traffic.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { onRuntime } from "./fixture.ts";
import { until } from "./waiting.ts";

const T0 = 1_700_000_000_000;
const hour = 3_600_000;
const day = 24 * hour;

export function runtimeRetentionSuite(backend: Backend): void {
  describe("runs that have ended", () => {
    test(
      "are removed by workers when their function says so, with all below them, failed ones later, others never",
      onRuntime(backend, async ({ database, another, said }) => {
        const clock = manualClock(T0);
        const traffic = new Traffic();
        const watched = traffic.over(database);
        const holdfast = await another({ clock }, watched);
        const part = activity("part", async () => 1);
        const brief = workflow(
          "brief",
          { keep: "1 hour", keepFailed: "1 day" },
          async (ctx, isGood: boolean) => {
            await ctx.call(part);
            if (!isGood) throw new Error("bad");
          },
        );
        const lasting = workflow("lasting", async () => 1);
        const functions = [part, brief, lasting];
        await holdfast.work(functions);
        await (await another({ clock }, watched)).work(functions);
        const good = await holdfast.start(brief, true, { id: "good" });
        const bad = await holdfast.start(brief, false, { id: "bad" });
        const old = await holdfast.start(lasting, undefined, { id: "old" });
        await Promise.all([good.result(), old.result()]);
        await rejection(bad.result());
        const ids = async (): Promise<readonly string[]> =>
          (await holdfast.runs.list({ topLevelOnly: true })).items
            .map(({ id }) => id as string)
            .toSorted();
        const gone = async (id: string): Promise<number> => {
          await until(async () => {
            // What was to go by now is gone, however long that takes: else a day might have passed meanwhile.
            await traffic.quiet(() => false);
            if (!(await ids()).includes(id)) return true;
            clock.advance(10 * 60_000);
            return false;
          });
          return clock.now() - T0;
        };
        expect(await gone("good")).toBeGreaterThan(hour);
        expect(await ids()).toEqual(["bad", "old"]);
        expect(await gone("bad")).toBeGreaterThan(day);
        expect(await ids()).toEqual(["old"]);
        expect((await holdfast.runs.list()).items).toHaveLength(1);
        expect(await rejection(good.result())).toMatchObject({
          code: "EXECUTION_NOT_FOUND",
        });
        expect(said.filter(({ message }) => message.includes("could not be removed"))).toEqual([]);
      }),
    );

    test(
      "and could not be removed yet, go with a later sweep",
      onRuntime(backend, async ({ database, another }) => {
        const clock = manualClock(T0);
        const traffic = new Traffic();
        const holdfast = await another({ clock }, traffic.over(database));
        const { executions } = holdfast;
        const brief = workflow("brief", { keep: "1 hour" }, async () => 1);
        await executions.create({ id: "top", function: "brief" });
        await executions.create({ id: "top.n:a_1", function: "nobody" });
        const done = { kind: "completed", value: 1 } as const;
        await executions.finish("top", 1, done);
        await holdfast.work([brief]);
        const isThere = async (id: string): Promise<boolean> =>
          (await holdfast.runs.list()).items.some((run) => run.id === id);
        // Far less often than a worker begins from the start anyway.
        const sweeps = async (): Promise<void> => {
          for (let sweep = 0; sweep < 3; sweep += 1) {
            await traffic.quiet(() => false);
            clock.advance(hour);
          }
          await traffic.quiet(() => false);
        };
        await sweeps();
        expect(await isThere("top")).toBe(true);
        await executions.finish("top.n:a_1", 1, done);
        await sweeps();
        expect(await isThere("top")).toBe(false);
      }),
    );

    test(
      "for what is no duration is refused: nothing is removed by mistake",
      onRuntime(backend, async () => {
        for (const options of [{ keep: "soon" }, { keepFailed: -1 }])
          expect(() => workflow("w", options as never, async () => 1)).toThrow(
            expect.objectContaining({ code: "DURATION_INVALID" }),
          );
      }),
    );
  });
}
