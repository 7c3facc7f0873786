import { describe, expect, test } from "vitest";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { activity, signal, workflow } from "../../../src/runtime/definition/definitions.ts";
import type { Holdfast } from "../../../src/runtime/client/holdfast.ts";
import type { StoreOptions } from "../../../src/stores/context.ts";
import { onRuntime } from "./fixture.ts";
import { answerLost, appends, Meddling, type Held } from "./meddling.ts";
import { gate, kindsOf, Tally, until } from "./waiting.ts";

const go = signal("go");
/** So long that a run which is only found when its lease ends is not found within the time of a test. */
const forLong = { lease: "1 hour" } as const;

/** A few turns of the event loop: whatever was to happen by itself has begun. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** Two things that happen to one run at once: none of them is lost, and nothing is done twice. */
export function runtimeCrossingSuite(backend: Backend): void {
  describe("a run that is started again under its id", () => {
    startedAgainTests(backend);
  });
  describe("a run that cannot go on", () => {
    unableTests(backend);
  });
  describe("a lock that nobody was told of", () => {
    untoldTests(backend);
  });
}

function startedAgainTests(backend: Backend): void {
  test(
    "goes on where it is: no step and no activity is begun a second time, in the process that runs it",
    onRuntime(backend, async ({ holdfast }) => {
      const tally = new Tally();
      const isOver = gate();
      const body = async (name: string): Promise<string> => {
        tally.count(name);
        await isOver.opened;
        return name;
      };
      const flow = workflow("flow", (ctx) =>
        ctx.step("long", ({ abortSignal }) => {
          abortSignal.addEventListener("abort", () => tally.count("aborted"));
          return body("step");
        }),
      );
      const task = activity("task", () => body("activity"));
      await holdfast.work([flow, task], forLong);
      for (let time = 0; time < 3; time += 1) {
        await holdfast.start(flow, undefined, { id: "flow" });
        await holdfast.start(task, undefined, { id: "task" });
        await holdfast.startMany(flow, [{ id: "flow" }, { id: "flow" }]);
        await until(() => tally.of("step") > 0 && tally.of("activity") > 0);
      }
      isOver.open();
      expect(await holdfast.get(flow, "flow").result()).toBe("step");
      expect(await holdfast.get(task, "task").result()).toBe("activity");
      expect(tally.all).toEqual({ activity: 1, step: 1 });
    }),
  );

  test(
    "loses nothing of what was on its way to its log just then",
    onRuntime(backend, async ({ database, another }) => {
      const meddling = new Meddling(database);
      const holdfast = await another({}, meddling.database);
      const tally = new Tally();
      const flow = workflow("flow", async (ctx) => {
        await ctx.step("first", () => tally.count("first"));
        await ctx.sleep(1);
        return ctx.step("last", () => tally.count("last"));
      });
      await holdfast.work([flow], forLong);
      const waits = meddling.holdNext("appendEvents", "call", appends("waiting"));
      const run = await holdfast.start(flow, undefined, { id: "r" });
      await waits.reached;
      await holdfast.start(flow, undefined, { id: "r" });
      waits.release();
      expect(await run.result()).toBe(1);
      expect(tally.all).toEqual({ first: 1, last: 1 });
    }),
  );

  test(
    "between two passes goes on when it is resumed, though it was paused and resumed while it was given back",
    onRuntime(backend, async ({ database, another }) => {
      const meddling = new Meddling(database);
      const holdfast = await another({}, meddling.database);
      const passing = workflow("passing", async (ctx, pass: number) => {
        await ctx.step("s", () => pass);
        return pass === 0 ? ctx.continueWith(1) : "done";
      });
      await holdfast.work([passing], forLong);
      const loading = meddling.holdNext("loadExecution", "answer");
      const run = await holdfast.start(passing, 0, { id: "r" });
      await loading.reached;
      const looks = meddling.holdNext("readExecution", "answer");
      await run.pause();
      await looks.reached;
      looks.release();
      const givenBack = meddling.holdNext("appendEvents", "call", appends("unlocked"));
      loading.release();
      await givenBack.reached;
      await run.resume();
      givenBack.release();
      expect(await run.result()).toBe("done");
    }),
  );
}

/** Starts runs until the answer to one is lost: while a worker looks for work it has no place to begin one at once. */
async function firstRefused(start: (id: string) => Promise<unknown>): Promise<string> {
  for (let time = 0; ; time += 1) {
    const id = `r-${time}`;
    const isTold = await start(id).then(
      () => true,
      () => false,
    );
    if (!isTold) return id;
  }
}

