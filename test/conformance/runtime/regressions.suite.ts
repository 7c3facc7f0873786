import { AsyncLocalStorage } from "node:async_hooks";
import { describe, expect, test } from "vitest";
import { activity, signal, workflow } from "../../../src/runtime/definition/definitions.ts";
import { manualClock } from "../../../src/model/time/clock.ts";
import { rows, run as execute } from "../../../src/sql/operation.ts";
import { sql } from "../../../src/sql/statement.ts";
import { byAnn, T0 } from "../execution/fixture.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { onRuntime } from "./fixture.ts";
import { appends, Meddling } from "./meddling.ts";
import { recordedRun, stepDone } from "./recorded-run.ts";
import { gate, kindsOf, Tally, until } from "./waiting.ts";

const once = { retry: { maxRetries: 0 } };

/** What went wrong in other engines, and in the prototype of this one. */
export function runtimeRegressionsSuite(backend: Backend): void {
  describe("wake-ups", () => {
    wakeTests(backend);
  });
  describe("what was begun elsewhere", () => {
    elsewhereTests(backend);
  });
  describe("retries", () => {
    retryTests(backend);
  });
  describe("what the prototype of the runtime did wrong", () => {
    shownTests(backend);
  });
}

function wakeTests(backend: Backend): void {
  const go = signal<string>("go");
  const listening = workflow("listening", async (ctx) => ctx.receive(go));

  for (const held of ["call", "answer"] as const)
    test(
      `a signal that comes ${held === "call" ? "before it is recorded" : "when it has just been recorded"} that the run waits wakes it`,
      onRuntime(backend, async ({ database, another }) => {
        const meddling = new Meddling(database);
        const holdfast = await another({}, meddling.database);
        await holdfast.work([listening], { hotRunsMax: 0 });
        const waiting = meddling.holdNext("appendEvents", held, appends("waiting"));
        const run = await holdfast.start(listening);
        await waiting.reached;
        await run.signal(go, "went");
        waiting.release();
        expect(await run.result()).toBe("went");
      }),
    );

  for (const held of ["call", "answer"] as const)
    test(
      `a child that ends while its parent is being evicted wakes it (${held} held back)`,
      onRuntime(backend, async ({ database, another }) => {
        const meddling = new Meddling(database);
        const holdfast = await another({}, meddling.database);
        const finish = gate();
        const child = activity("child", async () => {
          await finish.opened;
          return "ended";
        });
        const parent = workflow("parent", async (ctx) => ctx.call(child));
        await holdfast.work([parent, child], { hotRunsMax: 0 });
        const evicted = meddling.holdNext("appendEvents", held, appends("unlocked"));
        const run = await holdfast.start(parent, undefined, { id: "p" });
        await evicted.reached;
        finish.open();
        await until(async () => (await holdfast.executions.responses("p")).items.length === 1);
        evicted.release();
        expect(await run.result()).toBe("ended");
      }),
    );

  test(
    "a run that is locked again before its worker knows that it was evicted goes on",
    onRuntime(backend, async ({ database, another }) => {
      const meddling = new Meddling(database);
      const holdfast = await another({}, meddling.database);
      const begun = gate();
      const finish = gate();
      const twice = workflow("twice", async (ctx) => {
        await ctx.receive(go);
        return ctx.step("after", async () => {
          begun.open();
          await finish.opened;
          return "went on";
        });
      });
      await holdfast.work([twice], { hotRunsMax: 0 });
      const evicted = meddling.holdNext("appendEvents", "answer", appends("unlocked"));
      const run = await holdfast.start(twice);
      await evicted.reached;
      await run.signal(go, "went");
      await begun.opened;
      evicted.release();
      await new Promise((resolve) => setImmediate(resolve));
      finish.open();
      expect(await run.result()).toBe("went on");
    }),
  );

  test(
    "a run that is locked again while it is being evicted is not taken for the one that goes",
    onRuntime(backend, async ({ database, another }) => {
      const clock = manualClock(T0);
      const meddling = new Meddling(database);
      const holdfast = await another({ clock }, meddling.database);
      const begun = gate();
      const end = gate();
      const slow = workflow("slow", async (ctx) => {
        const sent = await ctx.receive(go);
        await ctx.step("hold", async () => {
          begun.open();
          await end.opened;
        });
        return [sent, await ctx.receive(go)];
      });
      await holdfast.work([slow], { hotRunsMax: 0, lease: "10s" });
      const evicted = meddling.holdNext("appendEvents", "call", appends("unlocked"));
      const run = await holdfast.start(slow);
      await evicted.reached;
      // Its lease ends before it is given back, and its own worker locks it again.
      clock.advance(10_000);
      await run.signal(go, "went");
      await begun.opened;
      evicted.release();
      for (let turn = 0; turn < 5; turn += 1) await run.events();
      end.open();
      // It is evicted as any other.
      await until(async () => (await kindsOf(holdfast, run.id)).includes("unlocked"));
      await run.signal(go, "again");
      expect(await run.result()).toEqual(["went", "again"]);
    }),
  );

  test(
    "a signal that was sent before the run first asks is kept, and so are those of one key once",
    onRuntime(backend, async ({ holdfast }) => {
      const late = workflow("late", async (ctx) => {
        await ctx.step("first", () => "something else");
        await ctx.sleep(1);
        return [
          await ctx.receive(go),
          await ctx.receive(go),
          await ctx.receive(go, { timeout: 1 }),
        ];
      });
      const run = await holdfast.start(late);
      await run.signal(go, "one", { key: "1" });
      await run.signal(go, "one", { key: "1" });
      await run.signal(go, "two");
      await holdfast.work([late], { hotRunsMax: 0 });
      expect(await run.result()).toEqual(["one", "two", undefined]);
    }),
  );
}

