import { describe, expect, test } from "vitest";
import { activity, signal, workflow } from "../../../src/runtime/definition/definitions.ts";
import type { Holdfast } from "../../../src/runtime/client/holdfast.ts";
import type {
  LockPending,
  LockPendingOutcome,
} from "../../../src/stores/execution/lock/lock-pending.ts";
import type { RenewRuns } from "../../../src/stores/execution/lock/renew.ts";
import { manualClock, type ManualClock } from "../../../src/model/time/clock.ts";
import { byAnn, T0 } from "../execution/fixture.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { onRuntime, type RuntimeFixture } from "./fixture.ts";
import { Meddling } from "./meddling.ts";
import { stepDone } from "./recorded-run.ts";
import { gate, kindsOf, Tally, until } from "./waiting.ts";

const atOnce = { maxRetries: null, backoffMs: 0, backoffMaxMs: 0 };

/** Long enough for anything that a worker does by itself on a manual clock. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 30; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

interface Suspicious {
  readonly clock: ManualClock;
  readonly holdfast: Holdfast;
  readonly meddling: Meddling;
  /** Processes die one after the other while each has this run, beside others. */
  readonly dieBeside: (id: string, deaths: number) => Promise<void>;
  /** The same, while they run nothing else. */
  readonly dieAlone: (id: string, deaths: number) => Promise<void>;
}

async function suspicious({ database, another }: RuntimeFixture): Promise<Suspicious> {
  const clock = manualClock(T0);
  const meddling = new Meddling(database);
  const holdfast = await another({ clock }, meddling.database);
  const { executions } = holdfast;
  const die = async (deaths: number, lock: () => Promise<unknown>): Promise<void> => {
    meddling.liveness = "dead";
    for (let death = 0; death < deaths; death += 1) {
      await lock();
      await executions.releaseDead();
    }
    meddling.liveness = undefined;
  };
  return {
    clock,
    holdfast,
    meddling,
    dieBeside: (id, deaths) =>
      die(deaths, async () => {
        const { nextVersion } = await executions.get(id);
        await executions.lock(id, nextVersion, { ...byAnn, retry: atOnce });
      }),
    dieAlone: (id, deaths) =>
      die(deaths, async () => {
        const { function: name } = await executions.get(id);
        const { locked } = await executions.lockPending({
          ...byAnn,
          functions: [{ name, retry: atOnce }],
          limit: 1,
          suspects: "alone",
        });
        expect(locked).toMatchObject([{ id, isAlone: true }]);
      }),
  };
}

/** A run that tells when its step has begun, and ends the step when the test says so. */
function gated(name: string) {
  const began = gate();
  const mayEnd = gate();
  const flow = workflow(name, async (ctx) => {
    await ctx.step("first", async () => {
      began.open();
      await mayEnd.opened;
    });
    await ctx.step("second", () => 2);
    return name;
  });
  return { flow, began, mayEnd };
}

/** Whether a look for work of a function is made while others are. */
function looksBesideFor(name: string): (input: LockPending) => boolean {
  return ({ functions, suspects }) => functions[0]?.name === name && suspects !== "alone";
}

async function isAlone({ executions }: Holdfast, id: string): Promise<boolean | undefined> {
  const { pending } = (await executions.get(id)).state;
  return pending.kind === "locked" ? pending.isAlone : undefined;
}

/** Workers and runs that three processes died of, or beside. */
export function runtimeSuspectsSuite(backend: Backend): void {
  describe("a run that three processes died of, or beside", () => {
    aloneTests(backend);
    besideTests(backend);
  });
  describe("a run that is cancelled after deaths", () => {
    cancelledTests(backend);
  });
  describe("a convicted run whose function wants it cancelled", () => {
    whenPoisonedTests(backend);
  });
}

