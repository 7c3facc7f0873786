import { describe, expect, test } from "vitest";
import {
  activity,
  signal,
  workflow,
} from "../../../src/runtime/definitions.ts";
import type { Run } from "../../../src/runtime/run-handle.ts";
import type { Backend } from "../backend.ts";
import { onRuntime } from "./fixture.ts";
import { gate, kindsOf, Tally, until } from "./waiting.ts";

export function runtimeManySuite(backend: Backend): void {
  describe("many at once", () => {
    test(
      "[RT15] 1,500 children of one parent are asked for in appends that fit",
      onRuntime(backend, async ({ holdfast }) => {
        const child = workflow("child", async (_, n: number) => n);
        const parent = workflow("parent", async (ctx) => {
          const all = await Promise.all(
            Array.from({ length: 1_500 }, (_, n) => ctx.call(child, n)),
          );
          return all.reduce((a, b) => a + b, 0);
        });
        await holdfast.work([parent, child]);
        const run = await holdfast.start(parent);
        expect(await run.result()).toBe((1_499 * 1_500) / 2);
      }),
    );

    test(
      "[RT15] four parents at concurrency 4 do not starve their children",
      onRuntime(backend, async ({ holdfast }) => {
        const child = activity("child", async (_, n: number) => n);
        const parent = workflow("parent", async (ctx, n: number) =>
          ctx.call(child, n),
        );
        await holdfast.work([parent, child], { concurrency: 4 });
        const runs = await Promise.all(
          [1, 2, 3, 4].map((n) => holdfast.start(parent, n)),
        );
        expect(await Promise.all(runs.map((run) => run.result()))).toEqual([
          1, 2, 3, 4,
        ]);
      }),
    );

    test(
      "runs that wait are kept in memory while their values fit, and going on costs the others one replay",
      onRuntime(backend, async ({ holdfast }) => {
        const go = signal("go");
        const tally = new Tally();
        const large = workflow("large", async (ctx, name: string) => {
          tally.count(`${name} begins`);
          const text = await ctx.step("read", () => {
            tally.count(`${name} reads`);
            return "x".repeat(100_000);
          });
          await ctx.receive(go);
          return text.length;
        });
        await holdfast.work([large], { hotBytesMax: 250_000 });
        const names = ["a", "b", "c", "d"];
        const runs: Run<number>[] = [];
        for (const id of names) {
          const run = await holdfast.start(large, id, { id });
          await until(async () => (await run.status()) === "blocked");
          runs.push(run);
        }
        const isEvicted = async (id: string): Promise<boolean> =>
          (await kindsOf(holdfast, id)).includes("unlocked");
        await until(() => isEvicted("b"));
        expect(await Promise.all(names.map(isEvicted))).toEqual([
          true,
          true,
          false,
          false,
        ]);
        for (const run of runs) await run.signal(go);
        for (const run of runs) expect(await run.result()).toBe(100_000);
        expect(tally.all).toEqual({
          "a begins": 2,
          "a reads": 1,
          "b begins": 2,
          "b reads": 1,
          "c begins": 1,
          "c reads": 1,
          "d begins": 1,
          "d reads": 1,
        });
      }),
    );

    test(
      "one function with many runs leaves places to others, also of a worker that has one",
      onRuntime(backend, async ({ holdfast, another }) => {
        const order: string[] = [];
        const busy = workflow("busy", async () => void order.push("busy"));
        const rare = workflow("rare", async () => void order.push("rare"));
        const starts = Array.from({ length: 120 }, () => ({
          input: undefined,
        }));
        const many = await holdfast.startMany(busy, starts);
        const few = await holdfast.startMany(rare, starts.slice(0, 3));
        await (await another()).work([busy, rare], { concurrency: 1 });
        await Promise.all([...many, ...few].map((run) => run.result()));
        expect(
          order.slice(0, 6).filter((name) => name === "rare"),
        ).toHaveLength(3);
      }),
    );

    test(
      "[E59] [E56] a worker at its limit locks nothing, and a function's limit holds over two workers",
      onRuntime(backend, async ({ holdfast, another }) => {
        const opened = gate();
        const tally = new Tally();
        let running = 0;
        const busy = activity("busy", { concurrency: 2 }, async () => {
          running += 1;
          tally.count(`at most ${Math.max(running, 2)}`);
          await opened.opened;
          running -= 1;
        });
        const other = await another();
        await holdfast.work([busy], { concurrency: 8 });
        await other.work([busy], { concurrency: 8 });
        const runs = await holdfast.startMany(
          busy,
          Array.from({ length: 6 }, () => ({ input: undefined })),
        );
        await until(() => running === 2);
        opened.open();
        await Promise.all(runs.map((run) => run.result()));
        expect(tally.all).toEqual({ "at most 2": 6 });
      }),
    );

    test(
      "[RT14] a history of many events and responses replays to the same end",
      onRuntime(backend, async ({ holdfast }) => {
        const tally = new Tally();
        const child = workflow("child", async (_, n: number) => n);
        const long = workflow("long", async (ctx) => {
          let sum = 0;
          for (let n = 0; n < 150; n += 1) {
            sum += await ctx
              .step(`step ${n}`, () => {
                tally.count("step");
                return { n, text: "x".repeat(8_000) };
              })
              .then((value) => value.n);
            if (n % 10 === 0) sum += await ctx.call(child, n);
          }
          await Promise.all(
            Array.from({ length: 250 }, (_, n) => ctx.call(child, n)),
          );
          await ctx.sleep(1);
          return sum;
        });
        await holdfast.work([long, child], { hotRunsMax: 0 });
        const run = await holdfast.start(long);
        // 0 + … + 149, and every tenth again.
        expect(await run.result({ timeout: "50s" })).toBe(11_175 + 1_050);
        expect(tally.of("step")).toBe(150);
      }),
    );

    test(
      "[E62] [E72] [E75] a set gives results as they come, and says when all were taken",
      onRuntime(backend, async ({ holdfast }) => {
        const gates = [gate(), gate()];
        const child = activity("child", async (_, n: number) => {
          await gates[n]?.opened;
          return n;
        });
        const parent = workflow("parent", async (ctx) => {
          const set = ctx.joinSet<number>();
          set.spawn(child, 0);
          set.spawn(child, 1);
          const before = set.try();
          const first = await set.next();
          const second = await set.next();
          return {
            before,
            first,
            second,
            third: await set.next(),
            after: set.try(),
          };
        });
        await holdfast.work([parent, child], { hotRunsMax: 0 });
        const run = await holdfast.start(parent, undefined, { id: "p" });
        await until(async () => (await run.status()) === "blocked");
        gates[1]?.open();
        await until(
          async () =>
            (await holdfast.executions.responses("p")).items.length === 1,
        );
        gates[0]?.open();
        expect(await run.result()).toEqual({
          before: { kind: "pending" },
          first: 1,
          second: 0,
          third: undefined,
          after: { kind: "allTaken" },
        });
      }),
    );

    test(
      "[E66] the token of an external is good as soon as a step can tell it, in place or later",
      onRuntime(backend, async ({ holdfast }) => {
        const told: string[] = [];
        const asking = workflow("telling", async (ctx, isSync: boolean) => {
          const answer = ctx.external<string>();
          await ctx.step("tell", () => {
            if (!isSync) return holdfast.resolve(answer.token, "early");
            told.push(answer.token);
            return undefined;
          });
          return answer.result();
        });
        await holdfast.work([asking]);
        const later = await holdfast.start(asking, false);
        expect(await later.result({ timeout: "20s" })).toBe("early");
        const inPlace = await holdfast.start(asking, true);
        await until(() => told.length > 0);
        await holdfast.resolve(told[0] ?? "", "at once");
        expect(await inPlace.result({ timeout: "20s" })).toBe("at once");
      }),
    );

    test(
      "[E66] [E67] an external is resolved by its token, twice with the same value, not with another",
      onRuntime(backend, async ({ holdfast }) => {
        const tokens: string[] = [];
        const asking = workflow("asking", async (ctx) => {
          const answer = ctx.external<string>();
          await ctx.step("mail the token", () => tokens.push(answer.token));
          return answer.result();
        });
        await holdfast.work([asking], { hotRunsMax: 0 });
        const run = await holdfast.start(asking);
        await until(() => tokens.length > 0);
        const [token = ""] = tokens;
        await expect(
          holdfast.resolve(`${token}0`, "guessed"),
        ).rejects.toMatchObject({ code: "AWAIT_TOKEN_INVALID" });
        await until(async () => (await run.status()) === "blocked");
        await holdfast.resolve(token, "yes");
        await holdfast.resolve(token, "yes");
        await expect(holdfast.resolve(token, "no")).rejects.toMatchObject({
          code: "RESOLUTION_CONFLICT",
        });
        expect(await run.result()).toBe("yes");
      }),
    );
  });
}
