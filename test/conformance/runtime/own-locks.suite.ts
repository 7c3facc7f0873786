import { describe, expect, test } from "vitest";
import { activity, signal, workflow } from "../../../src/runtime/definition/definitions.ts";
import type { WorkflowContext } from "../../../src/runtime/definition/workflow-context.ts";
import { HoldfastError } from "../../../src/model/errors.ts";
import type { Holdfast } from "../../../src/runtime/client/holdfast.ts";
import { manualClock, type ManualClock } from "../../../src/model/time/clock.ts";

import { sql, type Statement } from "../../../src/sql/statement.ts";
import { T0 } from "../execution/fixture.ts";
import { pastChecks } from "../past-checks.ts";

import type { Backend } from "../backend.ts";
import { onRuntime } from "./fixture.ts";
import { appends, Meddling } from "./meddling.ts";
import { gate, kindsOf, Tally, until, warningsIn } from "./waiting.ts";

const leaseMs = 3_000;
const go = signal<number>("go");

/** What a worker does about its own locks: nothing of this takes another worker. */
export function runtimeOwnLocksSuite(backend: Backend): void {
  describe("a worker keeps its locks", () => {
    renewalTests(backend);
  });
  describe("a run that continues itself under its worker's lock", () => {
    continuationTests(backend);
  });
  describe("an activity whose lock has ended", () => {
    lockedAgainTests(backend);
  });
  describe("a run that cannot be read", () => {
    damageTests(backend);
  });
  describe("a worker that closes or cannot begin", () => {
    closingTests(backend);
  });
}

function renewalTests(backend: Backend): void {
  test(
    "[RT9] of a run that goes on late in its hot lease, before anything is begun",
    onRuntime(backend, async ({ database, another }) => {
      const clock = manualClock(T0);
      const meddling = new Meddling(database);
      const holdfast = await another({ clock }, meddling.database);
      const tally = new Tally();
      const done = gate();
      const late = workflow("late", async (ctx) => {
        await ctx.receive(go);
        return ctx.step("long", async () => {
          tally.count("begun");
          await done.opened;
          return "done";
        });
      });
      await holdfast.work([late], { lease: leaseMs });
      clock.advance(leaseMs / 3 - 100);
      const run = await holdfast.start(late);
      await until(async () => (await run.status()) === "blocked");
      const leaseEnds = clock.now() + leaseMs;
      // Just behind a renewal, and the next comes after the lease has ended.
      for (let turn = 1; turn <= 3; turn += 1) {
        clock.set(T0 + (turn * leaseMs) / 3);
        await settled();
      }
      clock.set(leaseEnds - 100);
      const renewed: number[] = [];
      meddling.on("renewLeases", async (call) => {
        renewed.push(tally.of("begun"));
        return call();
      });
      await run.signal(go, 1);
      await until(() => tally.of("begun") > 0);
      expect(renewed).toEqual([0]);
      clock.set(leaseEnds);
      await settled();
      done.open();
      expect(await run.result()).toBe("done");
      expect(tally.of("begun")).toBe(1);
      expect(await kindsOf(holdfast, run.id)).toEqual([
        "created",
        "locked",
        "receiveRequested",
        "waiting",
        "stepFinished",
        "finished",
      ]);
    }),
  );

  test(
    "[RT9] but not of a run that is about to rest: what comes when its lease is over finds it due",
    onRuntime(backend, async ({ database, another }) => {
      const clock = manualClock(T0);
      const meddling = new Meddling(database);
      const holdfast = await another({ clock }, meddling.database);
      const patient = workflow("patient", async (ctx) => ctx.receive(go));
      await holdfast.work([patient], { lease: leaseMs });
      const resting = meddling.holdNext("appendEvents", "answer", appends("waiting"));
      const run = await holdfast.start(patient);
      await resting.reached;
      // A renewal would move the end of the lease in the log, and nobody here would know.
      clock.advance(leaseMs / 3);
      await settled();
      resting.release();
      await settled();
      clock.set(T0 + leaseMs);
      await run.signal(go, 1);
      expect(await run.result()).toBe(1);
    }),
  );

  test(
    "[RT9] of more runs than one statement renews",
    onRuntime(backend, async ({ database, another, said }) => {
      const clock = manualClock(T0);
      const meddling = new Meddling(database);
      const holdfast = await another({ clock }, meddling.database);
      const runs = 1_010;
      const done = gate();
      const tally = new Tally();
      const long = activity("long", async () => {
        tally.count("begun");
        await done.opened;
      });
      const renewed: number[] = [];
      meddling.on("renewLeases", async (call, input: { readonly runs: readonly unknown[] }) => {
        const answer = await call();
        renewed.push(input.runs.length);
        return answer;
      });
      await holdfast.work([long], { lease: leaseMs, concurrency: runs });
      await holdfast.startMany(
        long,
        Array.from({ length: runs }, () => ({ input: undefined })),
      );
      await until(() => tally.of("begun") === runs);
      clock.advance(leaseMs / 3);
      const hasFailed = () => said.some(({ level }) => level === "error");
      await until(() => renewed.length === 2 || hasFailed());
      expect(renewed).toEqual([1_000, 10]);
      done.open();
    }),
  );

  test(
    "[RT8] and what a renewal says of an attempt that has ended does not stop the next",
    onRuntime(backend, async ({ database, another }) => {
      const clock = manualClock(T0);
      const meddling = new Meddling(database);
      const holdfast = await another({ clock }, meddling.database);
      const begun = gate();
      const failing = gate();
      const done = gate();
      const again = gate();
      const charge = activity(
        "charge",
        { retry: { maxRetries: 3, backoff: 100 } },
        async ({ attempt, abortSignal }) => {
          if (attempt === 1) {
            begun.open();
            await failing.opened;
            throw new Error("again");
          }
          again.open();
          await done.opened;
          return abortSignal.aborted ? "aborted" : `by attempt ${attempt}`;
        },
      );
      await holdfast.work([charge], { lease: leaseMs });
      const run = await holdfast.start(charge, undefined, { id: "a" });
      const called = gate();
      const answered = gate();
      const answer = gate();
      meddling.on("renewLeases", async (call) => {
        called.open();
        // It is made while the run waits for its next attempt, which has nobody's lock.
        await until(async () => (await kindsOf(holdfast, "a")).includes("attemptFailed"));
        const found = await call();
        answered.open();
        await answer.opened;
        return found;
      });
      await begun.opened;
      clock.advance(leaseMs / 3);
      await called.opened;
      failing.open();
      await answered.opened;
      clock.advance(200);
      await again.opened;
      answer.open();
      await settled();
      done.open();
      expect(await run.result()).toBe("by attempt 2");
    }),
  );
}

