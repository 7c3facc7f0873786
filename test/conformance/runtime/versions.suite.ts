import { describe, expect, test } from "vitest";
import { signal, workflow } from "../../../src/runtime/definitions.ts";
import type { Backend } from "../backend.ts";
import { onRuntime } from "./fixture.ts";
import { recordedRun, sleepAsked, stepDone } from "./recorded-run.ts";
import { kindsOf, Tally, until } from "./waiting.ts";

export function runtimeVersionsSuite(backend: Backend): void {
  describe("code that changes", () => {
    test(
      "[RT13] patched is true for new runs, false for those that had passed, and stays what it was in a loop",
      onRuntime(backend, async ({ holdfast }) => {
        const mailing = workflow("mailing", async (ctx) => {
          const seen: unknown[] = [];
          for (let turn = 0; turn < 2; turn += 1) {
            if (ctx.patched("mail-too"))
              seen.push(await ctx.step("mail", () => "mailed"));
            seen.push(await ctx.step("ship", () => "shipped"));
            await ctx.sleep(1);
          }
          return seen;
        });
        // Old code shipped and slept.
        await recordedRun(holdfast, "old", "mailing", [
          stepDone(1, "ship", "shipped"),
          sleepAsked("old", 2, 1),
        ]);
        await holdfast.work([mailing], { hotRunsMax: 0 });
        const fresh = await holdfast.start(mailing);
        expect(await fresh.result()).toEqual([
          "mailed",
          "shipped",
          "mailed",
          "shipped",
        ]);
        expect(await holdfast.get(mailing, "old").result()).toEqual([
          "shipped",
          "shipped",
        ]);
        const kinds = await kindsOf(holdfast, fresh.id);
        expect(kinds.filter((kind) => kind === "patched")).toHaveLength(1);
      }),
    );

    test(
      "[RT13] patched is true again when a kill came before it was recorded, between two outcomes of one append",
      onRuntime(backend, async ({ holdfast }) => {
        const parallel = workflow("parallel", async (ctx) => {
          const seen: unknown[] = [];
          await Promise.all([
            ctx
              .step("first", () => 0)
              .then(async (value) => {
                const isNew = ctx.patched("more");
                seen.push(value, isNew);
                if (isNew) seen.push(await ctx.step("more", () => "more"));
              }),
            ctx.step("second", () => 0).then((value) => seen.push(value)),
          ]);
          return seen;
        });
        await recordedRun(holdfast, "r", "parallel", [
          stepDone(1, "first", 1),
          stepDone(2, "second", 2),
        ]);
        await holdfast.work([parallel]);
        expect(await holdfast.get(parallel, "r").result()).toEqual([
          1,
          true,
          2,
          "more",
        ]);
      }),
    );

    test(
      "[RT13] continueWith begins anew under the id, with children and sleeps of the same numbers, and keeps unread signals",
      onRuntime(backend, async ({ holdfast }) => {
        const note = signal<string>("note");
        const tally = new Tally();
        const child = workflow("child", async (_, n: number) => n * 10);
        const polling = workflow(
          "polling",
          async (
            ctx,
            state: { turn: number; seen: string[]; ids: string[] },
          ) => {
            await ctx.step("poll", () => tally.count(`poll ${state.turn}`));
            const product = await ctx.call(child, state.turn);
            await ctx.sleep(1);
            const ids = [...state.ids, ctx.uuid()];
            if (state.turn < 3)
              return ctx.continueWith({
                turn: state.turn + 1,
                seen: [...state.seen, String(product)],
                ids,
              });
            const kept = [await ctx.receive(note), await ctx.receive(note)];
            return { seen: state.seen, kept, ids: new Set(ids).size };
          },
        );
        const run = await holdfast.start(
          polling,
          { turn: 1, seen: [], ids: [] },
          { id: "poller" },
        );
        await run.signal(note, "first");
        await run.signal(note, "second");
        await holdfast.work([polling, child], { hotRunsMax: 0 });
        expect(await run.result()).toEqual({
          seen: ["10", "20"],
          kept: ["first", "second"],
          ids: 3,
        });
        expect(tally.all).toEqual({ "poll 1": 1, "poll 2": 1, "poll 3": 1 });
      }),
    );

    test(
      "two functions of one name are refused, the same one twice is not",
      onRuntime(backend, async ({ holdfast }) => {
        const one = workflow("same", async () => 1);
        const other = workflow("same", async () => 2);
        await expect(holdfast.work([one, other])).rejects.toMatchObject({
          code: "FUNCTION_CONFLICT",
        });
        await holdfast.work([one, one]);
        await expect(holdfast.work([other])).rejects.toMatchObject({
          code: "FUNCTION_CONFLICT",
        });
      }),
    );

    test(
      "[RT13] no signal is lost or read twice, however often the run begins anew while they come",
      onRuntime(backend, async ({ holdfast }) => {
        const note = signal<number>("note");
        const sent = Array.from({ length: 12 }, (_, index) => index);
        const reading = workflow("reading", async (ctx, read: number[]) => {
          await ctx.step("look", () => 0);
          const next = await ctx.receive(note, { timeout: 0 });
          const all = next === undefined ? read : [...read, next];
          return all.length < sent.length ? ctx.continueWith(all) : all;
        });
        await holdfast.work([reading]);
        const runs = await holdfast.startMany(
          reading,
          Array.from({ length: 6 }, () => ({ input: [] })),
        );
        for (const number of sent)
          await Promise.all(runs.map((run) => run.signal(note, number)));
        for (const run of runs)
          expect(await run.result({ timeout: "20s" })).toEqual(sent);
      }),
    );

    test(
      "old and new workers side by side leave each other's runs alone",
      onRuntime(backend, async ({ holdfast, another }) => {
        const name = "rolling";
        const old = workflow(name, async (ctx) => {
          await ctx.step("old way", () => 1);
          await ctx.sleep(5);
          return "old";
        });
        const fresh = workflow(name, async (ctx) => {
          await ctx.step("new way", () => 1);
          await ctx.sleep(5);
          return "new";
        });
        const other = await another();
        await holdfast.work([old], { codeVersion: "v1", hotRunsMax: 0 });
        await other.work([fresh], { codeVersion: "v2", hotRunsMax: 0 });
        const runs = await Promise.all(
          Array.from({ length: 10 }, (_, index) =>
            (index % 2 === 0 ? holdfast : other).start(old),
          ),
        );
        const results = await Promise.all(
          runs.map((run) => run.result({ timeout: "30s" })),
        );
        expect(
          results.every((result) => result === "old" || result === "new"),
        ).toBe(true);
        await until(
          async () =>
            (await holdfast.runs.list({ status: "parked" })).items.length === 0,
        );
      }),
    );
  });
}
