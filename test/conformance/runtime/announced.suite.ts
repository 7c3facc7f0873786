import { describe, expect, test } from "vitest";
import { manualClock } from "../../../src/model/time/clock.ts";
import type { Holdfast } from "../../../src/runtime/client/holdfast.ts";
import { activity, signal, workflow } from "../../../src/runtime/definition/definitions.ts";
import { NonRetryableError } from "../../../src/runtime/failures.ts";
import type { StepOptions } from "../../../src/runtime/definition/workflow-context.ts";
import { rejection, type Backend } from "../backend.ts";
import { T0 } from "../execution/fixture.ts";
import { expectSound } from "../sound.ts";
import { onRuntime } from "./fixture.ts";
import { Meddling } from "./meddling.ts";
import { gate, kindsOf, until } from "./waiting.ts";

const leaseMs = 3_000;
const go = signal<string>("go");
const announced = { announced: true } as const;

export function announcedStepsSuite(backend: Backend): void {
  describe("an announced step", () => {
    interruptedTests(backend);
    recordTests(backend);
    retriedTests(backend);
  });
  describe("an activity that was interrupted", () => {
    activityTests(backend);
    retriedActivityTests(backend);
  });
}

const beginnings = async (holdfast: Holdfast, id: string): Promise<readonly unknown[]> => {
  const { items } = await holdfast.executions.events(id, { kinds: ["stepBegan"] });
  return items.map(({ event }) =>
    event.kind === "stepBegan" ? [event.call, event.name, event.attempt] : event.kind,
  );
};

function interruptedTests(backend: Backend): void {
  for (const [first, second, isRepeat] of [
    [true, true, true],
    [true, false, true],
    [false, true, false],
    [false, false, false],
  ] as const)
    test(
      `[RN3] knows that it was interrupted: announced ${first} when it began, ${second} when it is repeated`,
      onRuntime(backend, async ({ another }) => {
        const clock = manualClock(T0);
        const stale = await another({ clock: manualClock(T0) });
        const holder = await another({ clock });
        const begun = gate();
        const never = gate();
        const seen: unknown[] = [];
        const charge = (isFirst: boolean, options: StepOptions) =>
          workflow("charge", async (ctx) => {
            await ctx.step("before", () => 1);
            return ctx.step("charge", options, async (step) => {
              seen.push([step.isRepeat, step.attempt, step.idempotencyKey]);
              if (isFirst) {
                begun.open();
                await never.opened;
              }
              return step.isRepeat;
            });
          });
        await stale.work([charge(true, { announced: first })], { lease: leaseMs });
        const started = await stale.start(charge(true, {}), undefined, { id: "c" });
        await begun.opened;
        await holder.work([charge(false, { announced: second })], { lease: leaseMs });
        clock.advance(leaseMs + 1);
        await until(() => {
          clock.advance(100);
          return seen.length === 2;
        });
        expect(await started.result()).toBe(isRepeat);
        expect(seen).toEqual([
          [false, 1, "c~0#2"],
          [isRepeat, 1, "c~0#2"],
        ]);
        expect(await beginnings(holder, "c")).toEqual(first || second ? [[2, "charge", 1]] : []);
        never.open();
      }),
    );

  test(
    "[RN3] announces each attempt, and an attempt after one that failed is no repeat",
    onRuntime(backend, async ({ holdfast, database }) => {
      const seen: unknown[] = [];
      const flaky = workflow("flaky", (ctx) =>
        ctx.step("flaky", { announced: true, retry: { maxRetries: 2, backoff: 1 } }, (step) => {
          seen.push([step.attempt, step.isRepeat]);
          if (step.attempt < 3) throw new Error("again");
          return "done";
        }),
      );
      await holdfast.work([flaky]);
      const started = await holdfast.start(flaky);
      expect(await started.result()).toBe("done");
      expect(seen).toEqual([
        [1, false],
        [2, false],
        [3, false],
      ]);
      expect(await kindsOf(holdfast, started.id)).toEqual([
        "created",
        "locked",
        "stepBegan",
        "stepAttemptFailed",
        "stepBegan",
        "stepAttemptFailed",
        "stepBegan",
        "stepFinished",
        "finished",
      ]);
      await expectSound(database);
    }),
  );
}

