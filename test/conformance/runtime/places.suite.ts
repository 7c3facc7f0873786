import { describe, expect, test } from "vitest";
import { activity, signal, workflow } from "../../../src/runtime/definition/definitions.ts";
import { manualClock, type Clock } from "../../../src/model/time/clock.ts";
import type { Holdfast } from "../../../src/runtime/client/holdfast.ts";
import { T0 } from "../execution/fixture.ts";
import type { Backend } from "../backend.ts";
import { onRuntime } from "./fixture.ts";
import { appends, Meddling } from "./meddling.ts";
import { gate, kindsOf, Tally, until } from "./waiting.ts";

const go = signal<string>("go");

/** Which runs of a worker go on, and how often it asks for the time. */
export function runtimePlacesSuite(backend: Backend): void {
  describe("the places of a worker", () => {
    placeTests(backend);
  });
  describe("the timers of a run", () => {
    timerTests(backend);
  });
}

/** Long enough for what has begun to come to its rest: nothing else is under way. */
async function rounds(holdfast: Holdfast, id: string): Promise<void> {
  for (let round = 0; round < 20; round += 1) {
    await kindsOf(holdfast, id);
    await turn();
  }
}

/** The event loop comes round. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Bodies that hold their place until they are let go, and how many did at once. */
class Crowd {
  readonly #leave = gate();
  #count = 0;
  most = 0;

