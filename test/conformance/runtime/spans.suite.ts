import { describe, expect, test } from "vitest";
import { manualClock } from "../../../src/model/time/clock.ts";
import type { LoggedEvent } from "../../../src/model/execution/event.ts";
import { spansOf } from "../../../src/model/execution/spans.ts";
import { activity, workflow } from "../../../src/runtime/definition/definitions.ts";
import { replayHistory } from "../../../src/runtime/history/replay-history.ts";
import type { Holdfast } from "../../../src/runtime/client/holdfast.ts";
import type { Backend } from "../backend.ts";
import { T0 } from "../execution/fixture.ts";
import { expectSound } from "../sound.ts";
import { onRuntime } from "./fixture.ts";
import { answerLost, appends, Meddling } from "./meddling.ts";
import { gate, Tally, until } from "./waiting.ts";

/** So long that no lease ends while the clock is moved. */
const forLong = { lease: "90 days" } as const;

/** When a body's outcome was recorded, and when the body ran. */
type Told = readonly [name: string, at: number, ran: unknown];

async function toldOf(holdfast: Holdfast, id: string): Promise<readonly Told[]> {
  const { items } = await holdfast.executions.events(id, { limit: 1_000 });
  return items.flatMap(({ at, event }: LoggedEvent<unknown>) =>
    "ran" in event || event.kind === "stepFinished" || event.kind === "transactionFinished"
      ? [[event.name, at - T0, event.ran] as const]
      : [],
  );
}

async function recordedSteps(holdfast: Holdfast, id: string): Promise<number> {
  return (await toldOf(holdfast, id)).length;
}

/** Three steps that run beside each other until the test ends each. */
function threeSteps() {
  const gates = { a: gate(), b: gate(), c: gate() };
  const tally = new Tally();
  const body = (name: keyof typeof gates) => async (): Promise<string> => {
    tally.count(name);
    await gates[name].opened;
    return name;
  };
  const beside = workflow("beside", (ctx) =>
    Promise.all([ctx.step("a", body("a")), ctx.step("b", body("b")), ctx.step("c", body("c"))]),
  );
  const began = (): boolean => Object.keys(tally.all).length === 3;
  return { beside, gates, began };
}

/** What the log says of when the bodies of a run ran. */
export function runtimeSpansSuite(backend: Backend): void {
  describe("when the bodies of a run ran", () => {
    stepTests(backend);
    attemptTests(backend);
    transactionTests(backend);
  });
}

function stepTests(backend: Backend): void {
  test(
    "[RN1] a step of 300 ms beside others is recorded with 300 ms",
    onRuntime(backend, async ({ database, another }) => {
      const clock = manualClock(T0);
      const holdfast = await another({ clock });
      const { beside, gates, began } = threeSteps();
      await holdfast.work([beside], forLong);
      const run = await holdfast.start(beside, undefined, { id: "r" });
      await until(began);
      clock.advance(100);
      gates.a.open();
      await until(async () => (await recordedSteps(holdfast, "r")) === 1);
      clock.advance(100);
      gates.c.open();
      await until(async () => (await recordedSteps(holdfast, "r")) === 2);
      clock.advance(100);
      gates.b.open();
      expect(await run.result()).toEqual(["a", "b", "c"]);
      expect(await toldOf(holdfast, "r")).toEqual([
        ["a", 100, [-100, 0]],
        ["c", 200, [-200, 0]],
        ["b", 300, [-300, 0]],
      ]);
      const { items } = await holdfast.executions.events("r");
      expect(
        spansOf(items, []).map((bar) => ["name" in bar && bar.name, bar.began - T0, bar.ended]),
      ).toEqual([
        ["a", 0, T0 + 100],
        ["c", 0, T0 + 200],
        ["b", 0, T0 + 300],
      ]);
      await expectSound(database);
    }),
  );

  test(
    "[RN1] steps that end during an append are recorded with their own ends",
    onRuntime(backend, async ({ database, another }) => {
      const clock = manualClock(T0);
      const meddling = new Meddling(database);
      const holdfast = await another({ clock }, meddling.database);
      const { beside, gates, began } = threeSteps();
      await holdfast.work([beside], forLong);
      const run = await holdfast.start(beside, undefined, { id: "r" });
      await until(began);
      const held = meddling.holdNext("appendEvents", "answer", appends("stepFinished"));
      clock.advance(100);
      gates.a.open();
      await held.reached;
      clock.advance(200);
      gates.b.open();
      await turn();
      clock.advance(50);
      gates.c.open();
      await turn();
      clock.advance(10);
      held.release();
      expect(await run.result()).toEqual(["a", "b", "c"]);
      expect(await toldOf(holdfast, "r")).toEqual([
        ["a", 100, [-100, 0]],
        ["b", 360, [-360, -60]],
        ["c", 360, [-360, -10]],
      ]);
    }),
  );

  test.each([
    ["its answer was lost", true],
    ["it was not written", false],
  ])("[RN1] an append that is repeated later, since %s, says the same of its bodies", (_, isDone) =>
    onRuntime(backend, async ({ database, another }) => {
      const clock = manualClock(T0);
      const meddling = new Meddling(database);
      const holdfast = await another({ clock }, meddling.database);
      const { beside, gates, began } = threeSteps();
      await holdfast.work([beside], forLong);
      const run = await holdfast.start(beside, undefined, { id: "r" });
      await until(began);
      let isLost = false;
      meddling.on("appendEvents", async (append) => {
        if (isLost) return append();
        if (isDone) await append();
        clock.advance(500);
        isLost = true;
        throw answerLost();
      });
      clock.advance(300);
      gates.a.open();
      await until(() => isLost);
      // A repetition comes after a pause.
      await until(async () => {
        clock.advance(100);
        return (await recordedSteps(holdfast, "r")) === 1;
      });
      gates.b.open();
      gates.c.open();
      await until(async () => {
        clock.advance(100);
        return (await run.status()) === "completed";
      });
      const told = await toldOf(holdfast, "r");
      expect(told[0]).toEqual(["a", 300, [-300, 0]]);
      expect(told.map(([name]) => name)).toEqual(["a", "b", "c"]);
    })(),
  );

  test(
    "[RN1] a step that took no time and was recorded at once says nothing of it, and a replay compares nothing of it",
    onRuntime(backend, async ({ another }) => {
      const clock = manualClock(T0);
      const first = await another({ clock });
      let waitMs = 40;
      const quick = workflow("quick", async (ctx) => {
        await ctx.step("at once", () => 1);
        await ctx.step("slow", () => clock.advance(waitMs));
        await ctx.sleep("1 hour");
        return "done";
      });
      await first.work([quick]);
      await first.start(quick, undefined, { id: "r" });
      await until(async () => (await first.executions.get("r")).status === "blocked");
      await first.close();
      waitMs = 7;
      const second = await another({ clock });
      await second.work([quick]);
      clock.advance(3_600_000);
      expect(await second.get(quick, "r").result()).toBe("done");
      const history = await second.get(quick, "r").history();
      expect(history.events.flatMap(({ event }) => event["ran"] ?? [])).toEqual([-40, 0]);
      expect(await replayHistory(quick, history)).toMatchObject({ kind: "ends" });
      expect(await toldOf(second, "r")).toEqual([
        ["at once", 0, undefined],
        ["slow", 40, [-40, 0]],
      ]);
    }),
  );
}