function aloneTests(backend: Backend): void {
  test(
    "runs alone until it has recorded something, also for other workers of its process",
    onRuntime(backend, async (fixture) => {
      const { holdfast, dieBeside } = await suspicious(fixture);
      const { flow, began, mayEnd } = gated("suspect");
      const tally = new Tally();
      const others = [1, 2].map((n) =>
        workflow(`other-${n}`, async (ctx) => ctx.step("s", () => tally.count("other"))),
      );
      const run = await holdfast.start(flow, undefined, { id: "suspect" });
      await dieBeside("suspect", 3);
      const [one, two] = others;
      if (one === undefined || two === undefined) throw new Error("Two are needed.");
      const waiting = [await holdfast.start(one)];
      await holdfast.work([flow, one]);
      await began.opened;
      await holdfast.work([two]);
      waiting.push(await holdfast.start(two), await holdfast.start(one));
      await settled();
      expect(tally.all).toEqual({});
      expect(await isAlone(holdfast, "suspect")).toBe(true);
      expect(fixture.said).toMatchObject([
        { level: "info", details: { id: "suspect", deaths: 3, aloneDeaths: 0 } },
      ]);
      mayEnd.open();
      expect(await run.result()).toBe("suspect");
      await Promise.all(waiting.map((other) => other.result()));
      expect(tally.all).toEqual({ other: 3 });
    }),
  );

  test(
    "runs alone in its process, also where that opened databases more than once",
    onRuntime(backend, async (fixture) => {
      const { clock, holdfast, dieBeside } = await suspicious(fixture);
      const { flow, began, mayEnd } = gated("suspect");
      const tally = new Tally();
      const other = workflow("other", async (ctx) => ctx.step("s", () => tally.count("other")));
      const run = await holdfast.start(flow, undefined, { id: "suspect" });
      await dieBeside("suspect", 3);
      await holdfast.work([flow]);
      await began.opened;
      const neighbour = await fixture.another({ clock });
      await neighbour.work([other]);
      const beside = await neighbour.start(other);
      await settled();
      expect(tally.all).toEqual({});
      expect(await isAlone(holdfast, "suspect")).toBe(true);
      mayEnd.open();
      expect(await run.result()).toBe("suspect");
      await beside.result();
      expect(tally.all).toEqual({ other: 1 });
    }),
  );

  test(
    "keeps workers of other databases out no longer than its lease when its own database is away",
    onRuntime(backend, async (fixture) => {
      const { clock, holdfast, dieBeside, meddling } = await suspicious(fixture);
      const { flow, began, mayEnd } = gated("suspect");
      const other = activity("other", async () => "other");
      await holdfast.start(flow, undefined, { id: "suspect" });
      await dieBeside("suspect", 3);
      await holdfast.work([flow], { lease: "1 minute" });
      await began.opened;
      const neighbour = await fixture.another({ clock });
      await neighbour.work([other]);
      const beside = await neighbour.start(other);
      const away = meddling.holdNext("renewLeases", "call", ({ beside: is }: RenewRuns) => is);
      clock.advance(30_000);
      await away.reached;
      clock.advance(59_999);
      await settled();
      expect(await beside.status()).toBe("pending");
      clock.advance(1);
      expect(await beside.result()).toBe("other");
      away.release();
      mayEnd.open();
    }),
  );

  test(
    "keeps other work out of its process for no look behind one that failed",
    onRuntime(backend, async (fixture) => {
      const { clock, holdfast, meddling } = await suspicious(fixture);
      const flow = workflow("flow", async () => "flow");
      const other = activity("other", async () => "other");
      meddling.loseNext("lockPending", 1, false);
      const failed = fixture.said.length;
      await holdfast.work([flow]);
      await until(() => fixture.said.length > failed);
      const away = meddling.holdNext("lockPending", "call");
      clock.advance(10);
      await away.reached;
      const neighbour = await fixture.another({ clock });
      await neighbour.work([other]);
      expect(await (await neighbour.start(other)).result()).toBe("other");
      away.release();
    }),
  );

  test(
    "is tried once a look of another worker, which kept it from being tried, has found nothing",
    onRuntime(backend, async (fixture) => {
      const { holdfast, dieBeside, meddling } = await suspicious(fixture);
      const { executions } = holdfast;
      const quick = activity("quick", async () => "quick");
      const { flow, began, mayEnd } = gated("suspect");
      await executions.create({ id: "suspect", function: "suspect" });
      await dieBeside("suspect", 3);
      await executions.pause("suspect");
      for (const served of [quick, flow]) {
        const looked = meddling.firstLook();
        await holdfast.work([served]);
        await looked;
      }
      const second = meddling.holdNext("lockPending", "call", looksBesideFor("quick"));
      await executions.create({ id: "quick", function: "quick", role: "activity" });
      await second.reached;
      expect(await holdfast.get(quick, "quick").result()).toBe("quick");
      const tried = meddling.holdNext("lockPending", "answer", looksBesideFor("suspect"));
      await executions.unpause("suspect");
      await tried.reached;
      tried.release();
      await settled();
      second.release();
      await began.opened;
      expect(await isAlone(holdfast, "suspect")).toBe(true);
      mayEnd.open();
      await holdfast.get(flow, "suspect").result();
    }),
  );

  test(
    "is taken alone as soon as it can be, when another process had its row as an idle worker looked",
    onRuntime(backend, async (fixture) => {
      const { holdfast, dieBeside, meddling } = await suspicious(fixture);
      const { executions } = holdfast;
      const { flow, began, mayEnd } = gated("suspect");
      await executions.create({ id: "suspect", function: "suspect" });
      await dieBeside("suspect", 3);
      await executions.pause("suspect");
      const looked = gate();
      let looks = 0;
      meddling.on("lockPending", async (go) => {
        const outcome = (await go()) as LockPendingOutcome;
        looks += 1;
        if (looks > 1) return outcome;
        looked.open();
        return { ...outcome, hasSuspects: true };
      });
      await holdfast.work([flow]);
      await looked.opened;
      await settled();
      await executions.unpause("suspect");
      await began.opened;
      expect(await isAlone(holdfast, "suspect")).toBe(true);
      mayEnd.open();
      await holdfast.get(flow, "suspect").result();
    }),
  );

  test(
    "is warned about when a process died while it ran alone",
    onRuntime(backend, async (fixture) => {
      const { holdfast, dieBeside, dieAlone } = await suspicious(fixture);
      const flow = workflow("flow", async (ctx) => ctx.step("s", () => 1));
      const run = await holdfast.start(flow, undefined, { id: "flow" });
      await dieBeside("flow", 3);
      await dieAlone("flow", 2);
      await holdfast.work([flow]);
      expect(await run.result()).toBe(1);
      expect(fixture.said).toMatchObject([
        { level: "warn", details: { id: "flow", deaths: 5, aloneDeaths: 2 } },
      ]);
    }),
  );

  test(
    "runs alone until it waits",
    onRuntime(backend, async (fixture) => {
      const { holdfast, dieBeside } = await suspicious(fixture);
      const go = signal("go");
      const asking = workflow("asking", async (ctx) => {
        await ctx.receive(go);
        return "asked";
      });
      const other = workflow("other", async () => "other");
      const run = await holdfast.start(asking, undefined, { id: "asking" });
      await dieBeside("asking", 3);
      await holdfast.work([asking, other]);
      expect(await (await holdfast.start(other)).result()).toBe("other");
      await run.signal(go);
      expect(await run.result()).toBe("asked");
    }),
  );

  test(
    "runs alone until its attempt ends, if it is an activity",
    onRuntime(backend, async (fixture) => {
      const { holdfast, dieBeside } = await suspicious(fixture);
      const brief = activity("brief", async () => "brief");
      const other = workflow("other", async () => "other");
      const run = await holdfast.start(brief, undefined, { id: "brief" });
      await dieBeside("brief", 3);
      await holdfast.work([brief, other]);
      expect(await run.result()).toBe("brief");
      expect(fixture.said).toMatchObject([{ level: "info", details: { id: "brief" } }]);
      expect(await (await holdfast.start(other)).result()).toBe("other");
    }),
  );

  test(
    "runs alone for 30 s of its own behind another one, whose late renewal lets nothing in either",
    onRuntime(backend, async (fixture) => {
      const { clock, holdfast, dieBeside, meddling } = await suspicious(fixture);
      const flows = [gated("first"), gated("second"), gated("third")] as const;
      const [first, second, third] = flows;
      const tally = new Tally();
      const other = workflow("other", async (ctx) => ctx.step("s", () => tally.count("other")));
      for (const [place, id] of ["first", "second", "third"].entries()) {
        await holdfast.executions.create({ id, function: id });
        await dieBeside(id, 5 - place);
      }
      await holdfast.work([...flows.map(({ flow }) => flow), other], { lease: "1 hour" });
      await first.began.opened;
      clock.advance(10_000);
      first.mayEnd.open();
      await second.began.opened;
      clock.advance(29_999);
      await settled();
      expect(await isAlone(holdfast, "second")).toBe(true);
      const renewal = meddling.holdNext("renewLeases", "call", ({ beside }: RenewRuns) => beside);
      clock.advance(1);
      await renewal.reached;
      second.mayEnd.open();
      await third.began.opened;
      const waiting = await holdfast.start(other);
      renewal.release();
      await settled();
      expect(tally.all).toEqual({});
      expect(await isAlone(holdfast, "third")).toBe(true);
      third.mayEnd.open();
      await waiting.result();
      for (const { flow } of flows) await holdfast.get(flow, flow.name).result();
    }),
  );

  test(
    "runs alone for 30 s; then its lock says that it no longer does, before others run",
    onRuntime(backend, async (fixture) => {
      const { clock, holdfast, dieBeside, meddling } = await suspicious(fixture);
      const began = gate();
      const mayEnd = gate();
      const long = activity("long", async () => {
        began.open();
        await mayEnd.opened;
        return "long";
      });
      const seen: (boolean | undefined)[] = [];
      const other = activity("other", async () => {
        seen.push(await isAlone(holdfast, "long"));
      });
      const run = await holdfast.start(long, undefined, { id: "long" });
      await dieBeside("long", 3);
      await holdfast.work([long, other], { lease: "1 hour" });
      await began.opened;
      const beside = await holdfast.start(other);
      clock.advance(29_999);
      await settled();
      expect(seen).toEqual([]);
      const held = meddling.holdNext("renewLeases", "call");
      clock.advance(1);
      await held.reached;
      await settled();
      expect(seen).toEqual([]);
      held.release();
      await beside.result();
      expect(seen).toEqual([false]);
      mayEnd.open();
      expect(await run.result()).toBe("long");
    }),
  );

  test(
    "runs alone no longer once its worker closes, before the worker waits for its body",
    onRuntime(backend, async (fixture) => {
      const { holdfast, dieBeside } = await suspicious(fixture);
      const { flow, began, mayEnd } = gated("suspect");
      await holdfast.start(flow, undefined, { id: "suspect" });
      await dieBeside("suspect", 3);
      await holdfast.work([flow]);
      await began.opened;
      expect(await isAlone(holdfast, "suspect")).toBe(true);
      const closed = holdfast.close({ timeout: "1 hour" });
      const { executions } = fixture.holdfast;
      await until(async () => (await isAlone(fixture.holdfast, "suspect")) === false);
      mayEnd.open();
      await closed;
      expect((await executions.get("suspect")).state.deaths).toBe(0);
    }),
  );
}