function recordTests(backend: Backend): void {
  test(
    "[RN3] goes into one append with the requests before it, starts behind that, and steps beside it start at once",
    onRuntime(backend, async ({ database, another }) => {
      const meddling = new Meddling(database);
      const holdfast = await another({}, meddling.database);
      const order: string[] = [];
      const mixed = workflow("mixed", async (ctx) => {
        const sleep = ctx.sleep(5);
        const heard = ctx.receive(go);
        const one = ctx.step("announced", announced, () => void order.push("announced"));
        const two = ctx.step("plain", () => void order.push("plain"));
        order.push("asked");
        await Promise.all([sleep, heard, one, two]);
      });
      await holdfast.work([mixed]);
      const held = meddling.holdNext("appendEvents", "call");
      const started = await holdfast.start(mixed);
      await held.reached;
      expect(order).toEqual(["plain", "asked"]);
      held.release();
      await until(() => order.includes("announced"));
      await started.signal(go, "on");
      await started.result();
      const { items } = await holdfast.executions.events(started.id, { limit: 100 });
      expect(items.slice(2, 6).map(({ event }) => event.kind)).toEqual([
        "delayRequested",
        "receiveRequested",
        "stepBegan",
        "stepFinished",
      ]);
      expect(new Set(items.slice(2, 6).map(({ at }) => at)).size).toBe(1);
    }),
  );

  test(
    "[RN3] that was not started when its run was cancelled does not start, and fails as cancelled",
    onRuntime(backend, async ({ database, another }) => {
      const meddling = new Meddling(database);
      const holdfast = await another({}, meddling.database);
      let bodies = 0;
      const late = workflow("late", async (ctx) => {
        await ctx.step("before", () => 1);
        await ctx.step("late", announced, () => void (bodies += 1));
      });
      const held = meddling.holdNext(
        "appendEvents",
        "call",
        ({ events }: { readonly events: readonly { readonly kind: string }[] }) =>
          events.some(({ kind }) => kind === "stepBegan"),
      );
      await holdfast.work([late]);
      const started = await holdfast.start(late);
      await held.reached;
      await started.cancel();
      held.release();
      expect(await rejection(started.result())).toMatchObject({ kind: "cancelled" });
      expect(bodies).toBe(0);
      expect(await beginnings(holdfast, started.id)).toEqual([[2, "late", 1]]);
      await expectSound(database);
    }),
  );

  test(
    "[RN3] that nobody awaits does not begin after the end of the code, and does not keep the run from resting",
    onRuntime(backend, async ({ holdfast, database }) => {
      let bodies = 0;
      const cleaned: number[] = [];
      const child = workflow("child", async (ctx, naps: number) => {
        await ctx.sleep(60_000).catch(() => undefined);
        for (let nap = 0; nap < naps; nap += 1) await ctx.sleep(5);
        await ctx.step("clean up", () => void cleaned.push(naps));
      });
      const hasty = workflow("hasty", async (ctx) => {
        void ctx.spawn(child, 0);
        void ctx.spawn(child, 5);
        await ctx.receive(go);
        void ctx.spawn(child, 0);
        void ctx.step("forgotten", announced, () => void (bodies += 1));
        return 1;
      });
      await holdfast.work([hasty, child], { concurrency: 1 });
      const started = await holdfast.start(hasty);
      await until(async () => {
        const { items } = await holdfast.executions.list({ function: "child" });
        return items.filter(({ status }) => status === "blocked").length === 2;
      });
      await started.signal(go, "on");
      expect(await started.result()).toBe(1);
      expect(cleaned).toContain(5);
      expect(await beginnings(holdfast, started.id)).toEqual([]);
      expect(bodies).toBe(0);
      await expectSound(database);
    }),
  );

  test(
    "[RN3] of a fork is not a repeat, and has a key of its own; of a retry it keeps both",
    onRuntime(backend, async ({ holdfast }) => {
      const seen: unknown[] = [];
      const begun = gate();
      let fails = true;
      const pair = workflow("pair", async (ctx) => {
        const pay = ctx.step("pay", announced, async (step) => {
          seen.push([step.isRepeat, step.idempotencyKey]);
          begun.open();
          if (fails) await new Promise(() => undefined);
        });
        await ctx.step("beside", () => begun.opened);
        await ctx.step("fails", { retry: { maxRetries: 0 } }, () => {
          if (fails) throw new Error("fails");
        });
        await pay;
      });
      await holdfast.work([pair]);
      const started = await holdfast.start(pair, undefined, { id: "p" });
      await rejection(started.result());
      fails = false;
      const retried = await started.retry();
      await retried.result();
      const { items } = await holdfast.executions.events("p");
      const beside = items.find(({ event }) => event.kind === "stepFinished");
      const forked = await started.fork(beside?.version ?? 0);
      await forked.result();
      expect(seen).toEqual([
        [false, "p~0#1"],
        [true, "p~0#1"],
        [false, `${forked.id}~0#1`],
      ]);
    }),
  );

  test(
    "[RN3] is refused with options that are none, before its call exists",
    onRuntime(backend, async ({ holdfast }) => {
      const strange = workflow("strange", async (ctx) => {
        const codes: unknown[] = [];
        for (const given of [1, "yes", null, {}, []])
          codes.push(
            await ctx
              .step("s", { announced: given } as never, () => 1)
              .catch(({ code }: { code: string }) => code),
          );
        return codes;
      });
      await holdfast.work([strange]);
      const started = await holdfast.start(strange);
      expect(await started.result()).toEqual(Array<string>(5).fill("OPTION_INVALID"));
      expect(await kindsOf(holdfast, started.id)).toEqual(["created", "locked", "finished"]);
    }),
  );
}

