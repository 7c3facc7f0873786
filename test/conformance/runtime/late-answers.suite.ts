import { describe, expect, test } from "vitest";
import { HoldfastError } from "../../../src/model/errors.ts";
import { manualClock, type ManualClock } from "../../../src/model/time/clock.ts";
import type { Holdfast } from "../../../src/runtime/client/holdfast.ts";
import { activity, signal, workflow } from "../../../src/runtime/definition/definitions.ts";
import { run as execute, type Tx } from "../../../src/sql/operation.ts";
import { sql } from "../../../src/sql/statement.ts";
import { overlaid } from "../../../src/testing/overlaid.ts";
import type { Database } from "../../../src/sql/database.ts";
import { isToldByResult } from "../../../src/runtime/runtime-event.ts";
import { createNoteTable } from "../notes.ts";
import type { Backend } from "../backend.ts";
import { T0 } from "../execution/fixture.ts";
import { onRuntime } from "./fixture.ts";
import { answerLost, appends, Meddling, type Held } from "./meddling.ts";
import { gate, kindsOf, Tally, until } from "./waiting.ts";

const leaseMs = 3_000;
/** So long that the clock does not pass it while it is moved until somebody is done. */
const forLong = { lease: "90 days" } as const;
const go = signal("go");

/** What a worker does when the database answers late, or loses an answer. */
export function runtimeLateAnswersSuite(backend: Backend): void {
  describe("a worker that is told late, past its lease", () => {
    lateTests(backend);
  });
  describe("a worker that is not told what it has locked", () => {
    untoldTests(backend);
  });
  describe("what comes between a run and its record", () => {
    betweenTests(backend);
  });
}

/** A worker that was stopped: it renews and locks nothing until it goes on. */
function stopped(meddling: Meddling): { readonly goOn: () => void } {
  const again = gate();
  for (const operation of ["renewLeases", "lockPending"])
    meddling.on(operation, (call) => again.opened.then(call));
  return { goOn: () => again.open() };
}

/** Moves time, as long as it takes, until another worker has done a run: one whose own lease is long. */
async function doneBy(other: Holdfast, id: string, clock: ManualClock): Promise<void> {
  await until(async () => {
    clock.advance(100);
    return (await other.executions.get(id)).status === "completed";
  });
}

/** Holds back the answer to the next lock that found something. */
function holdNextLocked(meddling: Meddling): Held {
  const reached = gate();
  const released = gate();
  meddling.on("lockPending", async (lock) => {
    const answer = (await lock()) as { readonly locked: readonly unknown[] };
    if (answer.locked.length > 0) {
      reached.open();
      await released.opened;
    }
    return answer;
  });
  return { reached: reached.opened, release: () => released.open() };
}