function continuationTests(backend: Backend): void {
  const twice = workflow("twice", async (ctx, pass: number) => {
    if (pass === 0) return ctx.continueWith(1);
    await ctx.receive(go);
    return "received";
  });

  test(
    "[RT5] is cancelled at once when that is asked for while its next pass is being read",
    onRuntime(backend, async ({ database, another }) => {
      const meddling = new Meddling(database);
      const holdfast = await another({}, meddling.database);
      await holdfast.work([twice]);
      const held = meddling.holdNext("loadExecution", "call");
      const run = await holdfast.start(twice, 0);
      await held.reached;
      await run.cancel();
      held.release();
      await expect(run.result()).rejects.toMatchObject({ kind: "cancelled" });
    }),
  );

  test(
    "[RT16] goes on when its next pass could not be read at first",
    onRuntime(backend, async ({ database, another }) => {
      const meddling = new Meddling(database);
      const holdfast = await another({}, meddling.database);
      await holdfast.work([twice]);
      meddling.loseNext("loadExecution", 2, false);
      const run = await holdfast.start(twice, 0);
      await run.signal(go, 1);
      expect(await run.result()).toBe("received");
      const kinds = await kindsOf(holdfast, run.id);
      // One for each pass.
      expect(kinds.filter((kind) => kind === "locked")).toHaveLength(2);
    }),
  );

  test(
    "[RT16] is released when its next pass cannot be read, and goes on with its next lock",
    onRuntime(backend, async ({ database, another }) => {
      const meddling = new Meddling(database);
      const holdfast = await another({}, meddling.database);
      await holdfast.work([twice]);
      meddling.on("loadExecution", () =>
        Promise.reject(new HoldfastError("CORRUPT_ROW", "Not readable.")),
      );
      const run = await holdfast.start(twice, 0);
      await run.signal(go, 1);
      expect(await run.result()).toBe("received");
      expect(await kindsOf(holdfast, run.id)).toContain("unlocked");
    }),
  );
}

