import { describe, expect, test } from "vitest";
import { signal, workflow } from "../../../src/runtime/definition/definitions.ts";
import type { WorkflowContext } from "../../../src/runtime/definition/workflow-context.ts";
import type { GivenEvent } from "../../../src/model/execution/given-event.ts";
import type { Backend } from "../backend.ts";
import { onRuntime } from "./fixture.ts";
import { appends, Meddling } from "./meddling.ts";
import { recordedRun, sleepAsked, stepDone } from "./recorded-run.ts";
import { gate, kindsOf, Tally, until } from "./waiting.ts";

/** A log, code that does something else, and what is said of it. */
interface Difference {
  readonly title: string;
  readonly events: (id: string) => readonly GivenEvent[];
  readonly code: (ctx: WorkflowContext) => Promise<unknown>;
  readonly recorded: string;
  readonly actual: string;
}

const differences: readonly Difference[] = [
  {
    title: "a step with another name",
    events: () => [stepDone(1, "charge", 5)],
    code: (ctx) => ctx.step("refund", () => 6),
    recorded: 'step "charge"',
    actual: 'step "refund"',
  },
  {
    title: "a sleep where a step was",
    events: () => [stepDone(1, "charge", 5)],
    code: (ctx) => ctx.sleep(5),
    recorded: 'step "charge"',
    actual: "sleep for 5 ms",
  },
  {
    title: "a sleep of another length",
    events: (id) => [sleepAsked(id, 1, 1_000)],
    code: (ctx) => ctx.sleep(2_000),
    recorded: "sleep for 1000 ms",
    actual: "sleep for 2000 ms",
  },
  {
    title: "a request that the log does not have in front of others",
    events: (id) => [sleepAsked(id, 2, 1_000)],
    code: (ctx) => Promise.all([ctx.sleep(5), ctx.sleep(1_000)]),
    recorded: "nothing",
    actual: "sleep for 5 ms",
  },
  {
    title: "no call where the log has an outcome",
    events: () => [stepDone(1, "one", 1), stepDone(2, "two", 2)],
    code: async (ctx) => {
      await ctx.step("one", () => 1);
      return "done early";
    },
    recorded: 'step "two"',
    actual: "no such call: the code returned",
  },
  {
    title: "fewer calls than the log has",
    events: (id) => [stepDone(1, "one", 1), sleepAsked(id, 2, 5)],
    code: async (ctx) => {
      await ctx.step("one", () => 1);
      await new Promise(() => undefined);
    },
    recorded: "sleep for 5 ms",
    actual: "no such call",
  },
];