function unableTests(backend: Backend): void {
  test(
    "and is paused is given back, and parked when it is resumed",
    onRuntime(backend, async ({ database, another }) => {
      let isBroken = false;
      const payload: NonNullable<StoreOptions["payload"]> = {
        name: "kms",
        hash: "sha256",
        encode(text) {
          if (isBroken) throw new Error("the KMS is away");
          return text;
        },
        decode: (text) => text,
      };
      const meddling = new Meddling(database);
      const holdfast = await another({ payload }, meddling.database);
      const begun = gate();
      const isOver = gate();
      const flow = workflow("flow", (ctx) =>
        ctx.step("s", async () => {
          begun.open();
          await isOver.opened;
          return "done";
        }),
      );
      await holdfast.work([flow], forLong);
      const run = await holdfast.start(flow, undefined, { id: "r" });
      await begun.opened;
      await run.pause();
      isBroken = true;
      isOver.open();
      await until(async () => (await kindsOf(holdfast, "r")).at(-1) === "unlocked");
      await run.resume();
      await until(async () => (await run.status()) === "parked");
      isBroken = false;
      await run.unpark();
      expect(await run.result()).toBe("done");
    }),
  );

  test(
    "[RT10] and is cancelled while that is being recorded ends cancelled, at once",
    onRuntime(backend, async ({ database, another }) => {
      const before = await another();
      const old = workflow("flow", async (ctx) => {
        await ctx.step("old", () => 1);
        await ctx.receive(go);
      });
      await before.work([old], forLong);
      const begun = await before.start(old, undefined, { id: "r" });
      await until(async () => (await begun.status()) === "blocked");
      await before.close();
      const meddling = new Meddling(database);
      const after = await another({}, meddling.database);
      const changed = workflow("flow", async (ctx) => {
        await ctx.step("new", () => 1);
        await ctx.receive(go);
      });
      const parks = meddling.holdNext("appendEvents", "call", appends("parked"));
      await after.work([changed], forLong);
      const run = after.get(changed, "r");
      await run.signal(go);
      await parks.reached;
      await run.cancel();
      parks.release();
      expect(await rejection(run.result())).toMatchObject({
        kind: "cancelled",
      });
    }),
  );

  test.each([{}, { concurrency: 1 }])(
    "[RT10] since it is being recorded that it waits runs its cleanup when it is cancelled, with limits %j",
    (limits) =>
      onRuntime(backend, async ({ database, another }) => {
        const meddling = new Meddling(database);
        const holdfast = await another({}, meddling.database);
        const tally = new Tally();
        const flow = workflow("flow", limits, async (ctx) => {
          await ctx.step("reserve", () => 1);
          try {
            await ctx.sleep("1 hour");
          } finally {
            await ctx.step("undo", () => tally.count("undone"));
          }
        });
        const isOver = gate();
        const busy = activity("busy", () => isOver.opened);
        await holdfast.work([flow, busy], { ...forLong, concurrency: 1 });
        const waits = meddling.holdNext("appendEvents", "answer", appends("waiting"));
        const run = await holdfast.start(flow, undefined, { id: "r" });
        await waits.reached;
        // They are due before it, and have the place when it rests.
        for (let count = 0; count < 2; count += 1) await holdfast.start(busy);
        await run.cancel();
        await settled();
        waits.release();
        await settled();
        isOver.open();
        expect(await rejection(run.result())).toMatchObject({
          kind: "cancelled",
        });
        expect(tally.all).toEqual({ undone: 1 });
      })(),
  );
}