function elsewhereTests(backend: Backend): void {
  test(
    "runs that were locked by a call whose answer was lost are given back, and run before its lease ends",
    onRuntime(backend, async ({ database, another }) => {
      const clock = manualClock(T0);
      const meddling = new Meddling(database);
      const holdfast = await another({ clock }, meddling.database);
      const tally = new Tally();
      const counting = workflow("counting", async (ctx) =>
        ctx.step("count", () => tally.count(ctx.id)),
      );
      const runs = await holdfast.startMany(
        counting,
        ["a", "b", "c"].map((id) => ({ input: undefined, id })),
      );
      meddling.loseNext("lockPending", 1);
      await holdfast.work([counting], { lease: 2_000 });
      for (const { id } of runs)
        await until(async () => (await kindsOf(holdfast, id)).includes("unlocked"));
      expect(tally.all).toEqual({});
      // It looks for work again after a pause.
      clock.advance(100);
      await Promise.all(runs.map((run) => run.result()));
      expect(tally.all).toEqual({ a: 1, b: 1, c: 1 });
    }),
  );

  test(
    "an owner that has lost its run commits nothing: the tables of the app are as if it had not run",
    onRuntime(backend, async ({ database, another, said }) => {
      await database.setUp("test", [
        {
          name: "0001_entry",
          up: () => execute(sql`CREATE TABLE entry (author TEXT NOT NULL)`),
        },
      ]);
      const meddling = new Meddling(database);
      const stale = await another({ clock: manualClock(T0) }, meddling.database);
      const clock = manualClock(T0);
      const other = await another({ clock });
      const booking = (author: string) =>
        workflow("booking", async (ctx) =>
          ctx.transaction("book", function* () {
            yield* execute(sql`INSERT INTO entry VALUES (${author})`);
            return author;
          }),
        );
      await stale.work([booking("stale")], { lease: 2_000 });
      const held = meddling.holdNext("transaction book", "call");
      const run = await stale.start(booking("stale"));
      await held.reached;
      await other.work([booking("other")], { lease: 2_000 });
      clock.advance(2_000);
      await until(async () => (await kindsOf(other, run.id)).includes("attemptTimedOut"));
      clock.advance(100);
      expect(await run.result()).toBe("other");
      held.release();
      await until(() => said.some(({ message }) => message.includes("no longer has run")));
      expect(
        await database.read("entries", () =>
          rows<{ author: string }>(sql`SELECT author FROM entry`),
        ),
      ).toEqual([{ author: "other" }]);
    }),
  );

  test(
    "a time that a run waits for is not lost with the worker that kept it in memory",
    onRuntime(backend, async ({ another }) => {
      const clock = manualClock(T0);
      const holdfast = await another({ clock });
      const { executions } = holdfast;
      const go = signal("go");
      const patient = workflow("patient", async (ctx) => {
        const reply = await ctx.receive(go, { timeout: 5_000 });
        return reply === undefined ? "nobody answered" : "answered";
      });
      await executions.createLocked({ id: "r", function: "patient" }, { ...byAnn, lease: 10_000 });
      await executions.append(
        "r",
        2,
        [
          {
            kind: "receiveRequested",
            signal: "go",
            expiresAt: T0 + 5_000,
            call: 1,
          },
          {
            kind: "waiting",
            runExpiresAt: T0 + 10_000,
            wakeAt: T0 + 5_000,
            call: 1,
          },
        ],
        { fence: byAnn.holder },
      );
      await holdfast.work([patient]);
      clock.advance(5_000);
      expect((await kindsOf(holdfast, "r")).at(-1)).toBe("waiting");
      clock.advance(5_000);
      expect(await holdfast.get(patient, "r").result()).toBe("nobody answered");
    }),
  );

  test(
    "children of a run that ended are cancelled elsewhere when its worker is gone before it has asked them to end",
    onRuntime(backend, async ({ database, another }) => {
      const meddling = new Meddling(database);
      const gone = await another({ clock: manualClock(T0) }, meddling.database);
      const clock = manualClock(T0);
      const other = await another({ clock });
      const asleep = workflow("asleep", async (ctx) => ctx.sleep("1 day"));
      const hasty = workflow("hasty", async (ctx) => {
        ctx.spawn(asleep);
        await ctx.sleep(0);
        return "done";
      });
      const held = meddling.holdNext("requestCancellation", "call");
      await gone.work([hasty, asleep], { lease: 2_000 });
      const run = await gone.start(hasty, undefined, { id: "p" });
      await held.reached;
      await until(async () => (await kindsOf(other, "p")).at(-1) === "waiting");
      await other.work([hasty, asleep], { lease: 2_000 });
      clock.advance(60_000 + 2_000);
      expect(await run.result()).toBe("done");
      const { items } = await other.executions.tree("p");
      expect(items.map(({ status }) => status)).toEqual(["completed", "cancelled"]);
      held.release();
    }),
  );

  test(
    "a start under one id from two sides at once is one run",
    onRuntime(backend, async ({ holdfast, another }) => {
      const tally = new Tally();
      const counting = workflow("counting", async (ctx, n: number) =>
        ctx.step("count", () => {
          tally.count(ctx.id);
          return n;
        }),
      );
      const other = await another();
      for (const side of [holdfast, other]) await side.work([counting], { concurrency: 150 });
      const ids = Array.from({ length: 20 }, (_, n) => `r-${n}`);
      const results = await Promise.all(
        ids.flatMap((id, n) =>
          [holdfast, other].map(async (side) => {
            const run = await side.start(counting, n, { id });
            return run.result();
          }),
        ),
      );
      expect(results).toEqual(ids.flatMap((_, n) => [n, n]));
      expect(Object.values(tally.all)).toEqual(ids.map(() => 1));
    }),
  );

  test(
    "a retry of a run that failed behind a child, a sleep and a set goes on from there",
    onRuntime(backend, async ({ holdfast }) => {
      const tally = new Tally();
      const child = workflow("child", async (_, n: number) => n);
      const mending = workflow("mending", async (ctx) => {
        const called = await ctx.call(child, 1);
        const slept = ctx.sleep(1);
        const set = ctx.joinSet<number>();
        set.spawn(child, 2);
        const taken = await set.next();
        await slept;
        const drawn = await ctx.step("draw", () => {
          tally.count("draw");
          return 4;
        });
        await ctx.step("fails once", once, () => {
          if (tally.count("fails once") === 1) throw new Error("not yet");
        });
        return [called, taken, drawn];
      });
      await holdfast.work([mending, child]);
      const failed = await holdfast.start(mending);
      await rejection(failed.result());
      const retried = await failed.retry();
      expect(await retried.result()).toEqual([1, 2, 4]);
      expect(tally.all).toEqual({ draw: 1, "fails once": 2 });
    }),
  );
}