export function runtimeReplaySuite(backend: Backend): void {
  describe("replay", () => {
    test(
      "[E60] answers from the log, and runs only what is not in it",
      onRuntime(backend, async ({ holdfast }) => {
        const tally = new Tally();
        const two = workflow("two", async (ctx) => {
          const a = await ctx.step("a", () => tally.count("a"));
          const b = await ctx.step("b", () => tally.count("b") * 10);
          return a + b;
        });
        await recordedRun(holdfast, "r", "two", [stepDone(1, "a", 7)]);
        await holdfast.work([two]);
        expect(await holdfast.get(two, "r").result()).toBe(17);
        expect(tally.all).toEqual({ b: 1 });
      }),
    );

    for (const { title, events, code, recorded, actual } of differences)
      test(
        `[RT7] [E65] parks a run whose code makes ${title}; its catch is not entered`,
        onRuntime(backend, async ({ holdfast, said }) => {
          const tally = new Tally();
          const changed = workflow("changing", async (ctx) => {
            try {
              return await code(ctx);
            } catch {
              tally.count("caught");
            } finally {
              tally.count("finally");
            }
            return undefined;
          });
          await recordedRun(holdfast, "r", "changing", events("r"));
          await holdfast.work([changed], { codeVersion: "v2" });
          const run = holdfast.get(changed, "r");
          await until(async () => (await run.status()) === "parked");
          const { event } = await holdfast.executions.lastEvent("r");
          expect(event).toMatchObject({
            kind: "parked",
            code: "NONDETERMINISM",
            codeVersion: "v2",
          });
          const { reason } = event as { reason: string };
          expect(reason).toContain(`recorded: ${recorded}`);
          expect(reason).toContain(`actual:   ${actual}`);
          expect(reason).toMatch(/^Run r of changing .* at call \d+/);
          expect(reason).toMatch(/actual: .* \(code version v2\)$/m);
          expect(tally.of("caught")).toBe(0);
          await until(() =>
            said.some(({ level, message }) => level === "error" && message === reason),
          );
        }),
      );

    test.each<[string, () => unknown, RegExp]>([
      [
        "an error of a deploy",
        () => new TypeError("s3cret is not iterable"),
        /no such call: the code threw TypeError \(at .*replay\.suite\.ts:\d+:\d+\)\n/,
      ],
      [
        "an error with any name",
        () => Object.assign(new Error(), { name: "\0\ud800".repeat(9_000) }),
        /no such call: the code threw \S/,
      ],
      [
        "what is no error",
        () => Proxy.revocable({}, {}).proxy,
        /no such call: the code threw NonError/,
      ],
    ])(
      "[RT7] names %s that keeps the code from the calls of its log, without its message",
      (_, thrown, reason) =>
        onRuntime(backend, async ({ holdfast, said }) => {
          const changed = workflow("changing", () => Promise.reject(thrown()));
          await recordedRun(holdfast, "r", "changing", [stepDone(1, "charge", 5)]);
          await holdfast.work([changed]);
          const run = holdfast.get(changed, "r");
          await until(async () => (await run.status()) === "parked");
          const { event } = await holdfast.executions.lastEvent("r");
          expect(event).toMatchObject({
            code: "NONDETERMINISM",
            reason: expect.stringMatching(reason),
          });
          expect(JSON.stringify(event)).not.toContain("s3cret");
          // Where no log keeps it, all of it is told.
          await until(() => said.some(({ details }) => typeof details["cause"] === "string"));
          const { damaged } = await holdfast.maintenance.check();
          expect(damaged).toEqual([]);
        })(),
    );

    test(
      "[RT6] [E64] begins no step that has no outcome before the whole log has matched",
      onRuntime(backend, async ({ holdfast }) => {
        const tally = new Tally();
        const changed = workflow("changing", async (ctx) => {
          await Promise.all([ctx.step("open", () => tally.count("open")), ctx.sleep(2_000)]);
        });
        // Its log has a sleep of another length behind a step that was merely open.
        await recordedRun(holdfast, "r", "changing", [sleepAsked("r", 2, 1_000)]);
        await holdfast.work([changed], { codeVersion: "v2" });
        const run = holdfast.get(changed, "r");
        await until(async () => (await run.status()) === "parked");
        expect(tally.all).toEqual({});
      }),
    );

    test(
      "[RT7] a parked run goes on under code that fits its log, on a worker of another version",
      onRuntime(backend, async ({ holdfast, another }) => {
        const name = "changing";
        const broken = workflow(name, async (ctx) => ctx.step("refund", () => "broken"));
        const mended = workflow(name, async (ctx) => {
          const a = await ctx.step("charge", () => "again");
          return `${a} and ${await ctx.step("ship", () => "shipped")}`;
        });
        await recordedRun(holdfast, "r", name, [stepDone(1, "charge", "charged")]);
        await holdfast.work([broken], { codeVersion: "v2" });
        const run = holdfast.get(mended, "r");
        await until(async () => (await run.status()) === "parked");
        const other = await another();
        await other.work([mended], { codeVersion: "v3" });
        expect(await run.result()).toBe("charged and shipped");
      }),
    );

    test(
      "[RT7] a parked run goes on once it is unparked, under code that was mended and has no version",
      onRuntime(backend, async ({ holdfast, another }) => {
        const name = "changing";
        const broken = workflow(name, async (ctx) => ctx.step("refund", () => 1));
        const mended = workflow(name, async (ctx) => ctx.step("charge", () => 2));
        await recordedRun(holdfast, "r", name, [stepDone(1, "charge", 5)]);
        const before = await another();
        await before.work([broken]);
        const run = holdfast.get(mended, "r");
        await until(async () => (await run.status()) === "parked");
        await before.close();
        await holdfast.work([mended]);
        expect(await run.status()).toBe("parked");
        await run.unpark();
        expect(await run.result()).toBe(5);
      }),
    );

    test(
      "[RT4] a response that comes while outcomes are being appended is delivered after them, live and replayed",
      onRuntime(backend, async ({ database, another }) => {
        const meddling = new Meddling(database);
        const holdfast = await another({}, meddling.database);
        const go = signal("go");
        const end = signal("end");
        const traces: string[][] = [];
        const racing = workflow("racing", async (ctx) => {
          const order: string[] = [];
          traces.push(order);
          const see = (name: string) => () => order.push(name);
          const steps = [
            ctx.step("first", () => 1).then(see("first")),
            ctx.step("second", () => 2).then(see("second")),
          ];
          const winner = await Promise.race([
            ...steps.map((step) => step.then(() => "step")),
            ctx.receive(go).then(see("signal")),
          ]);
          await ctx.receive(end);
          return { winner, order };
        });
        await holdfast.work([racing], { hotRunsMax: 0 });
        const held = meddling.holdNext("appendEvents", "call", appends("stepFinished"));
        const run = await holdfast.start(racing);
        await held.reached;
        await run.signal(go);
        held.release();
        // It is forgotten before it ends, so that it is replayed.
        await until(async () => (await kindsOf(holdfast, run.id)).includes("unlocked"));
        await run.signal(end);
        expect(await run.result()).toEqual({
          winner: "step",
          order: ["first", "second", "signal"],
        });
        for (const order of traces)
          expect(order).toEqual(["first", "second", "signal"].slice(0, order.length));
        expect(traces.length).toBeGreaterThan(1);
      }),
    );

    test(
      "[RT4] delivers outcomes of one append one after the other, in the order in which they ended",
      onRuntime(backend, async ({ holdfast }) => {
        const both = gate();
        const racing = workflow("racing", async (ctx) => {
          const order: string[] = [];
          const see = (name: string) => () => order.push(name);
          const first = ctx.step("first", () => both.opened).then(see("first"));
          const second = ctx.step("second", () => both.opened).then(see("second"));
          const winner = await Promise.race([
            first.then(() => "first"),
            second.then(() => "second"),
          ]);
          await Promise.all([first, second]);
          return { winner, order };
        });
        await holdfast.work([racing], { hotRunsMax: 0 });
        const run = await holdfast.start(racing);
        both.open();
        expect(await run.result()).toEqual({
          winner: "first",
          order: ["first", "second"],
        });
        const { items } = await holdfast.executions.events(run.id, {
          kinds: ["stepFinished"],
        });
        expect(items.map(({ event }) => (event as { name: string }).name)).toEqual([
          "first",
          "second",
        ]);
        expect(items[0]?.at).toBe(items[1]?.at);
      }),
    );

    test(
      "[E63] a set that nobody submitted to needs no events, and a detached start is found again",
      onRuntime(backend, async ({ holdfast }) => {
        const later = workflow("later", async (_, n: number) => n);
        const starting = workflow("starting", async (ctx) => {
          ctx.joinSet("empty");
          const first = await ctx.start(later, 1, { id: "later-1" });
          const again = await ctx.start(later, 1, { id: "later-1" });
          const own = await ctx.start(later, 2);
          await ctx.sleep(1);
          return { first, again, own: own.id.startsWith("E_") };
        });
        await holdfast.work([starting, later], { hotRunsMax: 0 });
        const run = await holdfast.start(starting);
        expect(await run.result()).toEqual({
          first: { id: "later-1", existed: false },
          again: { id: "later-1", existed: true },
          own: true,
        });
        expect(await kindsOf(holdfast, run.id)).not.toContain("joinSetCreated");
      }),
    );
  });
}