function untoldTests(backend: Backend): void {
  /** The next lock that finds something is made, and its answer lost. */
  function loseNextLock(meddling: Meddling): Promise<void> {
    const isLost = gate();
    meddling.on("lockPending", async (lock) => {
      const answer = (await lock()) as { readonly locked: readonly unknown[] };
      if (answer.locked.length === 0) return answer;
      meddling.on("lockPending", () => undefined);
      isLost.open();
      throw answerLost();
    });
    return isLost.opened;
  }

  /** The lock that was lost is given back before the run hears that it gave back the one before. */
  async function givenBackAgain(client: Holdfast, before: Held): Promise<void> {
    await until(async () => (await kindsOf(client, "r")).at(-1) !== "locked");
    before.release();
  }

  test(
    "is given back though the run has not heard that it gave the last one back",
    onRuntime(backend, async ({ holdfast: client, database, another }) => {
      const meddling = new Meddling(database);
      const holdfast = await another({}, meddling.database);
      const begun = gate();
      const isOver = gate();
      const flow = workflow("flow", async (ctx) => {
        await ctx.step("s", async () => {
          begun.open();
          await isOver.opened;
        });
        return "done";
      });
      await holdfast.work([flow], forLong);
      const givenBack = meddling.holdNext("appendEvents", "answer", appends("unlocked"));
      await holdfast.start(flow, undefined, { id: "r" });
      const run = client.get(flow, "r");
      await begun.opened;
      await run.pause();
      isOver.open();
      await givenBack.reached;
      const isLost = loseNextLock(meddling);
      await run.resume();
      await isLost;
      await givenBackAgain(client, givenBack);
      expect(await run.result()).toBe("done");
    }),
  );

  test(
    "is given back though the run, whose code has ended, has not heard that it gave the last one back",
    onRuntime(backend, async ({ holdfast: client, database, another }) => {
      const meddling = new Meddling(database);
      const holdfast = await another({}, meddling.database);
      const detached = workflow("detached", async () => 1);
      const flow = workflow("flow", async (ctx, pass: number) => {
        if (pass === 1) return "done";
        void ctx.start(detached, undefined, { id: "detached" });
        return ctx.continueWith(1);
      });
      await holdfast.work([flow], forLong);
      const asks = meddling.holdNext("appendEvents", "call", appends("scheduled"));
      await holdfast.start(flow, 0, { id: "r" });
      const run = client.get(flow, "r");
      await asks.reached;
      const hears = meddling.holdNext("readExecution", "answer");
      await run.pause();
      await hears.reached;
      hears.release();
      await settled();
      const givenBack = meddling.holdNext("appendEvents", "answer", appends("unlocked"));
      asks.release();
      await givenBack.reached;
      const isLost = loseNextLock(meddling);
      await run.resume();
      await isLost;
      await givenBackAgain(client, givenBack);
      expect(await run.result()).toBe("done");
    }),
  );

  test(
    "is looked for once for many answers that were lost meanwhile",
    onRuntime(backend, async ({ holdfast: client, database, another }) => {
      const meddling = new Meddling(database);
      const holdfast = await another({}, meddling.database);
      const flow = workflow("flow", async (_, n: number) => n);
      await holdfast.work([flow], { ...forLong, concurrency: 50 });
      let looks = 0;
      const mayLook = gate();
      meddling.on("readHeld", async (look) => {
        looks += 1;
        await mayLook.opened;
        return look();
      });
      let lost = 0;
      meddling.on("createAndLock", async (create) => {
        await create();
        lost += 1;
        throw answerLost();
      });
      const numbers = Array.from({ length: 20 }, (_, n) => n);
      // While a worker looks for work it has no place to begin one at once.
      for (let round = 0; lost === 0; round += 1)
        await Promise.allSettled(
          numbers.map((n) => holdfast.start(flow, n, { id: `${round}-${n}` })),
        );
      meddling.on("createAndLock", () => undefined);
      mayLook.open();
      const runs = numbers.map((n) => client.get(flow, `0-${n}`).result());
      expect(await Promise.all(runs)).toEqual(numbers);
      const isOver = async (): Promise<boolean> =>
        (await client.runs.list({ status: "running" })).items.length === 0;
      await until(isOver);
      expect(lost).toBeGreaterThan(3);
      // One, another for what was lost since it began, and the late one.
      expect(looks).toBeLessThanOrEqual(3);
    }),
  );

  test(
    "is given back when its run is started again, though it was made only after somebody had looked for it",
    onRuntime(backend, async ({ database, another }) => {
      const meddling = new Meddling(database);
      const holdfast = await another({}, meddling.database);
      const tally = new Tally();
      const once = activity("once", { retry: { maxRetries: 0 } }, async (_, name: string) =>
        tally.count(name),
      );
      await holdfast.work([once], forLong);
      let commit: (() => Promise<unknown>) | undefined;
      const hasLooked = meddling.holdNext("readHeld", "answer");
      meddling.on("createAndLock", (create) => {
        if (commit !== undefined) return undefined;
        commit = create;
        return Promise.reject(answerLost());
      });
      const id = await firstRefused((given) => holdfast.start(once, given, { id: given }));
      await hasLooked.reached;
      hasLooked.release();
      await settled();
      await commit?.();
      const run = await holdfast.start(once, id, { id });
      expect(await run.result()).toBe(1);
    }),
  );

  test(
    "is given back also by a worker that closes just then, however often that must be tried",
    onRuntime(backend, async ({ holdfast: client, database, another }) => {
      const meddling = new Meddling(database);
      const holdfast = await another({}, meddling.database);
      const flow = workflow("flow", async () => "done");
      await holdfast.work([flow], forLong);
      meddling.loseNext("createAndLock", 1);
      const looks = meddling.holdNext("readHeld", "answer");
      const id = await firstRefused((given) => holdfast.start(flow, undefined, { id: given }));
      await looks.reached;
      meddling.loseNext("appendEvents", 1, false);
      const closing = holdfast.close({ timeout: "1 hour" });
      looks.release();
      await closing;
      const next = await another();
      await next.work([flow], forLong);
      expect(await client.get(flow, id).result()).toBe("done");
    }),
  );
}