function retryTests(backend: Backend): void {
  test(
    "a cancelled activity is not tried again, also when it is cancelled between two attempts",
    onRuntime(backend, async ({ another }) => {
      const clock = manualClock(T0);
      const holdfast = await another({ clock });
      const tally = new Tally();
      const failing = activity("failing", { retry: { backoff: 1_000 } }, async () => {
        tally.count("attempt");
        throw new Error("always");
      });
      await holdfast.work([failing]);
      const run = await holdfast.start(failing);
      await until(async () => (await kindsOf(holdfast, run.id)).includes("attemptFailed"));
      await run.cancel();
      expect(await rejection(run.result())).toMatchObject({
        kind: "cancelled",
      });
      clock.advance(60_000);
      expect(tally.of("attempt")).toBe(1);
      expect((await kindsOf(holdfast, run.id)).at(-1)).toBe("finished");
    }),
  );

  for (const hotRunsMax of [1_000, 0])
    test(
      `a step of a cancelled run is not tried again, ${hotRunsMax === 0 ? "forgotten" : "kept"} between two attempts`,
      onRuntime(backend, async ({ another }) => {
        const clock = manualClock(T0);
        const holdfast = await another({ clock });
        const tally = new Tally();
        const failing = workflow("failing", async (ctx) =>
          ctx.step("failing", { retry: { backoff: "10s" } }, () => {
            tally.count("attempt");
            throw new Error("always");
          }),
        );
        await holdfast.work([failing], { hotRunsMax });
        const run = await holdfast.start(failing);
        await until(async () => (await kindsOf(holdfast, run.id)).includes("waiting"));
        await run.cancel();
        expect(await rejection(run.result())).toMatchObject({
          kind: "cancelled",
        });
        clock.advance(60_000);
        expect(tally.of("attempt")).toBe(1);
      }),
    );
}