function besideTests(backend: Backend): void {
  test(
    "waits for a worker that is busy to run nothing, and for a minute at most; then one runs beside other work",
    onRuntime(backend, async (fixture) => {
      const { clock, holdfast, dieBeside } = await suspicious(fixture);
      const busy = gated("busy");
      const first = gated("first");
      const second = gated("second");
      const { executions } = holdfast;
      for (const id of ["first", "second"]) {
        await executions.create({ id, function: id });
        await dieBeside(id, 3);
        await executions.pause(id);
      }
      await holdfast.work([busy.flow, first.flow, second.flow], { lease: "1 hour" });
      const running = await holdfast.start(busy.flow);
      await busy.began.opened;
      for (const id of ["first", "second"]) await executions.unpause(id);
      clock.advance(59_999);
      await settled();
      const standing = async (id: string) => (await executions.get(id)).status;
      expect(await Promise.all(["first", "second"].map(standing))).toEqual(["pending", "pending"]);
      clock.advance(1);
      await Promise.race([first.began.opened, second.began.opened]);
      await settled();
      expect((await Promise.all(["first", "second"].map(standing))).toSorted()).toEqual([
        "pending",
        "running",
      ]);
      for (const id of ["first", "second"]) expect(await isAlone(holdfast, id)).not.toBe(true);
      first.mayEnd.open();
      second.mayEnd.open();
      await Promise.all([first.began.opened, second.began.opened]);
      busy.mayEnd.open();
      await running.result();
      expect(await holdfast.get(first.flow, "first").result()).toBe("first");
      expect(await holdfast.get(second.flow, "second").result()).toBe("second");
    }),
  );

  test(
    "is not looked for each time that a run ends beside a long one",
    onRuntime(backend, async (fixture) => {
      const { holdfast, dieBeside, meddling } = await suspicious(fixture);
      const { executions } = holdfast;
      const busy = gated("busy");
      const suspect = gated("suspect");
      const quick = workflow("quick", async () => "quick");
      await executions.create({ id: "suspect", function: "suspect" });
      await dieBeside("suspect", 3);
      await executions.pause("suspect");
      await holdfast.work([busy.flow, suspect.flow, quick], { lease: "1 hour" });
      const running = await holdfast.start(busy.flow);
      await busy.began.opened;
      const told = meddling.holdNext("lockPending", "answer");
      await executions.unpause("suspect");
      await told.reached;
      told.release();
      await settled();
      let looks = 0;
      meddling.on("lockPending", () => {
        looks += 1;
        return undefined;
      });
      for (let n = 0; n < 20; n += 1) await (await holdfast.start(quick)).result();
      await settled();
      // A run that could not be begun where it was started is looked for.
      expect(looks).toBeLessThan(10);
      busy.mayEnd.open();
      await running.result();
      await suspect.began.opened;
      expect(await isAlone(holdfast, "suspect")).toBe(true);
      suspect.mayEnd.open();
      await holdfast.get(suspect.flow, "suspect").result();
    }),
  );

  test(
    "names a parked child in the standing of its parent, and warns those that wait for the parent",
    onRuntime(backend, async (fixture) => {
      const { clock, holdfast, dieBeside, dieAlone } = await suspicious(fixture);
      const child = activity("child", async () => 1);
      const parent = workflow("parent", async (ctx) => ctx.call(child));
      await holdfast.work([parent]);
      const run = await holdfast.start(parent, undefined, { id: "parent" });
      await until(async () => (await run.status()) === "blocked");
      const { items } = await holdfast.executions.list({ parent: "parent" });
      const id = items[0]?.id ?? "";
      await dieBeside(id, 3);
      await dieAlone(id, 5);
      expect((await holdfast.executions.get(id)).interruption).toMatchObject({
        kind: "parked",
        code: "RUN_KEEPS_KILLING_WORKERS",
      });
      const result = run.result();
      await settled();
      clock.advance(2_000);
      await until(() => fixture.said.some(({ level }) => level === "warn"));
      const warning = fixture.said.find(({ level }) => level === "warn");
      expect(warning).toMatchObject({ details: { id: "parent", parked: id } });
      expect(warning?.message).toContain(`waits for ${id}, which is parked`);
      await holdfast.work([child]);
      await holdfast.executions.unpark(id);
      expect(await result).toBe(1);
    }),
  );
}