function lockedAgainTests(backend: Backend): void {
  const retry = { maxRetries: 3, backoff: 100 };

  /** Lets the lock of an activity end, which its worker does not notice, and has it locked again. */
  async function lockAgain(
    holdfast: Holdfast,
    clock: ManualClock,
    begun: () => number,
  ): Promise<void> {
    clock.advance(leaseMs);
    await until(async () => (await kindsOf(holdfast, "a")).includes("attemptTimedOut"));
    clock.advance(200);
    await until(() => begun() === 2);
  }

  test(
    "[RT8] and that the same worker locks again is told to stop, and only the second attempt counts",
    onRuntime(backend, async ({ database, another }) => {
      const clock = manualClock(T0);
      const meddling = new Meddling(database);
      const holdfast = await another({ clock }, meddling.database);
      const tally = new Tally();
      const ends = [gate(), gate()];
      const aborts: unknown[] = [];
      const charge = activity("charge", { retry }, async (ctx) => {
        const attempt = tally.count("begun");
        ctx.abortSignal.addEventListener("abort", () =>
          aborts.push([attempt, (ctx.abortSignal.reason as HoldfastError).code]),
        );
        await ends[attempt - 1]?.opened;
        return attempt;
      });
      const unrenewed = meddling.holdNext("renewLeases", "call");
      await holdfast.work([charge], { lease: leaseMs });
      const run = await holdfast.start(charge, undefined, { id: "a" });
      await until(() => tally.of("begun") === 1);
      await lockAgain(holdfast, clock, () => tally.of("begun"));
      expect(aborts).toEqual([[1, "LOCK_LOST"]]);
      ends[0]?.open();
      await settled();
      // The second has the lock still.
      unrenewed.release();
      clock.advance(leaseMs / 3);
      await settled();
      ends[1]?.open();
      expect(await run.result()).toBe(2);
      expect(aborts).toHaveLength(1);
    }),
  );

  test(
    "[RT8] before its value was recorded records nothing under the next lock",
    onRuntime(backend, async ({ database, another }) => {
      const clock = manualClock(T0);
      const meddling = new Meddling(database);
      const holdfast = await another({ clock }, meddling.database);
      const tally = new Tally();
      const end = gate();
      const charge = activity("charge", { retry }, async () => {
        const attempt = tally.count("begun");
        if (attempt === 2) await end.opened;
        return attempt;
      });
      const unrenewed = meddling.holdNext("renewLeases", "call");
      const unrecorded = meddling.holdNext("appendEvents", "call");
      await holdfast.work([charge], { lease: leaseMs });
      const run = await holdfast.start(charge, undefined, { id: "a" });
      await unrecorded.reached;
      await lockAgain(holdfast, clock, () => tally.of("begun"));
      unrenewed.release();
      unrecorded.release();
      await settled();
      end.open();
      expect(await run.result()).toBe(2);
    }),
  );
}

