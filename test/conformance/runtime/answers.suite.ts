import { describe, expect, test } from "vitest";
import { activity, signal, workflow } from "../../../src/runtime/definition/definitions.ts";
import type { Holdfast } from "../../../src/runtime/client/holdfast.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { onRuntime } from "./fixture.ts";
import { appends, Meddling } from "./meddling.ts";
import { gate, kindsOf, until } from "./waiting.ts";

/** Kept in memory at every wait, and forgotten at every wait. */
const keeping = [
  { title: "hot", hotRunsMax: 1_000 },
  { title: "cold", hotRunsMax: 0 },
] as const;

async function responsesOf({ executions }: Holdfast, id: string) {
  return (await executions.responses(id)).items;
}

/** Answers of children, sleeps and signals: when they come, and to whom they go. */
export function runtimeAnswersSuite(backend: Backend): void {
  describe("an answer that comes", () => {
    momentTests(backend);
    interruptionTests(backend);
  });
  describe("a cancellation", () => {
    unheardTests(backend);
  });
  describe("closing", () => {
    closingTests(backend);
  });
  describe("an answer goes to the call that asked", () => {
    addressTests(backend);
  });
  describe("a child's failure", () => {
    failureTests(backend);
  });
}

function momentTests(backend: Backend): void {
  const go = signal<number>("go");
  const two = workflow("two", async (ctx) => [await ctx.receive(go), await ctx.receive(go)]);

  test(
    "[RT5] while a run is being locked, behind what the lock has read, is not missed",
    onRuntime(backend, async ({ database, another }) => {
      const meddling = new Meddling(database);
      const holdfast = await another({}, meddling.database);
      const run = await holdfast.start(two);
      const held = meddling.holdNext("lockPending", "answer");
      await holdfast.work([two]);
      await held.reached;
      await run.signal(go, 1);
      await run.signal(go, 2);
      held.release();
      expect(await run.result()).toEqual([1, 2]);
    }),
  );

  test(
    "[RT5] while a run is being created and locked is not missed",
    onRuntime(backend, async ({ database, another }) => {
      const meddling = new Meddling(database);
      const holdfast = await another({}, meddling.database);
      const looked = meddling.firstLook();
      await holdfast.work([two]);
      await looked;
      const held = meddling.holdNext("createAndLock", "answer");
      const starting = holdfast.start(two, undefined, { id: "r" });
      await held.reached;
      await holdfast.get(two, "r").signal(go, 1);
      held.release();
      const run = await starting;
      await run.signal(go, 2);
      expect(await run.result()).toEqual([1, 2]);
    }),
  );

  for (const operation of ["lockPending", "createAndLock"])
    test(
      `[RT5] while ${operation} is being answered is told to what then runs, before it appends`,
      onRuntime(backend, async ({ database, another }) => {
        const meddling = new Meddling(database);
        const holdfast = await another({}, meddling.database);
        const long = gate();
        const either = workflow("either", async (ctx) =>
          Promise.race([
            ctx.step("long", () => long.opened),
            ctx.receive(go).then(() => "received"),
          ]),
        );
        const start = () => holdfast.start(either, undefined, { id: "r" });
        if (operation === "lockPending") await start();
        const looked = operation === "createAndLock" ? meddling.firstLook() : undefined;
        const held = meddling.holdNext(operation, "answer");
        await holdfast.work([either]);
        await looked;
        if (operation === "createAndLock") void start();
        await held.reached;
        await holdfast.get(either, "r").signal(go, 1);
        held.release();
        expect(await holdfast.get(either, "r").result()).toBe("received");
        long.open();
      }),
    );

  test(
    "[RT5] in the same moment as the lock is in what was locked, or is told of",
    onRuntime(backend, async ({ holdfast }) => {
      await holdfast.work([two]);
      const ids = Array.from({ length: 20 }, (_, n) => `r-${n}`);
      const results = await Promise.all(
        ids.map(async (id) => {
          const starting = holdfast.start(two, undefined, { id });
          const run = holdfast.get(two, id);
          const sent = async (value: number): Promise<void> => {
            try {
              await run.signal(go, value);
            } catch {
              // It was not there yet.
              await starting;
              await run.signal(go, value);
            }
          };
          await Promise.all([sent(1), sent(2)]);
          return run.result();
        }),
      );
      for (const result of results) expect(result.toSorted((a, b) => a - b)).toEqual([1, 2]);
    }),
  );

  test(
    "[RT5] while the one before is being read is read too",
    onRuntime(backend, async ({ database, another }) => {
      const meddling = new Meddling(database);
      const holdfast = await another({}, meddling.database);
      await holdfast.work([two]);
      const run = await holdfast.start(two);
      await until(async () => (await run.status()) === "blocked");
      const held = meddling.holdNext("listResponses", "answer");
      await run.signal(go, 1);
      await held.reached;
      await run.signal(go, 2);
      held.release();
      expect(await run.result()).toEqual([1, 2]);
    }),
  );

  for (const { title, hotRunsMax } of keeping) {
    test(
      `[E61] before it is awaited lets the wait end at once, ${title}`,
      onRuntime(backend, async ({ holdfast }) => {
        const child = workflow("child", async () => "answered");
        const finish = gate();
        const parent = workflow("parent", async (ctx) => {
          const answer = ctx.call(child);
          await ctx.step("meanwhile", () => finish.opened);
          return answer;
        });
        await holdfast.work([parent, child], { hotRunsMax });
        const run = await holdfast.start(parent, undefined, { id: "p" });
        await until(async () => (await responsesOf(holdfast, "p")).length === 1);
        finish.open();
        expect(await run.result()).toBe("answered");
      }),
    );

    test(
      `[E61] a signal that is there when the run begins needs no wait at all, ${title}`,
      onRuntime(backend, async ({ holdfast }) => {
        const run = await holdfast.start(two);
        await run.signal(go, 1);
        await run.signal(go, 2);
        await holdfast.work([two], { hotRunsMax });
        expect(await run.result()).toEqual([1, 2]);
        expect(await kindsOf(holdfast, run.id)).not.toContain("waiting");
      }),
    );
  }
}