function cancelledTests(backend: Backend): void {
  test(
    "[RT10] runs its cleanup and does not begin the step that killed again, also while it replays",
    onRuntime(backend, async (fixture) => {
      const { holdfast, dieBeside } = await suspicious(fixture);
      const tally = new Tally();
      const deadly = workflow("deadly", async (ctx) => {
        await ctx.step("before", () => tally.count("before"));
        try {
          await Promise.all([
            ctx.step("killer", () => tally.count("killer")),
            ctx.transaction("killer too", function* () {
              yield* [];
              tally.count("killer");
            }),
          ]);
        } finally {
          await ctx.step("cleanup", () => tally.count("cleanup"));
        }
      });
      const { executions } = holdfast;
      await executions.createLocked({ id: "r", function: "deadly" }, { ...byAnn, retry: atOnce });
      await executions.append("r", 2, [stepDone(1, "before", 1)], { fence: byAnn.holder });
      await executions.unlock("r", 3, { holder: byAnn.holder, reason: "its worker closed" });
      await dieBeside("r", 2);
      await executions.cancel("r", { reason: "it kills" });
      await holdfast.work([deadly]);
      const run = holdfast.get(deadly, "r");
      expect((await rejection(run.result())).message).toContain("it kills");
      expect(tally.all).toEqual({ cleanup: 1 });
    }),
  );

  test(
    "[RT10] begins no children that its log does not have, and ends them",
    onRuntime(backend, async (fixture) => {
      const { holdfast, dieBeside } = await suspicious(fixture);
      const tally = new Tally();
      const killing = activity("killing", async () => tally.count("activity"));
      const below = workflow("below", async (ctx) => ctx.step("s", () => tally.count("below")));
      const deadly = workflow("deadly", async (ctx) => {
        await ctx.step("before", () => tally.count("before"));
        try {
          await Promise.all([ctx.call(killing), ctx.call(below), ctx.sleep("1 hour")]);
        } finally {
          await ctx.step("cleanup", () => tally.count("cleanup"));
        }
      });
      const { executions } = holdfast;
      await executions.createLocked({ id: "r", function: "deadly" }, { ...byAnn, retry: atOnce });
      await executions.append("r", 2, [stepDone(1, "before", 1)], { fence: byAnn.holder });
      await executions.unlock("r", 3, { holder: byAnn.holder, reason: "its worker closed" });
      await dieBeside("r", 1);
      await executions.cancel("r", { reason: "it kills" });
      await holdfast.work([deadly, killing, below]);
      expect((await rejection(holdfast.get(deadly, "r").result())).message).toContain("it kills");
      expect(tally.all).toEqual({ cleanup: 1 });
      const { items } = await executions.list({ parent: "r" });
      expect(items.map(({ status }) => status)).toEqual(["cancelled", "cancelled"]);
    }),
  );

  test(
    "[RT10] is ended without its cleanup once that has killed five workers alone, and its children are cancelled",
    onRuntime(backend, async (fixture) => {
      const { holdfast, dieBeside, dieAlone } = await suspicious(fixture);
      const tally = new Tally();
      const go = signal("go");
      const child = workflow("child", async (ctx) => ctx.receive(go));
      const deadly = workflow("deadly", async (ctx) => {
        try {
          await ctx.call(child);
        } finally {
          await ctx.step("cleanup", () => tally.count("cleanup"));
        }
      });
      const { executions } = holdfast;
      const client = await fixture.another();
      await client.work([deadly, child]);
      const run = await holdfast.start(deadly, undefined, { id: "r" });
      await until(async () => (await executions.list({ parent: "r" })).items.length === 1);
      await until(async () => (await run.status()) === "blocked");
      await client.close();
      await run.cancel({ reason: "it kills" });
      await dieBeside("r", 3);
      await dieAlone("r", 5);
      expect((await executions.get("r")).state.lifecycle).toBe("cancelling");
      await holdfast.work([deadly, child]);
      expect(await rejection(run.result())).toMatchObject({
        kind: "failed",
        cause: { code: "RUN_KEEPS_KILLING_WORKERS" },
      });
      expect(tally.all).toEqual({});
      const { items } = await executions.list({ parent: "r" });
      expect(items.map(({ status }) => status)).toEqual(["cancelled"]);
      expect(await kindsOf(holdfast, "r")).not.toContain("parked");
    }),
  );
}