function attemptTests(backend: Backend): void {
  test(
    "[RN1] each failed attempt of a step says when it ran, and so does the last",
    onRuntime(backend, async ({ another }) => {
      const clock = manualClock(T0);
      const holdfast = await another({ clock });
      const tally = new Tally();
      const tries = workflow("tries", (ctx) =>
        ctx.step("s", { retry: { maxRetries: 1, backoff: 1_000 } }, async () => {
          clock.advance(tally.count("s") * 20);
          throw new Error("no luck");
        }),
      );
      await holdfast.work([tries], forLong);
      const run = await holdfast.start(tries, undefined, { id: "r" });
      await until(async () => {
        if (tally.of("s") === 1 && (await recordedSteps(holdfast, "r")) === 1) clock.advance(2_000);
        return (await run.status()) === "failed";
      });
      const { items } = await holdfast.executions.events("r");
      expect(
        items.flatMap(({ event }) =>
          event.kind === "stepAttemptFailed" || event.kind === "stepFinished"
            ? [[event.kind, event.ran]]
            : [],
        ),
      ).toEqual([
        ["stepAttemptFailed", [-20, 0]],
        ["stepFinished", [-40, 0]],
      ]);
    }),
  );

  test(
    "[RN1] a step that is stopped by its timeout ran until then",
    onRuntime(backend, async ({ another }) => {
      const clock = manualClock(T0);
      const holdfast = await another({ clock });
      const began = gate();
      const stuck = workflow("stuck", (ctx) =>
        ctx.step("s", { timeout: 250, retry: { maxRetries: 0 } }, async () => {
          began.open();
          await gate().opened;
        }),
      );
      await holdfast.work([stuck], forLong);
      const run = await holdfast.start(stuck, undefined, { id: "r" });
      await began.opened;
      await turn();
      clock.advance(250);
      await until(async () => (await run.status()) === "failed");
      expect(await toldOf(holdfast, "r")).toEqual([["s", 250, [-250, 0]]]);
    }),
  );
}

function transactionTests(backend: Backend): void {
  test(
    "[RN1] a transaction of 300 ms is recorded at its end, with 300 ms",
    onRuntime(backend, async ({ database, another }) => {
      const clock = manualClock(T0);
      const holdfast = await another({ clock });
      const books = workflow("books", (ctx) =>
        ctx.transaction("book", function* () {
          clock.advance(300);
          return "booked";
        }),
      );
      await holdfast.work([books], forLong);
      expect(await (await holdfast.start(books, undefined, { id: "r" })).result()).toBe("booked");
      expect(await toldOf(holdfast, "r")).toEqual([["book", 300, [-300, 0]]]);
      await expectSound(database);
    }),
  );

  test(
    "[RN1] a transaction that throws says when its body ran",
    onRuntime(backend, async ({ another }) => {
      const clock = manualClock(T0);
      const holdfast = await another({ clock });
      const pay = activity("pay", async () => "paid");
      const fails = workflow("fails", async (ctx) => {
        await ctx.call(pay);
        return ctx.transaction("book", function* (): Generator<never, string> {
          clock.advance(70);
          throw new Error("no luck");
        });
      });
      await holdfast.work([fails, pay], forLong);
      const run = await holdfast.start(fails, undefined, { id: "r" });
      await until(async () => (await run.status()) === "failed");
      expect(await toldOf(holdfast, "r")).toEqual([["book", 70, [-70, 0]]]);
    }),
  );
}

/** A turn of the event loop: what a body that was let through records has been noted. */
async function turn(): Promise<void> {
  for (let count = 0; count < 5; count += 1) await new Promise((resolve) => setImmediate(resolve));
}
