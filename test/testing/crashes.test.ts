import { describe, expect, test } from "vitest";
import { activity, signal, workflow } from "../../src/index.ts";
import { fake, surviveCrashes } from "../../src/testing.ts";

const charge = activity("charge", async (_, cents: number) => cents);
const approval = signal<string>("approval");

describe("a workflow that survives a crash at every event", () => {
  test("ends the same, with the same effects", async () => {
    const order = workflow("order", async (ctx, cents: number) => {
      const paid = await ctx.call(charge, cents);
      const [label, reply] = await Promise.all([
        ctx.step("label", () => ctx.id),
        ctx.receive(approval, { timeout: "1 day" }),
      ]);
      await ctx.sleep("30 days");
      return { paid, label, reply, id: ctx.uuid() };
    });
    let shipped = new Set<string>();
    const report = await surviveCrashes(order, 500, {
      functions: () => {
        shipped = new Set();
        return [
          fake(charge, ({ idempotencyKey }, cents) => {
            shipped.add(idempotencyKey);
            return cents;
          }),
        ];
      },
      during: (_, run) => run.signal(approval, "yes", { key: "once" }),
      effects: () => shipped,
    });
    expect(report.differences).toEqual([]);
    expect(report.rounds).toBe(report.events);
    // Created, locked and ended, twice; what it recorded in between.
    expect(report.events).toBeGreaterThan(10);
  });
});

describe("a workflow that does not", () => {
  test("is told with the event after which it went another way", async () => {
    let sent = 0;
    const careless = workflow("careless", async (ctx) => {
      await ctx.step("first", () => 1);
      // Outside of any step: replay does it again.
      sent += 1;
      return ctx.step("second", () => 2);
    });
    const report = await surviveCrashes(careless, undefined, {
      functions: () => {
        sent = 0;
        return [];
      },
      effects: () => sent,
    });
    expect(report.differences).toContainEqual({
      after: { run: "run-1", version: 3, kind: "stepFinished" },
      part: "effects",
      expected: 1,
      actual: 2,
    });
  });

  test("is told when its result depends on what is not recorded", async () => {
    let calls = 0;
    const moody = workflow("moody", async (ctx) => {
      calls += 1;
      await ctx.sleep("1 hour");
      return calls;
    });
    const report = await surviveCrashes(moody, undefined, {
      functions: () => {
        calls = 0;
        return [];
      },
    });
    expect(report.differences.map(({ part }) => part)).toContain("result");
  });

  test("is told when an attempt that died was its last", async () => {
    const once = activity("once", { retry: { maxRetries: 0 } }, async () => 1);
    const parent = workflow("parent", (ctx) => ctx.call(once));
    const { differences } = await surviveCrashes(parent, undefined, {
      functions: () => [once],
    });
    expect(differences).toContainEqual(
      expect.objectContaining({
        part: "result",
        expected: { kind: "completed", value: 1 },
        after: expect.objectContaining({ kind: "locked" }),
      }),
    );
  });

  test("is tried at so many events and no more", async () => {
    const many = workflow("many", async (ctx) => {
      for (let step = 0; step < 20; step += 1) await ctx.step(`step ${step}`, () => step);
    });
    const report = await surviveCrashes(many, undefined, { roundsMax: 3 });
    expect(report).toMatchObject({ rounds: 3, differences: [] });
  });

  test("is told with how the run ended without one, which may be a failure", async () => {
    const fails = workflow("fails", () => {
      throw new Error("always");
    });
    const report = await surviveCrashes(fails, undefined);
    expect(report).toMatchObject({
      differences: [],
      result: { kind: "failed", message: expect.stringContaining("always") },
    });
  });
});