/** A few turns of the event loop: whatever was to happen by itself has begun. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

function lateTests(backend: Backend): void {
  test(
    "[RT8] of a step's record begins no step that another has recorded",
    onRuntime(backend, async ({ database, another }) => {
      const clock = manualClock(T0);
      const meddling = new Meddling(database);
      const late = await another({ clock }, meddling.database);
      const other = await another({ clock });
      const tally = new Tally();
      const steps = workflow("steps", async (ctx) => {
        await ctx.step("a", () => tally.count("a"));
        return ctx.step("b", () => tally.count("b"));
      });
      await late.work([steps], { lease: leaseMs });
      const held = meddling.holdNext("appendEvents", "answer", appends("stepFinished"));
      await late.start(steps, undefined, { id: "r" });
      await held.reached;
      const { goOn } = stopped(meddling);
      await other.work([steps], forLong);
      clock.advance(leaseMs + 1);
      await doneBy(other, "r", clock);
      expect(tally.all).toEqual({ a: 1, b: 1 });
      held.release();
      goOn();
      await settled();
      expect(tally.all).toEqual({ a: 1, b: 1 });
    }),
  );

  test(
    "[RT8] goes on under its lock when nobody has taken it meanwhile",
    onRuntime(backend, async ({ database, another }) => {
      const clock = manualClock(T0);
      const meddling = new Meddling(database);
      const late = await another({ clock }, meddling.database);
      const tally = new Tally();
      const steps = workflow("steps", async (ctx) => {
        await ctx.step("a", () => tally.count("a"));
        return ctx.step("b", () => tally.count("b"));
      });
      // Until then nobody notices that its lease is over.
      const done = gate();
      meddling.on("expireLock", (expire) => done.opened.then(expire));
      await late.work([steps], { lease: leaseMs });
      const held = meddling.holdNext("appendEvents", "answer", appends("stepFinished"));
      const begun = await late.start(steps, undefined, { id: "r" });
      await held.reached;
      const { goOn } = stopped(meddling);
      clock.advance(leaseMs + 1);
      held.release();
      await settled();
      expect(tally.all).toEqual({ a: 1 });
      goOn();
      expect(await begun.result()).toBe(1);
      expect(tally.all).toEqual({ a: 1, b: 1 });
      done.open();
    }),
  );

  /** A run with so long a history that its lock brings only the first pages, and which waits for `go`. */
  async function longRun(
    another: (options: { readonly clock: ManualClock }) => Promise<Holdfast>,
    clock: ManualClock,
    make: (who: string) => ReturnType<typeof longWorkflow>,
  ): Promise<void> {
    const first = await another({ clock });
    await first.work([make("first")], { lease: leaseMs });
    const begun = await first.start(make("first"), undefined, { id: "r" });
    await until(async () => (await begun.status()) === "blocked");
    await first.close({ timeout: "2s" });
  }

  function longWorkflow(tally: Tally, who: string) {
    return workflow("long", async (ctx) => {
      for (let step = 0; step < 300; step += 1) await ctx.step("short", () => step);
      await ctx.receive(go);
      return ctx.step("last", () => tally.count(`last by ${who}`));
    });
  }

  test(
    "[RT8] of a history begins nothing that another has recorded",
    onRuntime(backend, async ({ database, another }) => {
      const clock = manualClock(T0);
      const tally = new Tally();
      const make = (who: string) => longWorkflow(tally, who);
      await longRun(another, clock, make);
      const meddling = new Meddling(database);
      const late = await another({ clock }, meddling.database);
      const other = await another({ clock });
      const reading = meddling.holdNext("listEvents", "answer");
      await late.work([make("late")], { lease: leaseMs });
      await other.get(make("other"), "r").signal(go, true);
      await reading.reached;
      const { goOn } = stopped(meddling);
      await other.work([make("other")], forLong);
      clock.advance(leaseMs + 1);
      await doneBy(other, "r", clock);
      reading.release();
      goOn();
      await settled();
      expect(tally.all).toEqual({ "last by other": 1 });
    }),
  );

  test(
    "[RT9] of a history keeps its lock while it reads",
    onRuntime(backend, async ({ database, another }) => {
      const clock = manualClock(T0);
      const tally = new Tally();
      const make = (who: string) => longWorkflow(tally, who);
      await longRun(another, clock, make);
      const meddling = new Meddling(database);
      const slow = await another({ clock }, meddling.database);
      const other = await another({ clock });
      let renewals = 0;
      meddling.on("renewLeases", async (renew) => {
        const answer = await renew();
        renewals += 1;
        return answer;
      });
      const reading = meddling.holdNext("listEvents", "answer");
      await slow.work([make("slow")], { lease: leaseMs });
      await other.get(make("other"), "r").signal(go, true);
      await reading.reached;
      await other.work([make("other")], { lease: leaseMs });
      for (let third = 1; third <= 6; third += 1) {
        clock.advance(leaseMs / 3);
        await until(() => renewals >= third);
        // The next one is planned once this one is answered.
        await settled();
      }
      reading.release();
      expect(await other.get(make("other"), "r").result()).toBe(1);
      expect(tally.all).toEqual({ "last by slow": 1 });
    }),
  );

  test(
    "[RT8] of its renewal does not run what it has not begun to run",
    onRuntime(backend, async ({ database, another }) => {
      const clock = manualClock(T0);
      const tally = new Tally();
      const make = (who: string) => longWorkflow(tally, who);
      await longRun(another, clock, make);
      const meddling = new Meddling(database);
      const late = await another({ clock }, meddling.database);
      const other = await another({ clock });
      // Until then nobody notices that its lease is over.
      const done = gate();
      meddling.on("expireLock", (expire) => done.opened.then(expire));
      const reading = meddling.holdNext("listEvents", "answer");
      await late.work([make("late")], { lease: leaseMs });
      const handle = other.get(make("other"), "r");
      await handle.signal(go, true);
      await reading.reached;
      const kept = meddling.holdNext("renewLeases", "call");
      clock.advance(leaseMs + 1);
      await kept.reached;
      const renewing = meddling.holdNext("renewLeases", "answer");
      reading.release();
      await renewing.reached;
      // Something comes that it would be woken for, and its lease is renewed otherwise.
      await handle.signal(go, true);
      kept.release();
      await settled();
      renewing.release();
      expect(await handle.result()).toBe(1);
      expect(tally.all).toEqual({ "last by late": 1 });
      expect(await kindsOf(other, "r")).not.toContain("parked");
      done.open();
    }),
  );

  test(
    "[E58] of what an attempt was told before makes no attempt that is another's",
    onRuntime(backend, async ({ database, another }) => {
      const clock = manualClock(T0);
      const meddling = new Meddling(database);
      const late = await another({ clock }, meddling.database);
      const other = await another({ clock });
      const tally = new Tally();
      const make = (who: string) =>
        activity("charge", { retry: { backoff: "1s" } }, async (ctx) => {
          tally.count(who);
          if (ctx.attempt === 1) throw new Error("not yet");
          return "charged";
        });
      await late.work([make("late")], { lease: leaseMs });
      await late.start(make("late"), undefined, { id: "r" });
      await until(async () => {
        const kinds = await kindsOf(other, "r");
        return kinds.includes("attemptFailed");
      });
      const reading = meddling.holdNext("readExecution", "answer");
      clock.advance(2_000);
      await reading.reached;
      const { goOn } = stopped(meddling);
      await other.work([make("other")], forLong);
      clock.advance(leaseMs + 1);
      await doneBy(other, "r", clock);
      reading.release();
      goOn();
      await settled();
      expect(tally.all).toEqual({ late: 1, other: 1 });
    }),
  );
}