function activityTests(backend: Backend): void {
  test(
    "[RN3] knows it, after a lost lock, and not after an attempt that failed",
    onRuntime(backend, async ({ another }) => {
      const clock = manualClock(T0);
      const seen: unknown[] = [];
      const begun = gate();
      const ended = gate();
      const print = (which: "lost" | "last") =>
        activity("print", { retry: { backoff: 1 } }, async (ctx) => {
          seen.push([which, ctx.attempt, ctx.isRepeat]);
          if (which === "lost") {
            begun.open();
            await ended.opened;
          }
          if (ctx.isRepeat) throw new Error("tried again");
          return "printed";
        });
      const lost = await another({ clock: manualClock(T0) });
      await lost.work([print("lost")], { lease: leaseMs });
      const started = await lost.start(print("lost"), undefined, { id: "print" });
      await begun.opened;
      const last = await another({ clock });
      await last.work([print("last")], { lease: leaseMs });
      clock.advance(leaseMs + 1);
      await until(async () => {
        clock.advance(100);
        return (await started.status()) === "completed";
      });
      expect(await started.result()).toBe("printed");
      ended.open();
      expect(seen).toEqual([
        ["lost", 1, false],
        ["last", 2, true],
        ["last", 3, false],
      ]);
    }),
  );
}

/** Ends runs in the middle of a charge, and lets the charge of a retried run complete. */
function interrupting() {
  const seen: unknown[] = [];
  const begun = gate();
  let isDone = false;
  const body = async ({ isRepeat, attempt, idempotencyKey }: ChargeAttempt): Promise<boolean> => {
    seen.push([isRepeat, attempt, idempotencyKey]);
    begun.open();
    if (!isDone) await new Promise(() => undefined);
    return isRepeat;
  };
  return { seen, begun: begun.opened, body, finish: () => void (isDone = true) };
}

interface ChargeAttempt {
  readonly isRepeat: boolean;
  readonly attempt: number;
  readonly idempotencyKey: string;
}

const force = { force: true } as const;

