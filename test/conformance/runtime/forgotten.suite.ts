import { AsyncResource } from "node:async_hooks";
import { describe, expect, onTestFinished, test } from "vitest";
import type { HoldfastError } from "../../../src/model/errors.ts";
import { signal, workflow } from "../../../src/runtime/definition/definitions.ts";
import type { WorkflowContext } from "../../../src/runtime/definition/workflow-context.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { onRuntime } from "./fixture.ts";
import { Meddling } from "./meddling.ts";
import { gate, kindsOf, Tally, until } from "./waiting.ts";

export function runtimeForgottenSuite(backend: Backend): void {
  describe("what nobody awaits", () => {
    test(
      "[RT11] [RT15] a rejecting step, a branch that rejects while the run sleeps: no unhandled rejection",
      onRuntime(backend, async ({ holdfast, said }) => {
        const careless = workflow("careless", async (ctx) => {
          const fails = { retry: { maxRetries: 0 } };
          void ctx.step("forgotten", fails, () => Promise.reject(new Error("nobody asked")));
          const branch = (async () => {
            await ctx.step("branch", fails, () => {
              throw new Error("too early");
            });
          })();
          await ctx.sleep(30);
          try {
            await branch;
          } catch (error) {
            return (error as Error).message;
          }
          return "nothing was thrown";
        });
        const ofNode: string[] = [];
        const listener = ({ name, message }: Error): void =>
          void ofNode.push(`${name}: ${message}`);
        process.on("warning", listener);
        onTestFinished(() => void process.off("warning", listener));
        await holdfast.work([careless]);
        const run = await holdfast.start(careless);
        expect(await run.result()).toBe("too early");
        expect(said.filter(({ message }) => message.includes("no code awaits"))).toHaveLength(1);
        expect(ofNode.filter((warning) => warning.includes("Rejection"))).toEqual([]);
      }),
    );

    test(
      "a call by what an ended step or transaction left behind is its run's rejection too",
      onRuntime(backend, async ({ holdfast, said }) => {
        const late: (() => void)[] = [];
        const leaves = workflow("leaves", async (ctx) => {
          const leave = (): void => void late.push(AsyncResource.bind(() => void ctx.sleep(1)));
          await ctx.step("s", leave);
          await ctx.step("later", async () => leave());
          await ctx.transaction("t", function* () {
            leave();
          });
          await ctx
            .transaction("u", () => {
              leave();
              throw new Error("before there is a body");
            })
            .catch(() => undefined);
          void ctx.step("dropped", () => {
            leave();
            return new Promise(() => undefined);
          });
          return "ended";
        });
        await holdfast.work([leaves]);
        const run = await holdfast.start(leaves);
        expect(await run.result()).toBe("ended");
        expect(late).toHaveLength(5);
        for (const call of late) call();
        const told = (step: string): boolean =>
          said.some(
            ({ message }) =>
              message.includes("no code awaits") && message.includes(`called inside "${step}"`),
          );
        await until(() => ["s", "later", "t", "u", "dropped"].every(told));
      }),
    );

    test(
      "a call that is refused is its run's rejection, also when something foreign made it",
      onRuntime(backend, async ({ holdfast, said }) => {
        const late: (() => void)[] = [];
        const left = workflow("left", async (ctx) => {
          late.push(() => void ctx.sleep(1));
          return "ended";
        });
        await holdfast.work([left]);
        const run = await holdfast.start(left);
        expect(await run.result()).toBe("ended");
        // Here, and not where the run is: as an emitter or a socket would.
        for (const call of late) call();
        await until(() =>
          said.some(
            ({ message }) => message.includes(run.id) && message.includes("no code awaits"),
          ),
        );
      }),
    );

    test(
      "a step that runs on when the code has returned is warned about once; calls of ctx after the end begin nothing",
      onRuntime(backend, async ({ holdfast, said }) => {
        const done: string[] = [];
        const late = gate();
        const refused = gate();
        const hasty = workflow("hasty", async (ctx) => {
          void ctx.step("slow", () => late.opened);
          void late.opened.then(async () => {
            try {
              await ctx.step("late", () => done.push("late"));
            } catch (error) {
              done.push((error as HoldfastError).code);
            }
            refused.open();
          });
          await ctx.step("first", () => done.push("first"));
          return "done";
        });
        await holdfast.work([hasty]);
        for (const id of ["one", "two"]) {
          const run = await holdfast.start(hasty, undefined, { id });
          expect(await run.result()).toBe("done");
        }
        late.open();
        await refused.opened;
        await until(() => done.length === 4);
        expect(done).toEqual(["first", "first", "RUN_ENDED", "RUN_ENDED"]);
        expect(said.filter(({ message }) => message.includes('step "slow"'))).toHaveLength(1);
      }),
    );

    test(
      "continueWith whose result is not returned parks the run, which goes on when the code is mended",
      onRuntime(backend, async ({ holdfast, another }) => {
        const forgetful = workflow("counting", async (ctx, n: number) => {
          await ctx.step("count", () => n);
          if (n < 2) ctx.continueWith(n + 1);
          return n;
        });
        await holdfast.work([forgetful]);
        const run = await holdfast.start(forgetful, 0, { id: "counting" });
        await until(async () => (await run.status()) === "parked");
        const waited = await rejection(run.result({ timeout: 0 }));
        expect(waited).toMatchObject({
          code: "DEADLINE_EXCEEDED",
          details: { status: "parked" },
        });
        expect(waited.message).toContain("return ctx.continueWith");
        await holdfast.close();
        const mended = workflow("counting", async (ctx, n: number) => {
          await ctx.step("count", () => n);
          return n < 2 ? ctx.continueWith(n + 1) : n;
        });
        const other = await another();
        await other.work([mended]);
        await other.get(mended, "counting").unpark();
        expect(await other.get(mended, "counting").result()).toBe(2);
      }),
    );

    test(
      "[RT11] [E74] children that are open when the code returns are cancelled and awaited, the loser of a race too",
      onRuntime(backend, async ({ holdfast }) => {
        const asleep = workflow("asleep", async (ctx) => ctx.sleep("1 day"));
        const quick = workflow("quick", async () => "quick");
        const parent = workflow("parent", async (ctx) => {
          ctx.spawn(asleep);
          ctx.spawn(asleep);
          return Promise.race([ctx.call(asleep), ctx.call(quick), ctx.sleep("1 day")]);
        });
        await holdfast.work([parent, asleep, quick]);
        const run = await holdfast.start(parent, undefined, { id: "p" });
        expect(await run.result()).toBe("quick");
        const { items } = await holdfast.executions.tree("p");
        expect(items.map(({ status }) => status).toSorted()).toEqual([
          "cancelled",
          "cancelled",
          "cancelled",
          "completed",
          "completed",
        ]);
        expect(await holdfast.executions.nextTimerAt()).toBeUndefined();
      }),
    );

    test(
      "[E74] children are cancelled newest first and awaited, those of a set by its close, and the others at the end of the run",
      onRuntime(backend, async ({ database, another }) => {
        const meddling = new Meddling(database);
        const holdfast = await another({}, meddling.database);
        const asked: string[] = [];
        meddling.on("requestCancellation", (go, { id }: { id: string }) => {
          asked.push(id);
          return go();
        });
        const begun = new Tally();
        const ended: string[] = [];
        const asleep = workflow("asleep", async (ctx, name: string) => {
          begun.count("children");
          try {
            await ctx.sleep("1 day");
          } finally {
            // It takes a while, so that who does not wait is found out.
            await ctx.sleep(20);
            ended.push(name);
          }
        });
        const ids: string[] = [];
        const parent = workflow("parent", async (ctx) => {
          const set = ctx.joinSet("set");
          for (const name of ["a", "b", "c"]) ids.push(set.spawn(asleep, name).id);
          for (const name of ["d", "e"]) ids.push(ctx.spawn(asleep, name).id);
          await ctx.step("all", () => until(() => begun.of("children") === 5));
          await set.close();
          return ended.toSorted();
        });
        await holdfast.work([parent, asleep]);
        const run = await holdfast.start(parent);
        expect(await run.result()).toEqual(["a", "b", "c"]);
        expect(ended.toSorted()).toEqual(["a", "b", "c", "d", "e"]);
        const [a, b, c, d, e] = ids;
        expect(asked).toEqual([c, b, a, e, d]);
      }),
    );

    test(
      "[RT11] children are cancelled also when the code throws",
      onRuntime(backend, async ({ holdfast }) => {
        const asleep = workflow("asleep", async (ctx) => ctx.sleep("1 day"));
        const parent = workflow("parent", async (ctx) => {
          ctx.spawn(asleep);
          await ctx.sleep(1);
          throw new Error("gave up");
        });
        await holdfast.work([parent, asleep]);
        const run = await holdfast.start(parent, undefined, { id: "p" });
        expect((await rejection(run.result())).message).toContain("gave up");
        const { items } = await holdfast.executions.tree("p");
        expect(items.map(({ status }) => status)).toEqual(["failed", "cancelled"]);
      }),
    );

    test(
      "[RT11] a step that still runs when the code returns is aborted, and does not hold up the end",
      onRuntime(backend, async ({ holdfast }) => {
        const aborted = gate();
        const hasty = workflow("hasty", async (ctx) => {
          void ctx.step("slow", ({ abortSignal }) => {
            abortSignal.addEventListener("abort", () => aborted.open());
            return new Promise(() => undefined);
          });
          return "done";
        });
        await holdfast.work([hasty]);
        expect(await (await holdfast.start(hasty)).result()).toBe("done");
        await aborted.opened;
      }),
    );

    test(
      "[E71] a closed set takes no more children, which is an error in the code that asks",
      onRuntime(backend, async ({ holdfast }) => {
        const asleep = workflow("asleep", async (ctx) => ctx.sleep("1 day"));
        const closing = workflow("closing", async (ctx) => {
          const set = ctx.joinSet("sleepers");
          set.spawn(asleep);
          await set.close();
          set.spawn(asleep);
        });
        await holdfast.work([closing, asleep]);
        const error = await rejection((await holdfast.start(closing)).result());
        expect(error.cause).toMatchObject({ code: "JOIN_SET_CLOSED" });
      }),
    );

    test(
      "a run that waits for something that is not ctx's is named, and one that was resumed by it too",
      onRuntime(backend, async ({ holdfast, said }) => {
        const foreign = gate();
        const impatient = workflow("impatient", async (ctx) => {
          await foreign.opened;
          return ctx.step("after", () => 1);
        });
        await holdfast.work([impatient]);
        const run = await holdfast.start(impatient);
        await until(() => said.some(({ message }) => message.includes("something outside ctx")));
        foreign.open();
        expect(await run.result()).toBe(1);
        const told = said.filter(({ message }) => message.includes("not recorded"));
        expect(told).toHaveLength(1);
        expect(String(told[0]?.details["stack"])).toContain("forgotten.suite.ts");
        expect(await kindsOf(holdfast, run.id)).not.toContain("parked");
      }),
    );

    for (const [before, call] of Object.entries(refusedCalls))
      test(
        `a run that waits for something else than ctx, behind ${before}, stays due, so that it begins again when its process is killed`,
        onRuntime(backend, async ({ holdfast, said }) => {
          const elsewhere = gate();
          const foreign = workflow("foreign", async (ctx) => {
            ctx.patched("new");
            const refused = await rejection((async () => call(ctx))());
            await elsewhere.opened;
            return refused.message;
          });
          await holdfast.work([foreign]);
          const run = await holdfast.start(foreign);
          await until(() => said.some(({ message }) => message.includes("something outside ctx")));
          expect(await kindsOf(holdfast, run.id)).toEqual(["created", "locked", "patched"]);
          elsewhere.open();
          expect(await run.result()).not.toBe("");
        }),
      );
  });
}

const wrong = { timeout: "soon" as never };

/** Calls that throw before there is anything to wait for. */
const refusedCalls: Readonly<Record<string, (ctx: WorkflowContext) => unknown>> = {
  "a patch": () => {
    throw new Error("none");
  },
  "a step with a wrong option": (ctx) => ctx.step("s", wrong, () => 1),
  "a receive with a wrong option": (ctx) => ctx.receive(signal("go"), wrong),
};