function untoldTests(backend: Backend): void {
  test(
    "gives it back at once: no attempt is lost, and nothing waits for a lease",
    onRuntime(backend, async ({ database, another }) => {
      const meddling = new Meddling(database);
      const holdfast = await another({}, meddling.database);
      const tally = new Tally();
      const charge = activity("charge", { retry: { maxRetries: 0 } }, async () =>
        tally.count("charged"),
      );
      const run = await holdfast.start(charge, undefined, { id: "r" });
      meddling.loseNext("lockPending", 1);
      // Who waited for the end of the lease would be too late.
      await holdfast.work([charge], { lease: "10 minutes" });
      expect(await run.result()).toBe(1);
      expect(await kindsOf(holdfast, "r")).toEqual([
        "created",
        "locked",
        "unlocked",
        "locked",
        "finished",
      ]);
    }),
  );

  test(
    "also when it was a start",
    onRuntime(backend, async ({ database, another }) => {
      const meddling = new Meddling(database);
      const holdfast = await another({}, meddling.database);
      const steps = workflow("steps", (ctx) => ctx.step("a", () => "done"));
      await holdfast.work([steps], { lease: "1 minute" });
      let lost = 0;
      meddling.on("createAndLock", async (create) => {
        await create();
        lost += 1;
        throw answerLost();
      });
      // One that comes while the worker looks for work is created without being locked.
      for (let number = 0; lost === 0 || number < 5; number += 1) {
        await settled();
        const id = `r${number}`;
        await holdfast
          .start(steps, undefined, { id })
          .catch((error: unknown) => expect(error).toMatchObject({ code: "OUTCOME_UNKNOWN" }));
        expect(await holdfast.get(steps, id).result()).toBe("done");
        expect(await kindsOf(holdfast, id)).not.toContain("attemptTimedOut");
      }
    }),
  );

  test(
    "takes no run for one that is about to begin anew here",
    onRuntime(backend, async ({ database, another }) => {
      const meddling = new Meddling(database);
      const holdfast = await another({}, meddling.database);
      const passes = workflow("passes", async (ctx, pass: number) => {
        await ctx.step("pass", () => pass);
        return pass === 0 ? ctx.continueWith(1) : "done";
      });
      const other = workflow("other", async () => "done");
      await holdfast.work([passes, other], { lease: "1 minute" });
      const loading = meddling.holdNext("loadExecution", "answer");
      const run = await holdfast.start(passes, 0, { id: "r" });
      await loading.reached;
      let looks = 0;
      meddling.on("readHeld", async (read) => {
        const held = await read();
        looks += 1;
        return held;
      });
      for (let number = 0; looks === 0; number += 1) {
        meddling.loseNext("createAndLock", 1);
        await holdfast.start(other, undefined, { id: `o${number}` }).catch(() => undefined);
        await settled();
      }
      await settled();
      loading.release();
      expect(await run.result()).toBe("done");
      expect(await kindsOf(holdfast, "r")).not.toContain("unlocked");
    }),
  );
}