/** Somebody asks for the end while a worker is being told that the run is its. */
function interruptionTests(backend: Backend): void {
  const told = (aborted: AbortSignal): Promise<string> =>
    new Promise((resolve) => aborted.addEventListener("abort", () => resolve("told to stop")));
  const functions = [
    workflow("long", async (ctx) => ctx.step("long", ({ abortSignal }) => told(abortSignal))),
    activity("long", async ({ abortSignal }) => told(abortSignal)),
  ];
  for (const long of functions)
    for (const operation of ["lockPending", "createAndLock"])
      test(
        `[RT5] a cancellation of ${long.kind === "workflow" ? "a workflow" : "an activity"} while ${operation} is being answered reaches what then runs`,
        onRuntime(backend, async ({ database, another }) => {
          const meddling = new Meddling(database);
          const holdfast = await another({}, meddling.database);
          const looked = operation === "createAndLock" ? meddling.firstLook() : undefined;
          const held = meddling.holdNext(operation, "answer");
          const start = () => holdfast.start(long, undefined, { id: "r" });
          if (operation === "lockPending") await start();
          await holdfast.work([long]);
          await looked;
          if (operation === "createAndLock") void start();
          await held.reached;
          const run = holdfast.get(long, "r");
          await run.cancel();
          held.release();
          if (long.kind === "activity") return expect(await run.result()).toBe("told to stop");
          expect(await rejection(run.result())).toMatchObject({
            kind: "cancelled",
          });
          const { items } = await run.events({ kinds: ["stepFinished"] });
          expect(items.map(({ event }) => event)).toMatchObject([{ value: "told to stop" }]);
        }),
      );
}

function closingTests(backend: Backend): void {
  const quick = workflow("quick", async (ctx) => ctx.step("step", () => 1));
  for (const operation of ["lockPending", "createAndLock"])
    test(
      `a lock that ${operation} answers with while the worker closes is given back before it has closed`,
      onRuntime(backend, async ({ holdfast, database, another }) => {
        const meddling = new Meddling(database);
        const closing = await another({}, meddling.database);
        const start = () => closing.start(quick, undefined, { id: "r" });
        const looked = operation === "createAndLock" ? meddling.firstLook() : undefined;
        const held = meddling.holdNext(operation, "answer");
        if (operation === "lockPending") await start();
        await closing.work([quick]);
        await looked;
        const started = operation === "createAndLock" ? start() : undefined;
        await held.reached;
        const closed = closing.close();
        held.release();
        await closed;
        await started;
        const { status } = await holdfast.executions.get("r");
        expect(["pending", "completed"]).toContain(status);
        await holdfast.work([quick]);
        // A lease lasts longer than this.
        const run = holdfast.get(quick, "r");
        expect(await run.result({ timeout: "20s" })).toBe(1);
      }),
    );
}