function retriedTests(backend: Backend): void {
  for (const order of ["behind", "before"] as const)
    test(
      `[RN3] of a retried run knows that it was interrupted, when it began ${order} the last kept event`,
      onRuntime(backend, async ({ holdfast, database }) => {
        const { seen, begun, body, finish } = interrupting();
        const pay = workflow("pay", async (ctx) => {
          const beside = async () => {
            if (order === "before") await begun;
          };
          const first = ctx.step("beside", beside);
          if (order === "behind") await first;
          const charged = ctx.step("charge", announced, body);
          await first;
          return charged;
        });
        await holdfast.work([pay]);
        const started = await holdfast.start(pay, undefined, { id: "p" });
        await begun;
        await until(async () => (await kindsOf(holdfast, "p")).includes("stepFinished"));
        await started.cancel(force);
        await rejection(started.result());
        const again = await started.retry();
        await until(() => seen.length === 2);
        await again.cancel(force);
        await rejection(again.result());
        finish();
        const last = await again.retry();
        expect(await last.result()).toBe(true);
        expect(seen).toEqual([
          [false, 1, "p~0#2"],
          [true, 1, "p~0#2"],
          [true, 1, "p~0#2"],
        ]);
        const forked = await again.fork(0);
        expect(await forked.result()).toBe(false);
        expect(seen.at(-1)).toEqual([false, 1, `${forked.id}~0#2`]);
        await expectSound(database);
      }),
    );

  for (const order of ["behind", "before"] as const)
    test(
      `[RN3] of a retried run is no repeat if it failed, when it began ${order} the last kept event`,
      onRuntime(backend, async ({ holdfast }) => {
        const seen: unknown[] = [];
        const begun = gate();
        const kept = gate();
        let fails = true;
        const pay = workflow("pay", async (ctx) => {
          const first = ctx.step("beside", () => (order === "before" ? begun.opened : undefined));
          if (order === "behind") await first;
          const charged = ctx.step("charge", announced, async (step) => {
            seen.push([step.isRepeat, step.idempotencyKey]);
            begun.open();
            await kept.opened;
            if (fails) throw new NonRetryableError("refused");
          });
          await first;
          kept.open();
          await charged;
        });
        await holdfast.work([pay]);
        const started = await holdfast.start(pay, undefined, { id: "p" });
        await rejection(started.result());
        fails = false;
        await (await started.retry()).result();
        expect(seen).toEqual([
          [false, "p~0#2"],
          [false, "p~0#2"],
        ]);
      }),
    );

  test(
    "[RN3] of a retried run is announced again after it failed, and one that replaced it is no repeat",
    onRuntime(backend, async ({ holdfast }) => {
      const { seen, begun, body } = interrupting();
      let name = "charge";
      let fails = false;
      const pay = workflow("pay", async (ctx) =>
        ctx.step(name, { announced: true, retry: { maxRetries: 2, backoff: 1 } }, (step) => {
          if (!fails) return body(step);
          seen.push([step.isRepeat, step.attempt]);
          if (step.attempt === 1) throw new Error("again");
          return step.isRepeat;
        }),
      );
      await holdfast.work([pay]);
      const started = await holdfast.start(pay, undefined, { id: "p" });
      await begun;
      await started.cancel(force);
      await rejection(started.result());
      fails = true;
      const again = await started.retry();
      expect(await again.result()).toBe(false);
      name = "invoice";
      expect(await (await started.retry()).result()).toBe(false);
      expect(seen.slice(1)).toEqual([
        [true, 1],
        [false, 2],
        [false, 1],
        [false, 2],
      ]);
      expect(await beginnings(holdfast, again.id)).toEqual([[1, "charge", 2]]);
    }),
  );

  test(
    "[RN3] of a continued run is no repeat, though the retried run was interrupted in the same call",
    onRuntime(backend, async ({ holdfast }) => {
      const { seen, begun, body, finish } = interrupting();
      const pay = workflow("pay", async (ctx, passes: number) => {
        const isRepeat = await ctx.step("charge", announced, body);
        return passes === 0 ? isRepeat : ctx.continueWith(passes - 1);
      });
      await holdfast.work([pay]);
      const started = await holdfast.start(pay, 1, { id: "p" });
      await begun;
      await started.cancel(force);
      await rejection(started.result());
      finish();
      expect(await (await started.retry()).result()).toBe(false);
      expect(seen).toEqual([
        [false, 1, "p~0#1"],
        [true, 1, "p~0#1"],
        [false, 1, "p~1#1"],
      ]);
    }),
  );
}

function retriedActivityTests(backend: Backend): void {
  for (const by of ["itself", "the run that called it"] as const)
    test(
      `[RN3] knows it when ${by} is retried; that of a fork does not`,
      onRuntime(backend, async ({ holdfast, database }) => {
        const { seen, begun, body, finish } = interrupting();
        const charge = activity("charge", body);
        const pay = workflow("pay", (ctx) => ctx.call(charge));
        await holdfast.work([charge, pay]);
        const started = await holdfast.start(by === "itself" ? charge : pay);
        await begun;
        await started.cancel(force);
        await rejection(started.result());
        const again = await started.retry();
        await until(() => seen.length === 2);
        await again.cancel(force);
        await rejection(again.result());
        finish();
        expect(await (await again.retry()).result()).toBe(true);
        const key = by === "itself" ? started.id : expect.stringContaining(`${started.id}.`);
        expect(seen).toEqual([
          [false, 1, key],
          [true, 1, key],
          [true, 1, key],
        ]);
        expect(await (await again.fork(0)).result()).toBe(false);
        await expectSound(database);
      }),
    );
}