function shownTests(backend: Backend): void {
  test(
    "[RT15] the time of a run does not go back when an answer is older than what it has seen",
    onRuntime(backend, async ({ another }) => {
      const holdfast = await another({ clock: manualClock(T0 + 100) });
      const early = await another({ clock: manualClock(T0 + 50) });
      const go = signal("go");
      const timed = workflow("timed", async (ctx) => {
        const instants = [ctx.now()];
        await ctx.step("first", () => undefined);
        instants.push(ctx.now());
        await ctx.receive(go);
        instants.push(ctx.now());
        await ctx.step("second", () => undefined);
        return [...instants, ctx.now()];
      });
      await holdfast.work([timed], { hotRunsMax: 0 });
      const run = await holdfast.start(timed);
      await until(async () => (await run.status()) === "blocked");
      await early.get(timed, run.id).signal(go);
      const instants = await run.result();
      expect(instants).toEqual(instants.toSorted((a, b) => a - b));
      expect(instants.at(-1)).toBe(T0 + 100);
    }),
  );

  test(
    "[RT15] ctx inside a step or a transaction is refused whatever it is asked for, and what follows draws the same on replay",
    onRuntime(backend, async ({ holdfast }) => {
      const nested = workflow("nested", async (ctx) => {
        const inside: (() => unknown)[] = [
          () => ctx.step("inner", () => 1),
          () => ctx.sleep(1),
          () => ctx.uuid(),
          () => ctx.random(),
          () => ctx.patched("p"),
        ];
        const refused = (): readonly unknown[] =>
          inside.map((call) => {
            try {
              void call();
            } catch (error) {
              return (error as { code?: string }).code;
            }
            return "nothing was thrown";
          });
        const codes = await ctx.step("outer", refused);
        const inBody = await ctx.transaction("outer too", function* () {
          const first = refused();
          yield* rows(sql`SELECT 1 AS one`);
          return [...first, ...refused()];
        });
        const before = ctx.uuid();
        await ctx.sleep(1);
        return {
          codes,
          inBody,
          isSame: (await ctx.step("x", () => before)) === before,
        };
      });
      await holdfast.work([nested], { hotRunsMax: 0 });
      const run = await holdfast.start(nested);
      expect(await run.result()).toEqual({
        codes: Array.from({ length: 5 }, () => "CTX_IN_STEP"),
        inBody: Array.from({ length: 10 }, () => "CTX_IN_STEP"),
        isSame: true,
      });
    }),
  );

  test(
    "[RT15] a patch that the code asks for no more does not park runs that have it",
    onRuntime(backend, async ({ holdfast }) => {
      const name = "patched";
      const cleaned = workflow(name, async (ctx) => {
        const a = await ctx.step("new way", () => "again");
        return `${a} and ${await ctx.step("then", () => "then")}`;
      });
      await recordedRun(holdfast, "r", name, [
        { kind: "patched", patch: "p", call: 0 },
        stepDone(1, "new way", "recorded"),
      ]);
      await holdfast.work([cleaned]);
      expect(await holdfast.get(cleaned, "r").result()).toBe("recorded and then");
    }),
  );

  for (const hotRunsMax of [1_000, 0])
    test(
      `[RT15] what a caller keeps in its async context is not visible in a run, ${hotRunsMax === 0 ? "replayed" : "live"}`,
      onRuntime(backend, async ({ holdfast }) => {
        const callers = new AsyncLocalStorage<string>();
        const look = (): string => callers.getStore() ?? "nothing";
        const acting = activity("acting", async () => look());
        const looking = workflow("looking", async (ctx) => {
          const seen = [look()];
          seen.push(await ctx.step("look", () => look()));
          seen.push(look(), await ctx.call(acting));
          await ctx.sleep(1);
          return [...seen, look()];
        });
        await callers.run("worker", () =>
          holdfast.work([looking, acting], { hotRunsMax, concurrency: 101 }),
        );
        const run = await callers.run("caller", () => holdfast.start(looking));
        expect(new Set(await run.result())).toEqual(new Set(["nothing"]));
      }),
    );

  test(
    "[RT15] a step that ended while the run was paused and resumed is recorded behind that, and not run again",
    onRuntime(backend, async ({ database, another }) => {
      const meddling = new Meddling(database);
      const holdfast = await another({}, meddling.database);
      const tally = new Tally();
      const charging = workflow("charging", async (ctx) =>
        ctx.step("charge", () => tally.count("charge")),
      );
      await holdfast.work([charging]);
      const held = meddling.holdNext("appendEvents", "call", appends("stepFinished"));
      const run = await holdfast.start(charging);
      await held.reached;
      await run.pause();
      await run.resume();
      held.release();
      expect(await run.result()).toBe(1);
      expect(tally.of("charge")).toBe(1);
    }),
  );

  test(
    "[RT15] a step that ended while the run was being cancelled is recorded, and its value delivered",
    onRuntime(backend, async ({ database, another }) => {
      const meddling = new Meddling(database);
      const holdfast = await another({}, meddling.database);
      const tally = new Tally();
      const charging = workflow("charging", async (ctx) => {
        const charged = await ctx.step("charge", () => tally.count("charge"));
        try {
          await ctx.sleep("1 day");
        } finally {
          await ctx.step("refund", () => tally.count(`refund ${charged}`));
        }
      });
      await holdfast.work([charging]);
      const held = meddling.holdNext("appendEvents", "call", appends("stepFinished"));
      const run = await holdfast.start(charging);
      await held.reached;
      await run.cancel();
      held.release();
      expect(await rejection(run.result())).toMatchObject({
        kind: "cancelled",
      });
      expect(tally.all).toEqual({ charge: 1, "refund 1": 1 });
    }),
  );
}