function unheardTests(backend: Backend): void {
  for (const { title, hotRunsMax } of keeping)
    test(
      `[RT10] that comes just before the run records that it waits ends the wait, ${title}`,
      onRuntime(backend, async ({ database, another }) => {
        const meddling = new Meddling(database);
        const holdfast = await another({}, meddling.database);
        const asleep = workflow("asleep", async (ctx) => {
          try {
            await ctx.sleep("1 day");
          } finally {
            await ctx.step("cleanup", () => "done");
          }
        });
        await holdfast.work([asleep], { hotRunsMax });
        const held = meddling.holdNext("appendEvents", "call", appends("waiting"));
        const run = await holdfast.start(asleep);
        await held.reached;
        await run.cancel();
        held.release();
        expect(await rejection(run.result())).toMatchObject({
          kind: "cancelled",
        });
        expect(await kindsOf(holdfast, run.id)).toContain("stepFinished");
      }),
    );
}

function addressTests(backend: Backend): void {
  for (const { title, hotRunsMax } of keeping) {
    test(
      `[E73] another function's child and a sleep that end first settle their own calls, ${title}`,
      onRuntime(backend, async ({ holdfast }) => {
        const finish = gate();
        const asked = activity("asked", async () => {
          await finish.opened;
          return "asked";
        });
        const other = activity("other", async () => "other");
        const parent = workflow("parent", async (ctx) => {
          const order: string[] = [];
          const first = ctx.call(asked);
          const second = ctx.call(other).then((value) => order.push(value));
          const third = ctx.sleep(1).then(() => order.push("slept"));
          order.push(await first);
          await Promise.all([second, third]);
          return order;
        });
        await holdfast.work([parent, asked, other], { hotRunsMax });
        const run = await holdfast.start(parent, undefined, { id: "p" });
        await until(async () => (await responsesOf(holdfast, "p")).length === 2);
        finish.open();
        const order = await run.result();
        expect(order.toSorted()).toEqual(["asked", "other", "slept"]);
        expect(order.at(-1)).toBe("asked");
      }),
    );

    test(
      `[E73] a set gives what has ended, of whichever function, and each once, ${title}`,
      onRuntime(backend, async ({ holdfast }) => {
        const finish = gate();
        const slow = activity("slow", async () => {
          await finish.opened;
          return "slow";
        });
        const quick = workflow("quick", async () => "quick");
        const parent = workflow("parent", async (ctx) => {
          const set = ctx.joinSet<string>();
          set.spawn(slow);
          set.spawn(quick);
          const first = await set.next();
          await ctx.step("let it end", () => finish.open());
          return [first, await set.next(), await set.next()];
        });
        await holdfast.work([parent, slow, quick], { hotRunsMax });
        const run = await holdfast.start(parent);
        expect(await run.result()).toEqual(["quick", "slow", undefined]);
      }),
    );

    test(
      `[E69] a call, a set without a name and one that is called like them have children of their own, ${title}`,
      onRuntime(backend, async ({ holdfast }) => {
        const child = workflow("child", async (_, n: number) => n);
        const parent = workflow("parent", async (ctx) => {
          const call = ctx.call(child, 1);
          const generated = ctx.joinSet<number>();
          const named = ctx.joinSet<number>("1");
          const ids = [named.spawn(child, 2).id, generated.spawn(child, 3).id];
          const values = [await call, await named.next(), await generated.next()];
          return { ids, values };
        });
        await holdfast.work([parent, child], { hotRunsMax });
        const run = await holdfast.start(parent, undefined, { id: "p" });
        expect(await run.result()).toEqual({
          ids: ["p.n:1_1", "p.g:1_1"],
          values: [1, 2, 3],
        });
        const { items } = await holdfast.executions.tree("p");
        expect(items.map(({ id }) => id).toSorted()).toEqual([
          "p",
          "p.g:1_1",
          "p.n:1_1",
          "p.o:1_1",
        ]);
      }),
    );

    test(
      `[E70] sleeps that begin together are two, and each can be awaited, ${title}`,
      onRuntime(backend, async ({ holdfast }) => {
        const resting = workflow("resting", async (ctx) => {
          const first = ctx.sleep(1);
          const second = ctx.sleep(1);
          await second;
          await first;
          await Promise.race([ctx.sleep(1), ctx.sleep("1 day")]);
          return "rested";
        });
        await holdfast.work([resting], { hotRunsMax });
        const run = await holdfast.start(resting);
        expect(await run.result()).toBe("rested");
        const { items } = await run.events({ kinds: ["delayRequested"] });
        const delays = items.map(({ event }) => (event as { delay: string }).delay);
        expect(new Set(delays).size).toBe(4);
      }),
    );
  }

  test(
    "[E69] two sets of one name in one run are refused in the code that asks for the second",
    onRuntime(backend, async ({ holdfast }) => {
      const child = workflow("child", async (_, n: number) => n);
      const twice = workflow("twice", async (ctx) => {
        const set = ctx.joinSet<number>("same");
        set.spawn(child, 1);
        const error = await Promise.resolve()
          .then(() => ctx.joinSet<number>("same"))
          .catch((thrown: unknown) => thrown as { code?: string });
        return { code: "code" in error && error.code, value: await set.next() };
      });
      await holdfast.work([twice, child]);
      const run = await holdfast.start(twice);
      expect(await run.result()).toEqual({ code: "JOIN_SET_EXISTS", value: 1 });
    }),
  );

  test(
    "as many sets as a run has are no leak to Node",
    onRuntime(backend, async ({ holdfast }) => {
      const warnings: string[] = [];
      const note = ({ name }: Error): unknown => warnings.push(name);
      process.on("warning", note);
      const many = workflow("many", async (ctx) => {
        for (let made = 0; made < 20; made += 1) ctx.joinSet();
        return ctx.step("last", () => "done");
      });
      await holdfast.work([many]);
      expect(await (await holdfast.start(many)).result()).toBe("done");
      // Node tells of it in a tick of its own.
      await new Promise((resolve) => setImmediate(resolve));
      process.off("warning", note);
      expect(warnings).not.toContain("MaxListenersExceededWarning");
    }),
  );
}