/** The database, which gives up the first run of a transaction at its statement on a table and, behind `meanwhile`, runs it again. */
function runningAgain(database: Database, table: string, meanwhile: () => Promise<void>): Database {
  let isFirst = true;
  const write = async (...call: unknown[]): Promise<unknown> => {
    const [name, body] = call as [unknown, () => Tx<unknown>];
    const again = (): Promise<unknown> =>
      database.write(...(call as Parameters<Database["write"]>));
    if (name !== "transaction pay" || !isFirst) return again();
    isFirst = false;
    const conflict = new Error("could not serialize");
    await database
      .write("the first run", function* () {
        const inner = body();
        let step = inner.next();
        while (step.done !== true) {
          const { statement } = step.value;
          if (statement?.template.sqlite.includes(table)) throw conflict;
          step = inner.next(yield step.value);
        }
      })
      .catch((error: unknown) => {
        if (error !== conflict) throw error;
      });
    await meanwhile();
    return again();
  };
  return overlaid(database, { write } as Partial<Database>);
}

function betweenTests(backend: Backend): void {
  test.each(["paused and resumed", "cancelled"] as const)(
    "a run that is %s while the database runs its transaction again hears nothing of that",
    (what) =>
      onRuntime(backend, async ({ holdfast, database, another }) => {
        await database.write("table", createNoteTable);
        const pay = workflow("pay", async (ctx) => {
          await ctx.transaction("pay", function* () {
            yield* execute(sql`INSERT INTO app_note (id, half, body) VALUES ('n', 1, 'x')`);
          });
          if (what === "cancelled") await ctx.sleep("1 hour");
          return "paid";
        });
        const handle = holdfast.get(pay, "r");
        const between = await another(
          {},
          runningAgain(database, "app_note", async () => {
            if (what === "cancelled") return handle.cancel();
            await handle.pause();
            await handle.resume();
          }),
        );
        await between.work([pay]);
        await between.start(pay, undefined, { id: "r" });
        if (what === "cancelled")
          await expect(handle.result()).rejects.toMatchObject({
            kind: "cancelled",
          });
        else expect(await handle.result()).toBe("paid");
        const kinds = await kindsOf(holdfast, "r");
        const { items } = await holdfast.executions.events("r");
        expect(
          items.filter(
            ({ event }) => event.kind === "transactionFinished" && event.outcome === "failed",
          ),
        ).toEqual([]);
        expect(kinds.filter((kind) => kind === "transactionFinished")).toEqual([
          "transactionFinished",
        ]);
      })(),
  );

  test(
    "[RT5] a run that was locked again before it was known to be given back hears of what came in between",
    onRuntime(backend, async ({ holdfast, database, another }) => {
      const meddling = new Meddling(database);
      const late = await another({}, meddling.database);
      const stop = signal<string>("stop");
      const isOver = gate();
      const racing = workflow("racing", async (ctx) => {
        await ctx.receive(go);
        const long = ctx.step("long", () => isOver.opened.then(() => "ended"));
        return Promise.race([long, ctx.receive(stop)]);
      });
      await late.work([racing], { hotRunsMax: 0 });
      const handle = holdfast.get(racing, "r");
      const givenBack = meddling.holdNext("appendEvents", "answer", appends("unlocked"));
      await late.start(racing, undefined, { id: "r" });
      await givenBack.reached;
      const locked = holdNextLocked(meddling);
      await handle.signal(go, true);
      await locked.reached;
      await handle.signal(stop, "stopped");
      await settled();
      locked.release();
      expect(await handle.result()).toBe("stopped");
      givenBack.release();
      isOver.open();
    }),
  );

  test(
    "many runs that wait for the database at once are no leak to Node",
    onRuntime(backend, async ({ database, another }) => {
      const meddling = new Meddling(database);
      const holdfast = await another({}, meddling.database);
      const steps = workflow("steps", (ctx) => ctx.step("a", () => "done"));
      await holdfast.work([steps]);
      const warnings: string[] = [];
      const note = ({ name }: Error): unknown => warnings.push(name);
      process.on("warning", note);
      let failures = 0;
      meddling.on("appendEvents", (append) => {
        failures += 1;
        if (failures > 20) return append();
        return Promise.reject(new HoldfastError("DATABASE_BUSY", "Somebody else writes."));
      });
      const runs = await Promise.all(Array.from({ length: 20 }, () => holdfast.start(steps)));
      for (const run of runs) expect(await run.result()).toBe("done");
      await settled();
      process.off("warning", note);
      expect(failures).toBeGreaterThan(20);
      expect(warnings).not.toContain("MaxListenersExceededWarning");
    }),
  );

  test(
    "more pauses during one step than a page holds do not have it run again",
    onRuntime(backend, async ({ holdfast }) => {
      const tally = new Tally();
      const done = gate();
      const pack = workflow("pack", (ctx) =>
        ctx.step("pack", async () => {
          tally.count("packed");
          await done.opened;
          return "packed";
        }),
      );
      await holdfast.work([pack], { lease: "1 minute" });
      const handle = await holdfast.start(pack);
      await until(() => tally.of("packed") === 1);
      for (let times = 0; times < 300; times += 1) {
        await handle.pause();
        await handle.resume();
      }
      done.open();
      expect(await handle.result()).toBe("packed");
      expect(tally.all).toEqual({ packed: 1 });
    }),
  );

  test.each(["workflow", "activity"] as const)(
    "a cancellation of a running %s is heard though the first look at it fails",
    (role) =>
      onRuntime(backend, async ({ database, another }) => {
        const meddling = new Meddling(database);
        const holdfast = await another({}, meddling.database);
        const began = gate();
        const untilTold = (told: AbortSignal): Promise<never> => {
          began.open();
          return new Promise((_, reject) => {
            told.addEventListener("abort", () => reject(told.reason as Error));
          });
        };
        const patient =
          role === "activity"
            ? activity("patient", (ctx) => untilTold(ctx.abortSignal))
            : workflow("patient", (ctx) => ctx.step("wait", (step) => untilTold(step.abortSignal)));
        await holdfast.work([patient], { lease: "1 hour" });
        const handle = await holdfast.start(patient);
        await began.opened;
        let failures = 0;
        meddling.on("readExecution", (read) => {
          failures += 1;
          if (failures > 1) return read();
          return Promise.reject(new HoldfastError("DATABASE_BUSY", "Somebody else writes."));
        });
        await handle.cancel();
        await expect(handle.result()).rejects.toMatchObject({
          kind: "cancelled",
        });
        expect(failures).toBeGreaterThan(1);
      })(),
  );

  test(
    "a result that is too large only together with what is written of it fails its activity",
    onRuntime(backend, async ({ another, said }) => {
      const charactersMax = 1_000;
      const holdfast = await another({ valueLimits: { charactersMax } });
      const long = activity("long", async (_, length: number) => "x".repeat(length));
      await holdfast.work([long], { lease: "1 hour" });
      const fits = await holdfast.start(long, 900);
      expect(await fits.result()).toHaveLength(900);
      // As text with its two quotes it has as many characters as may be.
      const full = await holdfast.start(long, charactersMax - 2);
      await expect(full.result()).rejects.toMatchObject({
        kind: "failed",
        cause: { code: "VALUE_TOO_LARGE" },
      });
      const alarms = said.filter((event) => event.level === "error" && !isToldByResult(event));
      expect(alarms).toEqual([]);
    }),
  );
}
