import { describe, expect, test } from "vitest";
import { activity, signal, workflow } from "../../../src/runtime/definition/definitions.ts";
import { manualClock } from "../../../src/model/time/clock.ts";
import type { Backend } from "../backend.ts";
import { T0 } from "../execution/fixture.ts";
import { onRuntime } from "./fixture.ts";
import { recordedRun, sleepAsked, stepDone } from "./recorded-run.ts";
import { kindsOf, Tally, until } from "./waiting.ts";

export function runtimeVersionsSuite(backend: Backend): void {
  describe("code that changes", () => {
    test(
      "a parked run whose result is awaited is told of once, with the reason and what to do",
      onRuntime(backend, async ({ another, said }) => {
        const go = signal<boolean>("go");
        const clock = manualClock(T0);
        const first = await another({ clock });
        const second = await another({ clock });
        const before = workflow("changing", async (ctx) => {
          await ctx.step("one", () => 1);
          await ctx.receive(go);
        });
        const after = workflow("changing", async (ctx) => {
          await ctx.step("other", () => 1);
        });
        await first.work([before], { hotRunsMax: 0 });
        const run = await first.start(before, undefined, { id: "r" });
        await until(async () => (await run.status()) === "blocked");
        await first.close({ timeout: "1s" });
        await second.work([after]);
        await second.get(after, "r").signal(go, true);
        await until(async () => (await second.get(after, "r").status()) === "parked");
        const handle = second.get(after, "r");
        const waits = [handle.result(), handle.result()];
        for (const wait of waits) wait.catch(() => undefined);
        const told = () => said.filter(({ message }) => message.includes("run.unpark()"));
        await until(() => {
          clock.advance(100);
          return told().length > 0;
        });
        expect(told()).toHaveLength(1);
        expect(told()[0]).toMatchObject({
          level: "warn",
          details: { id: "r", code: "NONDETERMINISM" },
        });
        expect(told()[0]?.message).toContain('recorded: step "one"');
        // It is looked at again, and not told of again.
        clock.advance(60_000);
        await handle.cancel({ force: true });
        await Promise.allSettled(waits);
        expect(told()).toHaveLength(1);
      }),
    );

    test.each(["workflow", "activity"] as const)(
      "[RT17] a %s whose name is that of another kind of function is parked before any code of it runs, and goes on with code of its kind",
      (role) =>
        onRuntime(backend, async ({ holdfast, another, said }) => {
          const tally = new Tally();
          const body = async (): Promise<string> => {
            tally.count("ran");
            return "done";
          };
          const asWorkflow = workflow("charge", body);
          const asActivity = activity("charge", body);
          const [right, wrong] =
            role === "workflow" ? [asWorkflow, asActivity] : [asActivity, asWorkflow];
          const kind = role === "workflow" ? "an activity" : "a workflow";
          await holdfast.work([wrong]);
          // By its name, by its code, and where it would begin at once.
          await holdfast.executions.create({
            id: "r",
            function: "charge",
            role,
          });
          await holdfast.start(right, undefined, { id: "s" });
          for (const id of ["r", "s"]) {
            const run = holdfast.get(right, id);
            await until(async () => (await run.status()) === "parked");
            const { interruption } = await holdfast.executions.get(id);
            expect(interruption).toMatchObject({
              code: "FUNCTION_MISMATCH",
              reason: expect.stringContaining(`is ${kind}`),
            });
            expect(await kindsOf(holdfast, id)).toEqual(["created", "locked", "parked"]);
          }
          expect(tally.of("ran")).toBe(0);
          await until(() => said.some(({ details }) => details["kind"] === "runParked"));
          expect(said).toContainEqual(
            expect.objectContaining({
              level: "error",
              details: expect.objectContaining({ id: "r", code: "FUNCTION_MISMATCH" }),
            }),
          );
          await holdfast.close({ timeout: "1s" });
          const mended = await another();
          await mended.work([right]);
          const run = mended.get(right, "r");
          await run.unpark();
          expect(await run.result()).toBe("done");
          expect(tally.of("ran")).toBe(1);
        })(),
    );

    test.each(["workflow", "activity"] as const)(
      "[RT17] a %s whose name is that of another kind of function is left to a code version that has its kind",
      (role) =>
        onRuntime(backend, async ({ holdfast, another }) => {
          const asWorkflow = workflow("charge", async () => "workflow");
          const asActivity = activity("charge", async () => "activity");
          const [right, wrong] =
            role === "workflow" ? [asWorkflow, asActivity] : [asActivity, asWorkflow];
          await holdfast.work([wrong], { codeVersion: "wrong" });
          const run = await holdfast.start(right, undefined, { id: "r" });
          await until(async () => (await run.status()) === "parked");
          const other = await another();
          await other.work([right], { codeVersion: "right" });
          expect(await run.result()).toBe(role);
        })(),
    );

    test.each(["workflow", "activity"] as const)(
      "[RT17] a %s whose name is that of another kind of function ends when it is cancelled, and so do its children",
      (role) =>
        onRuntime(backend, async ({ holdfast, another }) => {
          const go = signal<boolean>("go");
          const waiting = workflow("waiting", async (ctx) => {
            await ctx.receive(go);
          });
          const asWorkflow = workflow("charge", async (ctx) => {
            await ctx.call(waiting);
          });
          const tally = new Tally();
          const asActivity = activity("charge", async () => {
            tally.count("ran");
          });
          const wrong =
            role === "workflow"
              ? asActivity
              : workflow("charge", async () => {
                  tally.count("ran");
                });
          if (role === "workflow") {
            await holdfast.work([asWorkflow, waiting], { hotRunsMax: 0 });
            await holdfast.start(asWorkflow, undefined, { id: "r" });
            await until(async () => {
              const { status } = await holdfast.executions.get("r");
              return status === "blocked";
            });
          } else
            await holdfast.start(asActivity, undefined, {
              id: "r",
              startAt: { in: "1h" },
            });
          await holdfast.close({ timeout: "1s" });
          const other = await another();
          await other.executions.cancel("r", { reason: "not wanted" });
          await other.work([wrong, waiting]);
          expect(await other.executions.waitForResult("r")).toEqual({
            kind: "cancelled",
            reason: "not wanted",
          });
          const { items } = await other.executions.list({ parent: "r" });
          expect(items.map(({ status }) => status)).toEqual(
            role === "workflow" ? ["cancelled"] : [],
          );
          expect(tally.of("ran")).toBe(0);
        })(),
    );

    test(
      "[RT13] patched is true for new runs, false for those that had passed, and stays what it was in a loop",
      onRuntime(backend, async ({ holdfast }) => {
        const mailing = workflow("mailing", async (ctx) => {
          const seen: unknown[] = [];
          for (let turn = 0; turn < 2; turn += 1) {
            if (ctx.patched("mail-too")) seen.push(await ctx.step("mail", () => "mailed"));
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
        expect(await fresh.result()).toEqual(["mailed", "shipped", "mailed", "shipped"]);
        expect(await holdfast.get(mailing, "old").result()).toEqual(["shipped", "shipped"]);
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
        expect(await holdfast.get(parallel, "r").result()).toEqual([1, true, 2, "more"]);
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
          async (ctx, state: { turn: number; seen: string[]; ids: string[] }) => {
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
        const run = await holdfast.start(polling, { turn: 1, seen: [], ids: [] }, { id: "poller" });
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
        for (const number of sent) await Promise.all(runs.map((run) => run.signal(note, number)));
        for (const run of runs) expect(await run.result()).toEqual(sent);
      }),
    );

    test(
      "old and new workers side by side end each run the way it began: what does not fit one is parked by it and taken by the other",
      onRuntime(backend, async ({ holdfast, another }) => {
        const name = "rolling";
        const tally = new Tally();
        const old = workflow(name, async (ctx) => {
          await ctx.step("old way", () => tally.count("steps"));
          await ctx.sleep(5);
          return "old";
        });
        const fresh = workflow(name, async (ctx) => {
          await ctx.step("new way", () => tally.count("steps"));
          await ctx.sleep(5);
          return "new";
        });
        const other = await another();
        await holdfast.work([old], { codeVersion: "v1", hotRunsMax: 0 });
        await other.work([fresh], { codeVersion: "v2", hotRunsMax: 0 });
        const runs = await Promise.all(
          Array.from({ length: 10 }, (_, index) => (index % 2 === 0 ? holdfast : other).start(old)),
        );
        const results = await Promise.all(runs.map((run) => run.result()));
        const began = await Promise.all(
          runs.map(async (run) => {
            const { items } = await run.events({ kinds: ["stepFinished"] });
            return items.map(({ event }) => (event as { name: string }).name);
          }),
        );
        expect(began).toEqual(results.map((result) => [`${result} way`]));
        expect(tally.of("steps")).toBe(10);
        // None was left to nobody.
        const { items } = await holdfast.runs.list({ status: "parked" });
        expect(items).toEqual([]);
      }),
    );
  });
}