  readonly body = async (): Promise<void> => {
    this.#count += 1;
    this.most = Math.max(this.most, this.#count);
    await this.#leave.opened;
    this.#count -= 1;
  };

  leave(): void {
    this.#leave.open();
  }
}

function placeTests(backend: Backend): void {
  test(
    "one that a run asked for by a timer is given back when a signal has let it go on before",
    onRuntime(backend, async ({ database, another }) => {
      const clock = manualClock(T0);
      const meddling = new Meddling(database);
      const holdfast = await another({ clock }, meddling.database);
      const crowd = new Crowd();
      const busy = activity("busy", crowd.body);
      const child = activity("child", async () => "ended");
      const parent = workflow("parent", async (ctx) => {
        const sent = await ctx.receive(go, { timeout: 1_000 });
        return [sent, await ctx.call(child)];
      });
      await holdfast.work([parent, child, busy], {
        concurrency: 1,
        lease: "1 hour",
      });
      const run = await holdfast.start(parent);
      await until(async () => (await kindsOf(holdfast, run.id)).at(-1) === "waiting");
      await holdfast.start(busy);
      await until(() => crowd.most === 1);
      const read = meddling.holdNext("listResponses", "answer");
      await run.signal(go, "went");
      await read.reached;
      read.release();
      await turn();
      // Both ask while the only place is taken, the signal first.
      clock.advance(1_000);
      crowd.leave();
      expect(await run.result()).toEqual(["went", "ended"]);
      const next = await holdfast.start(child);
      expect(await next.result()).toBe("ended");
    }),
  );

  for (const by of ["time", "signal"] as const)
    test(
      `a run whose ${by} comes while it is being recorded that it waits goes on only with one`,
      onRuntime(backend, async ({ database, another }) => {
        const clock = manualClock(T0);
        const meddling = new Meddling(database);
        const holdfast = await another({ clock }, meddling.database);
        const crowd = new Crowd();
        const busy = activity("busy", crowd.body);
        const patient = workflow("patient", async (ctx) => {
          const sent = await ctx.receive(go, { timeout: 1_000 });
          await ctx.step("after", crowd.body);
          return sent ?? "nothing";
        });
        await holdfast.work([patient, busy], {
          concurrency: 1,
          lease: "1 hour",
        });
        const waiting = meddling.holdNext("appendEvents", "answer", appends("waiting"));
        const run = await holdfast.start(patient);
        await waiting.reached;
        const other = await holdfast.start(busy);
        if (by === "time") clock.advance(1_000);
        else {
          const read = meddling.holdNext("listResponses", "answer");
          await run.signal(go, "went");
          await read.reached;
          read.release();
          await turn();
        }
        waiting.release();
        await until(() => crowd.most > 0);
        await rounds(holdfast, run.id);
        crowd.leave();
        expect(await run.result()).toBe(by === "time" ? "nothing" : "went");
        await other.result();
        expect(crowd.most).toBe(1);
      }),
    );

  test(
    "a run of a limited function whose signal comes while it is being recorded that it waits goes on under a new lock",
    onRuntime(backend, async ({ database, another }) => {
      const meddling = new Meddling(database);
      const holdfast = await another({}, meddling.database);
      const tally = new Tally();
      const limited = workflow("limited", { concurrency: 1 }, async (ctx) => {
        const sent = await ctx.receive(go);
        return ctx.step("after", () => `${sent} ${tally.count("after")}`);
      });
      await holdfast.work([limited]);
      const waiting = meddling.holdNext("appendEvents", "answer", appends("waiting"));
      const read = meddling.holdNext("listResponses", "answer");
      const run = await holdfast.start(limited);
      await waiting.reached;
      await run.signal(go, "went");
      await read.reached;
      read.release();
      await turn();
      waiting.release();
      expect(await run.result()).toBe("went 1");
      const kinds = await kindsOf(holdfast, run.id);
      expect(kinds.slice(kinds.indexOf("waiting"))).toEqual([
        "waiting",
        "locked",
        "stepFinished",
        "finished",
      ]);
    }),
  );

  test(
    "a run that was locked again keeps its own when it becomes known late that it had begun to wait",
    onRuntime(backend, async ({ holdfast: client, database, another }) => {
      const meddling = new Meddling(database);
      const holdfast = await another({}, meddling.database);
      const crowd = new Crowd();
      const limited = workflow("limited", { concurrency: 5 }, async (ctx) => {
        await ctx.receive(go);
        await ctx.step("busy", crowd.body);
      });
      const busy = activity("busy", crowd.body);
      await holdfast.work([limited, busy], { concurrency: 2 });
      const waiting = meddling.holdNext("appendEvents", "answer", appends("waiting"));
      const read = meddling.holdNext("listResponses", "answer");
      const run = await holdfast.start(limited);
      await waiting.reached;
      await run.signal(go, "now");
      await until(() => crowd.most === 1);
      waiting.release();
      await rounds(client, run.id);
      const others = [await client.start(busy), await client.start(busy)];
      await until(() => crowd.most >= 2);
      await rounds(client, run.id);
      expect(crowd.most).toBe(2);
      read.release();
      crowd.leave();
      for (const other of others) await other.result();
      await run.result();
    }),
  );
}

function timerTests(backend: Backend): void {
  /** Counts the timers for what is over already. */
  function watched(clock: Clock): Clock & { late: number } {
    const seen = {
      late: 0,
      now: () => clock.now(),
      wakeAt(instant: number, run: () => void) {
        if (instant <= clock.now()) seen.late += 1;
        return clock.wakeAt(instant, run);
      },
    };
    return seen;
  }

  const patient = (body: () => Promise<void>) =>
    workflow("patient", async (ctx) => {
      const [sent] = await Promise.all([
        ctx.receive(go, { timeout: 1_000 }),
        ctx.step("long", body),
      ]);
      return sent ?? "nothing";
    });

  test(
    "are not set for what is over while something is being recorded, and it comes afterwards",
    onRuntime(backend, async ({ database, another }) => {
      const manual = manualClock(T0);
      const clock = watched(manual);
      const meddling = new Meddling(database);
      const holdfast = await another({ clock }, meddling.database);
      const finish = gate();
      const worked = patient(() => finish.opened);
      await holdfast.work([worked], { lease: "1 hour" });
      const done = meddling.holdNext("appendEvents", "call", appends("stepFinished"));
      const run = await holdfast.start(worked);
      await until(async () => (await kindsOf(holdfast, run.id)).includes("receiveRequested"));
      finish.open();
      await done.reached;
      clock.late = 0;
      manual.advance(1_000);
      await rounds(holdfast, run.id);
      const { late } = clock;
      done.release();
      expect(await run.result()).toBe("nothing");
      expect(late).toBe(0);
    }),
  );

  test(
    "are not set for what is over while a paused run is left, and it comes when that is resumed",
    onRuntime(backend, async ({ another }) => {
      const manual = manualClock(T0);
      const clock = watched(manual);
      const holdfast = await another({ clock });
      const begun = gate();
      const finish = gate();
      const worked = patient(async () => {
        begun.open();
        await finish.opened;
      });
      await holdfast.work([worked], { lease: "1 hour" });
      const run = await holdfast.start(worked);
      await begun.opened;
      await until(async () => (await kindsOf(holdfast, run.id)).includes("receiveRequested"));
      await run.pause();
      // The worker has looked at it.
      await rounds(holdfast, run.id);
      clock.late = 0;
      manual.advance(1_000);
      await rounds(holdfast, run.id);
      const { late } = clock;
      finish.open();
      await until(async () => (await kindsOf(holdfast, run.id)).includes("unlocked"));
      await run.resume();
      expect(await run.result()).toBe("nothing");
      expect(late).toBe(0);
    }),
  );
}
