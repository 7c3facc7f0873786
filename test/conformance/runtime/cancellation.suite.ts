import { describe, expect, test } from "vitest";
import type { HoldfastError } from "../../../src/model/errors.ts";
import { activity, signal, workflow } from "../../../src/runtime/definition/definitions.ts";
import type { GivenEvent } from "../../../src/model/execution/given-event.ts";
import { manualClock } from "../../../src/model/time/clock.ts";
import { byAnn, T0 } from "../execution/fixture.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { onRuntime } from "./fixture.ts";
import { Meddling } from "./meddling.ts";
import { recordedRun, stepDone } from "./recorded-run.ts";
import { gate, kindsOf, Tally, until } from "./waiting.ts";

const approval = signal("approval");

/** What a workflow records that waits for it as its second call. */
const asked: GivenEvent = {
  kind: "receiveRequested",
  signal: "approval",
  expiresAt: null,
  call: 2,
};
/** So that what is tried comes at various moments of a run; nothing depends on how long it takes. */
function moments(count: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, count * 2));
}

export function runtimeCancellationSuite(backend: Backend): void {
  describe("cancelling", () => {
    test(
      "[RT10] ends waits at once, lets the cleanup run durable steps, and ends as cancelled with its reason",
      onRuntime(backend, async ({ holdfast }) => {
        const saga = workflow("saga", async (ctx) => {
          const charge = await ctx.step("charge", () => "charged");
          try {
            await Promise.race([ctx.sleep("1 day"), ctx.receive(approval)]);
            return charge;
          } finally {
            await ctx.step("refund", () => `refunded what was ${charge}`);
            await ctx.sleep(1);
          }
        });
        await holdfast.work([saga], { hotRunsMax: 0 });
        const run = await holdfast.start(saga);
        await until(async () => (await run.status()) === "blocked");
        await run.cancel({ reason: "the customer called" });
        const error = await rejection(run.result());
        expect(error).toMatchObject({
          name: "RunFailedError",
          kind: "cancelled",
        });
        expect(error.message).toContain("the customer called");
        expect(await run.status()).toBe("cancelled");
        const kinds = await kindsOf(holdfast, run.id);
        expect(kinds.filter((kind) => kind === "stepFinished")).toHaveLength(2);
        expect(kinds.indexOf("cancellationDelivered")).toBeLessThan(
          kinds.lastIndexOf("stepFinished"),
        );
      }),
    );

    test(
      "[RT10] during a step aborts it, records how it ended, and goes no further than the cleanup",
      onRuntime(backend, async ({ holdfast }) => {
        const begun = gate();
        const seen: unknown[] = [];
        const stepping = workflow("stepping", async (ctx) => {
          try {
            await ctx.step("long", ({ abortSignal }) => {
              begun.open();
              return new Promise<string>((resolve) =>
                abortSignal.addEventListener("abort", () => resolve("told to stop")),
              );
            });
            await ctx.step("ship", () => seen.push("shipped"));
          } catch (error) {
            const { code, details } = error as HoldfastError;
            seen.push([code, details["outcome"], ctx.abortSignal.aborted]);
            await ctx.step("undo", () => seen.push("undone"));
            throw error;
          }
        });
        await holdfast.work([stepping]);
        const run = await holdfast.start(stepping);
        await begun.opened;
        await run.cancel();
        const error = await rejection(run.result());
        expect(error).toMatchObject({ kind: "cancelled" });
        expect(seen).toEqual([["RUN_CANCELLED", "completed", true], "undone"]);
        const { items } = await run.events({ kinds: ["stepFinished"] });
        expect(items.map(({ event }) => event)).toMatchObject([
          { name: "long", outcome: "completed", value: "told to stop" },
          { name: "undo", outcome: "completed" },
        ]);
      }),
    );

    test(
      "[RT10] ends what does not mind the abort where it stands: a loop of steps, a child that completes all the same, a join set",
      onRuntime(backend, async ({ holdfast }) => {
        const tally = new Tally();
        const untilGate = gate();
        const ignores = activity("ignores", async (_, begun: string) => {
          tally.count(begun);
          await untilGate.opened;
          return "done";
        });
        const ways = {
          steps: workflow("steps", async (ctx) => {
            for (let step = 0; step < 100; step += 1)
              await ctx.step("step", async () => {
                tally.count("steps");
                await untilGate.opened;
              });
          }),
          child: workflow("child", async (ctx) => {
            await ctx.call(ignores, "child");
            await ctx.sleep("1 hour");
          }),
          failing: workflow("failing", async (ctx) => {
            await ctx.step("aborted", ({ abortSignal }) => {
              tally.count("failing");
              return new Promise<never>((_, reject) =>
                abortSignal.addEventListener("abort", () => reject(abortSignal.reason as Error)),
              );
            });
          }),
          set: workflow("set", async (ctx) => {
            const set = ctx.joinSet("all");
            set.spawn(ignores, "set");
            await set.next();
            await ctx.sleep("1 hour");
          }),
          member: workflow("member", async (ctx) =>
            ctx.joinSet().spawn(ignores, "member").result(),
          ),
          closed: workflow("closed", async (ctx) => {
            const set = ctx.joinSet();
            set.spawn(ignores, "closed");
            await ctx.step("begun", () => until(() => tally.of("closed") > 0));
            await set.close();
          }),
        };
        const functions = Object.values(ways);
        await holdfast.work([...functions, ignores]);
        const runs = [];
        for (const fn of functions) runs.push(await holdfast.start(fn));
        await until(() => Object.keys(ways).every((name) => tally.of(name) === 1));
        for (const run of runs) await run.cancel();
        for (const run of runs)
          await until(
            async () =>
              (await kindsOf(holdfast, run.id)).includes("cancellationDelivered") ||
              (await run.status()) === "cancelled",
          );
        untilGate.open();
        for (const run of runs)
          expect(await rejection(run.result({ timeout: "20s" }))).toMatchObject({
            kind: "cancelled",
          });
        expect(tally.of("steps")).toBe(1);
      }),
    );

    test(
      "[RT10] asks children to end and waits for them; a detached run goes on",
      onRuntime(backend, async ({ holdfast }) => {
        const asleep = workflow("asleep", async (ctx) => ctx.sleep("1 day"));
        const parent = workflow("parent", async (ctx) => {
          await ctx.start(asleep, undefined, { id: "detached" });
          await Promise.all([ctx.call(asleep), ctx.call(asleep)]);
        });
        await holdfast.work([parent, asleep]);
        const run = await holdfast.start(parent, undefined, { id: "p" });
        await until(async () => (await holdfast.executions.tree("p")).items.length === 3);
        const detached = holdfast.get(asleep, "detached");
        await until(async () => (await detached.status()) === "blocked");
        await run.cancel();
        expect(await rejection(run.result())).toMatchObject({
          kind: "cancelled",
        });
        const { items } = await holdfast.executions.tree("p");
        expect(items.map(({ status }) => status)).toEqual(["cancelled", "cancelled", "cancelled"]);
        expect(await detached.status()).toBe("blocked");
      }),
    );

    test(
      "[RT10] of an activity aborts its attempt, and does not try again",
      onRuntime(backend, async ({ holdfast }) => {
        const begun = gate();
        const tally = new Tally();
        const endless = activity("endless", (ctx) => {
          tally.count("attempt");
          begun.open();
          return new Promise<void>((_, reject) =>
            ctx.abortSignal.addEventListener("abort", () => reject(new Error("stopped"))),
          );
        });
        await holdfast.work([endless]);
        const run = await holdfast.start(endless);
        await begun.opened;
        await run.cancel();
        expect(await rejection(run.result())).toMatchObject({
          kind: "cancelled",
        });
        expect(tally.of("attempt")).toBe(1);
      }),
    );

    test(
      "[RT10] with force ends a run and its children without running code",
      onRuntime(backend, async ({ holdfast }) => {
        const tally = new Tally();
        const asleep = workflow("asleep", async (ctx) => {
          try {
            await ctx.sleep("1 day");
          } finally {
            tally.count("cleanup");
          }
        });
        const parent = workflow("parent", async (ctx) => ctx.call(asleep));
        await holdfast.work([parent, asleep]);
        const run = await holdfast.start(parent, undefined, { id: "p" });
        await until(async () => (await holdfast.executions.tree("p")).items.length === 2);
        await run.cancel({ force: true });
        expect(await rejection(run.result())).toMatchObject({
          kind: "cancelled",
        });
        const { items } = await holdfast.executions.tree("p");
        expect(items.map(({ status }) => status)).toEqual(["cancelled", "cancelled"]);
        expect(tally.all).toEqual({});
      }),
    );

    test(
      "[RT10] with force runs no code either while those below have ended and the run has not",
      onRuntime(backend, async ({ holdfast, database, another, said }) => {
        const meddling = new Meddling(database);
        const forcing = await another({}, meddling.database);
        const tally = new Tally();
        const child = workflow("child", (ctx) => ctx.receive(approval));
        const parent = workflow("parent", async (ctx) => {
          try {
            await ctx.call(child);
          } finally {
            tally.count("went on");
          }
        });
        await holdfast.work([parent, child]);
        const run = await holdfast.start(parent, undefined, { id: "top" });
        const blocked = { status: "blocked" } as const;
        await until(async () => (await holdfast.runs.list(blocked)).items.length === 2);
        let calls = 0;
        const last = meddling.holdNext(
          "forceCancellation",
          "call",
          ({ id }: { readonly id: string }) => id === "top" && ++calls === 2,
        );
        const ended = forcing.get(parent, "top").cancel({ force: true });
        await last.reached;
        const taken = "This worker no longer has run top";
        await until(() => said.some((event) => event.message.includes(taken)));
        last.release();
        await ended;
        expect(await rejection(run.result())).toMatchObject({
          kind: "cancelled",
        });
        expect(tally.all).toEqual({});
      }),
    );

    test(
      "[RT10] with force stops a step that runs",
      onRuntime(backend, async ({ holdfast }) => {
        const begun = gate();
        const stopped = gate();
        const long = workflow("long", async (ctx) =>
          ctx.step("long", async ({ abortSignal }) => {
            abortSignal.addEventListener("abort", () => stopped.open());
            begun.open();
            await stopped.opened;
          }),
        );
        await holdfast.work([long]);
        const run = await holdfast.start(long);
        await begun.opened;
        await run.cancel({ force: true });
        await stopped.opened;
        expect(await run.status()).toBe("cancelled");
      }),
    );

    test(
      "[RT10] ends a cleanup that hangs after its time",
      onRuntime(backend, async ({ holdfast }) => {
        const hanging = workflow("hanging", { cleanupTimeout: 20 }, async (ctx) => {
          try {
            await ctx.sleep("1 day");
          } finally {
            await ctx.sleep("1 day");
          }
        });
        await holdfast.work([hanging]);
        const run = await holdfast.start(hanging);
        await until(async () => (await run.status()) === "blocked");
        await run.cancel();
        expect(await rejection(run.result())).toMatchObject({
          kind: "cancelled",
        });
      }),
    );

    test(
      "[RT10] a cleanup that was cut off by a crash goes on behind what it had recorded, in the same order",
      onRuntime(backend, async ({ holdfast }) => {
        const tally = new Tally();
        const order: string[] = [];
        const saga = workflow("saga", async (ctx) => {
          await ctx.step("charge", () => tally.count("charge"));
          try {
            await ctx.receive(approval);
          } catch (error) {
            order.push((error as { code: string }).code);
            await ctx.step("refund", () => tally.count("refund"));
            order.push("refunded");
            await ctx.step("mail", () => tally.count("mail"));
            throw error;
          }
        });
        const { executions } = holdfast;
        await executions.createLocked({ id: "r", function: "saga" }, { ...byAnn, lease: "1 hour" });
        const { holder: fence } = byAnn;
        const before = [stepDone(1, "charge", 1), asked];
        await executions.append("r", 2, before, { fence });
        await executions.cancel("r", { reason: "too late" });
        const cleanup: GivenEvent[] = [
          { kind: "cancellationDelivered", call: 2 },
          stepDone(3, "refund", 1),
        ];
        await executions.append("r", 5, cleanup, { fence });
        await executions.unlock("r", 7, { holder: fence, reason: "it died" });
        await holdfast.work([saga]);
        const run = holdfast.get(saga, "r");
        expect((await rejection(run.result())).message).toContain("too late");
        expect(tally.all).toEqual({ mail: 1 });
        expect(order).toEqual(["RUN_CANCELLED", "refunded"]);
      }),
    );

    test(
      "[RT10] during a replay is delivered behind the log, and during the cleanup changes nothing",
      onRuntime(backend, async ({ holdfast }) => {
        const tally = new Tally();
        const cleaning = gate();
        const finish = gate();
        const saga = workflow("saga", async (ctx) => {
          const charged = await ctx.step("charge", () => tally.count("charge"));
          try {
            await ctx.receive(approval);
          } finally {
            await ctx.step("refund", async () => {
              tally.count(`refund ${charged}`);
              cleaning.open();
              await finish.opened;
            });
          }
        });
        await recordedRun(holdfast, "r", "saga", [stepDone(1, "charge", 7), asked]);
        const run = holdfast.get(saga, "r");
        await run.cancel({ reason: "the first" });
        await holdfast.work([saga]);
        await cleaning.opened;
        await run.cancel({ reason: "the second" });
        finish.open();
        expect((await rejection(run.result())).message).toContain("the first");
        expect(tally.all).toEqual({ "refund 7": 1 });
      }),
    );

    test(
      "[RT10] an activity that stops when it is told to ends as cancelled with its reason",
      onRuntime(backend, async ({ holdfast }) => {
        const begun = gate();
        const obeying = activity("obeying", async ({ abortSignal }) => {
          begun.open();
          await new Promise((_, reject) => {
            abortSignal.addEventListener("abort", () => reject(new Error("x")));
          });
        });
        await holdfast.work([obeying]);
        const run = await holdfast.start(obeying);
        await begun.opened;
        await run.cancel({ reason: "the customer called" });
        expect(await rejection(run.result())).toMatchObject({
          kind: "cancelled",
          message: expect.stringContaining("the customer called") as string,
        });
      }),
    );

    test(
      "[RT10] of an activity that fails at that moment ends it, however late its worker hears of it",
      onRuntime(backend, async ({ another }) => {
        // Were it tried again, nobody would move the clock to that.
        const holdfast = await another({ clock: manualClock(T0) });
        const tally = new Tally();
        const hasty = activity("hasty", async ({ id }) => {
          tally.count("attempts");
          await holdfast.executions.cancel(id, { reason: "of no use" });
          throw new Error("failed all the same");
        });
        const parent = workflow("parent", async (ctx) => ctx.call(hasty));
        await holdfast.work([hasty, parent]);
        const runs = [
          await holdfast.start(hasty),
          await holdfast.start(hasty, undefined, { deadline: "1 day" }),
        ];
        for (const run of runs)
          expect(await rejection(run.result())).toMatchObject({
            kind: "cancelled",
            message: expect.stringContaining("of no use") as string,
          });
        const above = await holdfast.start(parent);
        const { cause } = await rejection(above.result());
        expect(cause).toMatchObject({ kind: "cancelled" });
        expect(tally.of("attempts")).toBe(3);
      }),
    );

    test(
      "a deadline interrupts the code of an activity that runs",
      onRuntime(backend, async ({ another }) => {
        const clock = manualClock(T0);
        const holdfast = await another({ clock });
        const begun = gate();
        const interrupted = gate();
        const slow = activity("slow", async ({ abortSignal }) => {
          begun.open();
          await new Promise<void>((resolve) => {
            abortSignal.addEventListener("abort", () => resolve());
          });
          interrupted.open();
        });
        // No renewal comes before the deadline that could tell of it.
        await holdfast.work([slow], { lease: "1 day" });
        const run = await holdfast.start(slow, undefined, { deadline: "1 minute" });
        const ended = rejection(run.result());
        await begun.opened;
        clock.advance(60_000);
        expect(await ended).toMatchObject({ kind: "timedOut" });
        await interrupted.opened;
      }),
    );

    test(
      "a deadline ends a run as timed out after its cleanup",
      onRuntime(backend, async ({ another }) => {
        const clock = manualClock(T0);
        const holdfast = await another({ clock });
        const tally = new Tally();
        const slow = workflow("slow", async (ctx) => {
          try {
            await ctx.sleep("1 day");
          } finally {
            await ctx.step("cleanup", () => tally.count("cleanup"));
          }
        });
        await holdfast.work([slow]);
        const run = await holdfast.start(slow, undefined, {
          deadline: "1 minute",
        });
        const ended = rejection(run.result());
        await until(async () => (await run.status()) === "blocked");
        clock.advance(60_000);
        expect(await ended).toMatchObject({
          kind: "timedOut",
        });
        expect(tally.of("cleanup")).toBe(1);
      }),
    );

    test(
      "paused and resumed at any moment, a run goes on at once, and no step runs twice",
      onRuntime(backend, async ({ holdfast }) => {
        const tally = new Tally();
        const plodding = workflow("plodding", async (ctx) => {
          let sum = 0;
          for (let step = 0; step < 6; step += 1) {
            sum += await ctx.step(`step ${step}`, async () => {
              tally.count("steps");
              if (step % 2 === 1) await Promise.resolve();
              return step;
            });
            if (step % 2 === 0) await ctx.sleep(1);
          }
          return sum;
        });
        await holdfast.work([plodding]);
        const runs = await holdfast.startMany(
          plodding,
          Array.from({ length: 20 }, () => ({ input: undefined })),
        );
        await Promise.all(
          runs.map(async (run, index) => {
            for (let times = 0; times < 3; times += 1)
              try {
                await moments((index + times) % 5);
                await run.pause();
                await moments((index * times) % 7);
                await run.resume();
              } catch (error) {
                expect((error as HoldfastError).code).toBe("EXECUTION_FINISHED");
              }
          }),
        );
        // A lease lasts longer than this.
        for (const run of runs) expect(await run.result({ timeout: "20s" })).toBe(15);
        expect(tally.of("steps")).toBe(120);
      }),
    );

    test(
      "paused, a run records what runs and begins nothing; resumed, it goes on",
      onRuntime(backend, async ({ holdfast }) => {
        const tally = new Tally();
        const begun = gate();
        const finish = gate();
        const two = workflow("two", async (ctx) => {
          await ctx.step("first", async () => {
            begun.open();
            await finish.opened;
            tally.count("first");
          });
          await ctx.step("second", () => tally.count("second"));
        });
        await holdfast.work([two]);
        const run = await holdfast.start(two);
        await begun.opened;
        await run.pause();
        expect(await run.status()).toBe("paused");
        finish.open();
        await until(async () => (await kindsOf(holdfast, run.id)).includes("unlocked"));
        expect(tally.all).toEqual({ first: 1 });
        await run.resume();
        await run.result();
        expect(tally.all).toEqual({ first: 1, second: 1 });
      }),
    );

    test(
      "a child that was asked to end and has ended wakes its parent no more",
      onRuntime(backend, async ({ holdfast }) => {
        const child = workflow("child", async (ctx) => ctx.receive(approval));
        const parent = workflow("parent", async (ctx) => {
          const [first, second] = [ctx.spawn(child), ctx.spawn(child)];
          await ctx.sleep(0);
          first.cancel();
          await first.result().catch(() => undefined);
          await ctx.step("the first has ended", () => undefined);
          return second.result();
        });
        await holdfast.work([parent, child]);
        const run = await holdfast.start(parent);
        const afterStep = async (): Promise<readonly unknown[]> => {
          const { items } = await run.events({ limit: 1_000 });
          const events = items.map(({ event }) => event);
          const step = events.findIndex(({ kind }) => kind === "stepFinished");
          return step < 0 ? [] : events.slice(step + 1);
        };
        await until(async () => (await afterStep()).length > 0);
        expect(await afterStep()).toMatchObject([{ kind: "waiting", wakeAt: null }]);
      }),
    );

    test(
      "[RT10] begins no child whose creation a request to cancel has overtaken",
      onRuntime(backend, async ({ database, another, holdfast: client }) => {
        const meddling = new Meddling(database);
        const holdfast = await another({}, meddling.database);
        const tally = new Tally();
        const child = activity("child", async () => tally.count("child"));
        const parent = workflow("parent", async (ctx) => ctx.call(child));
        const held = meddling.holdNext(
          "appendEvents",
          "call",
          ({ children }: { readonly children?: readonly unknown[] }) => children !== undefined,
        );
        await holdfast.work([parent, child]);
        const run = await client.start(parent, undefined, { id: "r" });
        await held.reached;
        await run.cancel();
        held.release();
        expect((await rejection(run.result())).message).toContain("cancelled");
        expect(tally.all).toEqual({});
        const { items } = await client.executions.list({ parent: "r" });
        expect(items.map(({ status }) => status)).toEqual(["cancelled"]);
      }),
    );

    test(
      "[RT10] transactions that have not begun fail without being run, and alike when that is replayed",
      onRuntime(backend, async ({ database, another }) => {
        const meddling = new Meddling(database);
        const holdfast = await another({}, meddling.database);
        const ran = new Set<string>();
        const seen: unknown[] = [];
        const booking = workflow("booking", async (ctx) => {
          const outcomes = await Promise.allSettled(
            ["first", "second", "third"].map((name) =>
              ctx.transaction(name, function* () {
                yield* [];
                ran.add(name);
                return name;
              }),
            ),
          );
          const codes = outcomes.map((outcome) =>
            outcome.status === "rejected" ? (outcome.reason as HoldfastError).code : outcome.value,
          );
          seen.push(codes);
          await ctx.transaction("undo", function* () {
            yield* [];
            ran.add("undo");
          });
          await ctx.receive(approval);
          return codes;
        });
        await holdfast.work([booking], { hotRunsMax: 0 });
        const held = meddling.holdNext("transaction first", "call");
        const run = await holdfast.start(booking);
        await held.reached;
        await run.cancel();
        held.release();
        await until(async () => (await kindsOf(holdfast, run.id)).includes("unlocked"));
        await run.signal(approval);
        const codes = ["first", "RUN_CANCELLED", "RUN_CANCELLED"];
        expect(await run.result()).toEqual(codes);
        expect(seen).toEqual([codes, codes]);
        expect([...ran]).toEqual(["first", "undo"]);
      }),
    );

    test(
      "[RT10] transactions that had not begun when the run was cut off behind its cancellation are not run",
      onRuntime(backend, async ({ holdfast }) => {
        const tally = new Tally();
        const booking = workflow("booking", async (ctx) => {
          try {
            await ctx.step("charge", () => tally.count("charge"));
            await ctx.transaction("book", function* () {
              yield* [];
              tally.count("book");
            });
          } finally {
            await ctx.step("refund", () => tally.count("refund"));
          }
        });
        const { executions } = holdfast;
        await executions.createLocked(
          { id: "r", function: "booking" },
          { ...byAnn, lease: "1 hour" },
        );
        const { holder: fence } = byAnn;
        const before = [stepDone(1, "charge", 1)];
        await executions.append("r", 2, before, { fence });
        await executions.cancel("r", { reason: "too late" });
        const delivered: GivenEvent = {
          kind: "cancellationDelivered",
          call: 2,
        };
        await executions.append("r", 4, [delivered], { fence });
        await executions.unlock("r", 5, { holder: fence, reason: "it died" });
        await holdfast.work([booking]);
        const run = holdfast.get(booking, "r");
        expect((await rejection(run.result())).message).toContain("too late");
        expect(tally.all).toEqual({ refund: 1 });
      }),
    );
  });
}