function whenPoisonedTests(backend: Backend): void {
  const fiveDeaths =
    "5 processes died, or stopped renewing their lock, while they ran it and nothing else, without progress in between.";

  /** Processes die while each runs this run alone, for a function that wants to be cancelled. */
  function dieAs({ holdfast, meddling }: Suspicious, name: string) {
    return async (deaths: number): Promise<void> => {
      const { executions } = holdfast;
      meddling.liveness = "dead";
      for (let death = 0; death < deaths; death += 1) {
        const { locked } = await executions.lockPending({
          ...byAnn,
          functions: [{ name, retry: atOnce, whenPoisoned: "cancel" }],
          limit: 1,
          suspects: "alone",
        });
        expect(locked).toMatchObject([{ isAlone: true }]);
        await executions.releaseDead();
      }
      meddling.liveness = undefined;
    };
  }

  test(
    "[RN14] is cancelled, and its cleanup runs before anything that killed",
    onRuntime(backend, async (fixture) => {
      const own = await suspicious(fixture);
      const { holdfast, dieBeside } = own;
      const { executions } = holdfast;
      const tally = new Tally();
      const child = workflow("child", async (ctx) => ctx.step("s", () => tally.count("child")));
      const deadly = workflow("deadly", { whenPoisoned: "cancel" }, async (ctx) => {
        await ctx.step("before", () => tally.count("before"));
        try {
          await Promise.all([
            ctx.step("killer", () => tally.count("killer")),
            ctx.call(child),
            ctx.sleep("1 hour"),
          ]);
        } finally {
          await ctx.step("cleanup", () => tally.count("cleanup"));
        }
      });
      await executions.createLocked({ id: "r", function: "deadly" }, { ...byAnn, retry: atOnce });
      await executions.append("r", 2, [stepDone(1, "before", 1)], { fence: byAnn.holder });
      await executions.unlock("r", 3, { holder: byAnn.holder, reason: "its worker closed" });
      await dieBeside("r", 3);
      await dieAs(own, "deadly")(4);
      expect((await executions.get("r")).state).toMatchObject({ lifecycle: "active", deaths: 7 });
      await dieAs(own, "deadly")(1);
      expect(await executions.get("r")).toMatchObject({
        interruption: { kind: "cancelling", cause: "deaths", reason: fiveDeaths },
        state: { deaths: 8, aloneDeaths: 0 },
      });
      await holdfast.work([deadly, child]);
      const error = await rejection(holdfast.get(deadly, "r").result());
      expect(error).toMatchObject({ kind: "cancelled" });
      expect(error.message).toContain(fiveDeaths);
      expect(tally.all).toEqual({ cleanup: 1 });
      expect(await kindsOf(holdfast, "r")).not.toContain("parked");
    }),
  );

  test(
    "[RN14] is ended by force when its cleanup kills five more, and its children with it",
    onRuntime(backend, async (fixture) => {
      const own = await suspicious(fixture);
      const { holdfast, dieBeside, dieAlone } = own;
      const { executions } = holdfast;
      const go = signal("go");
      const tally = new Tally();
      const child = workflow("child", async (ctx) => ctx.receive(go));
      const deadly = workflow("deadly", { whenPoisoned: "cancel" }, async (ctx) => {
        try {
          await ctx.call(child);
        } finally {
          await ctx.step("cleanup", () => tally.count("cleanup"));
        }
      });
      const client = await fixture.another();
      await client.work([deadly, child]);
      const run = await holdfast.start(deadly, undefined, { id: "r" });
      await until(async () => (await run.status()) === "blocked");
      const { items: children } = await executions.list({ parent: "r" });
      await client.close();
      // It becomes due again, as it would with an answer.
      await executions.signal("r", go.name, true);
      await dieBeside("r", 3);
      await dieAs(own, "deadly")(5);
      expect((await executions.get("r")).state.lifecycle).toBe("cancelling");
      await dieAlone("r", 5);
      await holdfast.work([deadly, child]);
      expect(await rejection(run.result())).toMatchObject({
        kind: "failed",
        cause: { code: "RUN_KEEPS_KILLING_WORKERS" },
      });
      expect(tally.all).toEqual({});
      const { items } = await executions.list({ parent: "r" });
      expect(items.map(({ id, status }) => [id, status])).toEqual(
        children.map(({ id }) => [id, "cancelled"]),
      );
    }),
  );

  test(
    "[RN14] is told as an error, and an activity with the same wish is parked",
    onRuntime(backend, async (fixture) => {
      const own = await suspicious(fixture);
      const { clock, holdfast, dieBeside } = own;
      const { executions } = holdfast;
      await executions.create({ id: "w", function: "sick" });
      await executions.create({ id: "a", function: "ill", role: "activity" });
      for (const [id, name] of [
        ["w", "sick"],
        ["a", "ill"],
      ] as const) {
        await dieBeside(id, 3);
        await dieAs(own, name)(4);
      }
      await holdfast.work([workflow("idle", async () => undefined)]);
      for (const name of ["sick", "ill"])
        await executions.lockPending({
          ...byAnn,
          functions: [{ name, retry: atOnce, whenPoisoned: "cancel" }],
          limit: 1,
          suspects: "alone",
        });
      const errors = () => fixture.said.filter(({ level }) => level === "error");
      clock.advance(60_000);
      await until(() => errors().length === 2);
      expect(errors()).toEqual(
        expect.arrayContaining([
          expect.objectContaining({
            message: `Run w is being cancelled. ${fiveDeaths} Its cleanup runs.`,
            details: expect.objectContaining({ id: "w", code: "RUN_KEEPS_KILLING_WORKERS" }),
          }),
          expect.objectContaining({
            details: expect.objectContaining({ id: "a", code: "RUN_KEEPS_KILLING_WORKERS" }),
          }),
        ]),
      );
      expect((await executions.get("a")).status).toBe("parked");
      expect((await executions.get("w")).status).toBe("cancelling");
    }),
  );

  test(
    "[RN14] a worker tells its wish with the lock of a suspect, and with no other",
    onRuntime(backend, async (fixture) => {
      const { holdfast, dieBeside } = await suspicious(fixture);
      const locks = async (id: string) =>
        (await holdfast.executions.events(id)).items
          .flatMap(({ event }) => (event.kind === "locked" ? [event] : []))
          .map(({ alone, whenPoisoned }) => ({ alone, whenPoisoned }));
      const flow = workflow("flow", { whenPoisoned: "cancel" }, async () => 1);
      await holdfast.executions.create({ id: "suspect", function: "flow" });
      await dieBeside("suspect", 3);
      await holdfast.work([flow]);
      await holdfast.get(flow, "suspect").result();
      const run = await holdfast.start(flow);
      await run.result();
      const bare = { alone: undefined, whenPoisoned: undefined };
      expect(await locks("suspect")).toEqual([
        bare,
        bare,
        bare,
        { alone: true, whenPoisoned: "cancel" },
      ]);
      expect(await locks(run.id)).toEqual([bare]);
    }),
  );

  test("[RN14] any other wish is refused, and an activity has none", () => {
    for (const wish of [null, "", "retry", true, 1, {}])
      expect(() =>
        workflow("flow", { whenPoisoned: wish as never }, async () => undefined),
      ).toThrow(expect.objectContaining({ code: "OPTION_INVALID" }));
    expect(() =>
      activity("act", { whenPoisoned: "cancel" } as never, async () => undefined),
    ).toThrow(expect.objectContaining({ code: "OPTION_INVALID" }));
  });
}