function damageTests(backend: Backend): void {
  test(
    "[RT16] at first is read again at once, not when its lease is over",
    onRuntime(backend, async ({ database, another }) => {
      const meddling = new Meddling(database);
      const holdfast = await another({}, meddling.database);
      const long = workflow("long", async (ctx) => {
        for (let n = 0; n < 205; n += 1) await ctx.step("one", () => n);
        await ctx.sleep(1);
        return "read";
      });
      meddling.loseNext("listEvents", 1, false);
      await holdfast.work([long], { hotRunsMax: 0, lease: "10 minutes" });
      const run = await holdfast.start(long);
      expect(await run.result()).toBe("read");
    }),
  );

  test(
    "[RT16] is told of, and does nothing again, while an event behind the first page of its log is missing",
    onRuntime(backend, async ({ database, another, said }) => {
      let steps = 0;
      const long = workflow("long", async (ctx) => {
        for (let n = 0; n < 205; n += 1) await ctx.step("one", () => (steps += 1));
        await ctx.receive(go);
        await ctx.step("two", () => (steps += 1));
      });
      const first = await another({});
      await first.work([long]);
      await first.start(long, undefined, { id: "a" });
      await until(async () => (await first.get(long, "a").status()) === "blocked");
      await first.close();
      const moved = (from: number, to: number): Promise<void> =>
        database.write("edit", () =>
          pastChecks(
            database,
            sql`UPDATE holdfast_execution_event SET version = ${to} WHERE version = ${from}`,
          ),
        );
      await moved(204, 9_999);
      const second = await another({});
      await second.work([long]);
      await second.get(long, "a").signal(go, 1);
      await until(() => said.some(({ message }) => message.includes("(a#204) is missing")));
      expect(await second.get(long, "a").status()).toBe("running");
      expect(steps).toBe(205);
    }),
  );

  test(
    "[RT16] is told of once, does not keep its worker busy, and runs once it is repaired",
    onRuntime(backend, async ({ database, another, said }) => {
      const clock = manualClock(T0);
      const meddling = new Meddling(database);
      const holdfast = await another({ clock }, meddling.database);
      const edit = (statement: Statement): Promise<void> =>
        database.write("edit", () => pastChecks(database, statement));
      const quick = workflow("quick", async () => "done");
      const run = await holdfast.start(quick, undefined, { id: "a" });
      await edit(sql`UPDATE holdfast_execution_event SET kind = 'paused'`);
      let looks = 0;
      meddling.on("lockPending", async (call) => {
        const answer = await call();
        looks += 1;
        return answer;
      });
      await holdfast.work([quick]);
      for (let turn = 1; turn <= 3; turn += 1) {
        await until(() => looks >= turn);
        await settled();
        // Nobody looks again before some time has passed.
        expect(looks).toBe(turn);
        clock.advance(1_000);
      }
      await edit(sql`UPDATE holdfast_execution_event SET kind = 'created'`);
      await until(() => looks >= 4);
      await settled();
      clock.advance(1_000);
      expect(await run.result()).toBe("done");
      expect(said.filter(({ message }) => message.includes("is unreadable"))).toHaveLength(1);
    }),
  );
}