function failureTests(backend: Backend): void {
  for (const { title, hotRunsMax } of keeping)
    test(
      `[E78] reaches its parent as one kind of error that says how it ended and why, ${title}`,
      onRuntime(backend, async ({ holdfast }) => {
        const throws = activity("throws", { retry: { maxRetries: 0 } }, async () => {
          throw Object.assign(new RangeError("no paper"), {
            code: "E_PAPER",
          });
        });
        const nested = workflow("nested", async (ctx) => ctx.call(throws));
        const asleep = workflow("asleep", async (ctx) => ctx.sleep("1 day"));
        const parent = workflow("parent", async (ctx) => {
          const cancelled = ctx.spawn(asleep);
          cancelled.cancel();
          const errors = [
            await rejection(ctx.call(throws)),
            await rejection(ctx.call(nested)),
            await rejection(cancelled.result()),
            await rejection(ctx.call(asleep, undefined, { deadline: 1 })),
          ];
          await ctx.sleep(1);
          return errors.map((error) => {
            const { name, kind, cause } = error as Error & { kind: string };
            const why = cause as (Error & { code?: string }) | undefined;
            const root = why?.cause as (Error & { code?: string }) | undefined;
            return [name, kind, why?.name, why?.code, root?.code];
          });
        });
        await holdfast.work([parent, throws, nested, asleep], { hotRunsMax });
        const run = await holdfast.start(parent);
        const failed = "RunFailedError";
        expect(await run.result()).toEqual([
          [failed, "failed", "RangeError", "E_PAPER", undefined],
          [failed, "failed", failed, undefined, "E_PAPER"],
          [failed, "cancelled", undefined, undefined, undefined],
          [failed, "timedOut", undefined, undefined, undefined],
        ]);
      }),
    );
}