function closingTests(backend: Backend): void {
  test(
    "[RT16] gives up what cannot be recorded when its time is over",
    onRuntime(backend, async ({ database, another, said }) => {
      const clock = manualClock(T0);
      const meddling = new Meddling(database);
      const holdfast = await another({ clock }, meddling.database);
      const charge = activity("charge", async () => 1);
      let tried = 0;
      meddling.on("appendEvents", () => {
        tried += 1;
        return Promise.reject(new HoldfastError("DATABASE_UNREACHABLE", "Nobody answers."));
      });
      await holdfast.work([charge]);
      await holdfast.start(charge, undefined, { id: "a" });
      await until(() => tried > 0);
      const closing = holdfast.close({ timeout: 1_000 });
      clock.advance(1_000);
      await closing;
      expect(said.map(({ message }) => message)).toContainEqual(
        expect.stringMatching(/attempt of run a .* could not be .* recorded/),
      );
    }),
  );

  test.each([
    ["a step", (ctx: WorkflowContext) => ctx.step("first", () => 1)],
    ["that it waits", (ctx: WorkflowContext) => ctx.receive(go)],
  ])(
    "gives back a run of which %s was being recorded when its time was over, so that another goes on at once",
    (recorded, first) =>
      onRuntime(backend, async ({ database, another }) => {
        const clock = manualClock(T0);
        const meddling = new Meddling(database);
        const leaving = await another({ clock }, meddling.database);
        const fn = workflow("fn", async (ctx) => {
          await first(ctx);
          return ctx.step("last", () => "done");
        });
        const recording = meddling.holdNext("appendEvents", "answer");
        await leaving.work([fn]);
        const run = await leaving.start(fn, undefined, { id: "r" });
        await recording.reached;
        const closing = leaving.close({ timeout: 0 });
        await settled();
        recording.release();
        await closing;
        expect(run.id).toBe("r");
        const other = await another({ clock });
        // A run that waits for nothing may have ended with the worker that left.
        if (recorded === "that it waits") await other.get(fn, "r").signal(go, 1);
        await other.work([fn]);
        expect(await other.get(fn, "r").result()).toBe("done");
      })(),
  );

  test(
    "is not counted among the workers, and work may be asked for again",
    onRuntime(backend, async ({ database, another }) => {
      const meddling = new Meddling(database);
      const holdfast = await another({}, meddling.database);
      const first = activity("charge", async () => "first");
      const second = activity("charge", async () => "second");
      meddling.loseNext("nextHolder", 1, false);
      await expect(holdfast.work([first])).rejects.toMatchObject({
        code: "OUTCOME_UNKNOWN",
      });
      // Another function of the name is no conflict.
      await holdfast.work([second]);
      const run = await holdfast.start(second);
      expect(await run.result()).toBe("second");
    }),
  );

  test(
    "takes up no work when it has been closed, or is closed while it begins",
    onRuntime(backend, async ({ database, another }) => {
      const meddling = new Meddling(database);
      const holdfast = await another({}, meddling.database);
      const charge = activity("charge", async () => "charged");
      const beginning = meddling.holdNext("nextHolder", "call");
      const working = holdfast.work([charge]);
      await beginning.reached;
      const closing = holdfast.close();
      const late = holdfast.work([charge]);
      await expect(late).rejects.toMatchObject({ code: "DATABASE_CLOSED" });
      await closing;
      beginning.release();
      await expect(working).rejects.toMatchObject({ code: "DATABASE_CLOSED" });
    }),
  );

  test(
    "does not wait for ever for a call that the database never answers, and not for the database then",
    onRuntime(backend, async ({ database, another, said, closings }) => {
      const meddling = new Meddling(database);
      const clock = manualClock(T0);
      const holdfast = await another({ clock }, meddling.database);
      const tally = new Tally();
      const charge = activity("charge", async () => tally.count("charged"));
      await holdfast.start(charge);
      const locking = meddling.holdNext("lockPending", "answer");
      await holdfast.work([charge]);
      await locking.reached;
      const closing = holdfast.close({ timeout: "1s" });
      clock.advance(6_000);
      await closing;
      expect(said.map(({ message }) => message)).toContainEqual(
        expect.stringMatching(/not answered for 5 s .* not released/),
      );
      expect(closings).toEqual([0]);
      locking.release();
      await settled();
      expect(tally.all).toEqual({});
    }),
  );

  test(
    "waits for the last calls as long as it was told, and for a moment at least",
    onRuntime(backend, async ({ another, closings }) => {
      const clock = manualClock(T0);
      for (const timeout of ["3s", 0] as const) {
        const holdfast = await another({ clock });
        await holdfast.work([workflow("idle", async () => 1)]);
        await holdfast.close({ timeout });
      }
      expect(closings).toEqual([3_000, 1_000]);
    }),
  );

  test(
    "stops to look for work when the database was closed under it",
    onRuntime(backend, async ({ place, another, said }) => {
      const charge = activity("charge", async () => "charged");
      const database = await place.open();
      const keeping = new Set<object>();
      const held = new Proxy(database, {
        get(target, name) {
          if (name === "keepAlive")
            return () => {
              const hold = {};
              keeping.add(hold);
              return () => keeping.delete(hold);
            };
          const found: unknown = Reflect.get(target, name, target);
          return typeof found === "function" ? (found.bind(target) as unknown) : found;
        },
      });
      const holdfast = await another({}, held);
      await holdfast.work([charge]);
      expect(keeping.size).toBeGreaterThan(0);
      await database.close();
      await until(() => keeping.size === 0);
      expect(warningsIn(said)).toEqual([]);
    }),
  );

  test(
    "refuses options of closing when they are given",
    onRuntime(backend, async ({ holdfast }) => {
      const before = process.listenerCount("SIGTERM");
      for (const [options, code] of [
        [{ timeout: "soon" }, "DURATION_INVALID"],
        [{ within: 1 }, "OPTION_INVALID"],
        [{ signals: "SIGTERM" }, "OPTION_INVALID"],
        [{ signals: [{}] }, "OPTION_INVALID"],
        [{ signals: ["SIGTERM", "SIGNONE"] }, "OPTION_INVALID"],
        [{ signals: ["SIGTERM", "SIGKILL"] }, "OPTION_INVALID"],
      ] as const)
        expect(() => holdfast.closeOnSignals(options as never)).toThrow(
          expect.objectContaining({ code }),
        );
      expect(process.listenerCount("SIGTERM")).toBe(before);
    }),
  );
}

/** A few turns of the event loop: whatever was to happen by itself has begun. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}
