import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import {
  activity,
  signal,
  workflow,
  type RunHistory,
  type WorkflowContext,
} from "../../src/index.ts";
import { fake, replayHistory } from "../../src/testing.ts";
import { opening } from "./kit.ts";

const open = opening();

interface Order {
  readonly at: Date;
  readonly cents: bigint;
}
const charge = activity("charge", async (_, cents: bigint) => cents);
const approval = signal<Map<string, number>>("approval");

async function body(ctx: WorkflowContext, order: Order): Promise<unknown> {
  const paid = await ctx.call(charge, order.cents);
  const label = await ctx.step("label", () => new Set([order.at]));
  const reply = await ctx.receive(approval);
  await ctx.sleep("1 day");
  return { paid, label, reply, chance: ctx.random(), now: ctx.now() };
}
const order = workflow("order", body);
const input: Order = { at: new Date(5), cents: 500n };

/** A history as it is after it was written to a file and read again. */
const written = (history: RunHistory): RunHistory =>
  JSON.parse(JSON.stringify(history)) as RunHistory;

async function recorded(isDone: boolean): Promise<{
  readonly history: RunHistory;
  readonly result: unknown;
}> {
  const kit = await open([order, fake(charge, { returns: 7n })]);
  const run = await kit.start(order, input, { id: "o-1" });
  await kit.idle();
  if (!isDone) return { history: await run.history(), result: undefined };
  await run.signal(approval, new Map([["ada", 1]]), { key: "k" });
  const result = await run.result();
  return { history: await run.history(), result };
}

describe("a recorded history", () => {
  test("is plain JSON, and code that is as it was matches it", async () => {
    const { history, result } = await recorded(true);
    expect(written(history)).toEqual(history);
    expect(await replayHistory(order, written(history))).toEqual({
      kind: "ends",
      result: { kind: "completed", value: result },
    });
  });

  test("of a run that waits matches up to there", async () => {
    const { history } = await recorded(false);
    expect(await replayHistory(order, history)).toEqual({ kind: "matches" });
  });

  test("shows what changed code does instead, side by side", async () => {
    const { history } = await recorded(false);
    const changed = workflow("order", async (ctx, given: Order) => {
      const paid = await ctx.call(charge, given.cents);
      await ctx.step("invoice", () => "new");
      return { paid };
    });
    expect(await replayHistory(changed, history, { codeVersion: "43" })).toMatchObject({
      kind: "differs",
      error: {
        code: "NONDETERMINISM",
        // No run was parked: it is the code that was tried.
        message: expect.stringContaining("would park such a run") as string,
        details: {
          recorded: 'step "label"',
          actual: 'step "invoice"',
          codeVersion: "43",
        },
      },
    });
  });

  test("is safe for a change behind ctx.patched", async () => {
    const { history } = await recorded(false);
    const patched = workflow("order", async (ctx, given: Order) => {
      if (ctx.patched("check first")) await ctx.step("check", () => true);
      return body(ctx, given);
    });
    expect(await replayHistory(patched, history)).toEqual({ kind: "matches" });
  });

  test("of a run that was cancelled differs too, when the code does", async () => {
    const nap = (name: string) =>
      workflow("nap", async (ctx) => {
        await ctx.step(name, () => 1);
        await ctx.sleep("1 day");
      });
    const kit = await open([nap("rest")]);
    const run = await kit.start(nap("rest"));
    await kit.idle();
    await run.cancel();
    await expect(run.result()).rejects.toMatchObject({ kind: "cancelled" });
    const history = await run.history();
    expect(await replayHistory(nap("rest"), history)).toEqual({
      kind: "ends",
      result: { kind: "cancelled" },
    });
    expect(await replayHistory(nap("work"), history)).toMatchObject({
      kind: "differs",
    });
  });

  test("of the last pass is that of a run that has begun anew", async () => {
    const count = workflow("count", async (ctx, left: number) => {
      await ctx.step(`at ${left}`, () => left);
      return left === 0 ? "done" : ctx.continueWith(left - 1);
    });
    const kit = await open([count]);
    const run = await kit.start(count, 2);
    await run.result();
    const history = await run.history();
    expect(history).toMatchObject({ input: 0, continuations: 2 });
    expect(await replayHistory(count, history)).toMatchObject({ kind: "ends" });
  });

  test("does not tell tokens, and code that passes one on matches all the same", async () => {
    const mail = activity("mail", async (_, token: string) => token.length);
    const ask = workflow("ask", async (ctx) => {
      const external = ctx.external<string>();
      await ctx.call(mail, external.token);
      return external.result();
    });
    const mailed = fake(mail, { returns: 1 });
    const kit = await open([ask, mailed]);
    const run = await kit.start(ask);
    await kit.idle();
    const history = await run.history();
    expect(await replayHistory(ask, history)).toEqual({ kind: "matches" });
    const token = mailed.calls[0]?.input.split("~")[1] ?? "";
    expect(token).toMatch(/^[0-9a-f]{64}$/);
    expect(JSON.stringify(history)).not.toContain(token);
  });

  test("of a crashed run matches", async () => {
    const kit = await open([order, fake(charge, { returns: 7n })]);
    kit.crashAfter(6);
    const run = await kit.start(order, input, { id: "o-1" });
    await kit.idle();
    expect(await replayHistory(order, await run.history())).toEqual({
      kind: "matches",
    });
  });

  test("[RN1] matches whatever it says of when bodies ran, and says nothing of it in an older one", async () => {
    const file = path.join(import.meta.dirname, "../formats/run-history.json");
    const text = readFileSync(file, "utf8");
    const ended = await replayHistory(order, JSON.parse(text) as RunHistory);
    expect(ended).toMatchObject({ kind: "ends" });
    for (const ran of ["", '"ran": [-9, 0],']) {
      const changed = text.replace(/"ran": \[-301, -2\],/, ran);
      expect(changed).not.toBe(text);
      expect(await replayHistory(order, JSON.parse(changed) as RunHistory)).toEqual(ended);
    }
  });

  test("keeps the form that was written before", async () => {
    const file = path.join(import.meta.dirname, "../formats/run-history.json");
    const pinned = JSON.parse(readFileSync(file, "utf8")) as RunHistory;
    expect(await replayHistory(order, pinned)).toMatchObject({ kind: "ends" });
    const { history } = await recorded(true);
    expect(withoutMachine(history)).toEqual(withoutMachine(pinned));
  });
});

/** Who held it and how long a body ran differs from machine to machine. */
function withoutMachine({ events, ...rest }: RunHistory): unknown {
  return {
    ...rest,
    events: events.map(({ event, ...place }) => ({
      ...place,
      event: { ...event, holder: undefined, ran: undefined },
    })),
  };
}

describe("what is no history", () => {
  const without = (name: string) => (history: object) =>
    Object.fromEntries(Object.entries(history).filter(([each]) => each !== name));
  const withField =
    (name: string, value: unknown) =>
    (history: object): unknown => ({ ...history, [name]: value });
  const withEvent =
    (change: object) =>
    (history: object): unknown => {
      const [first, ...others] = (history as RunHistory).events;
      const event = { ...first?.event, ...change };
      return { ...history, events: [{ ...first, event }, ...others] };
    };

  const faults: readonly (readonly [string, string, (h: object) => unknown])[] = [
    ["null", "format", () => null],
    ["a text", "format", (history) => JSON.stringify(history)],
    ["a list", "format", () => []],
    ["an empty object", "format", () => ({})],
    ["another document", "format", withField("format", "x")],
    ["a newer format", "newer", withField("formatVersion", 2)],
    ["an older format than there was", "field", withField("formatVersion", -1)],
    ["no events", "field", without("events")],
    ["a field too many", "field", withField("extra", 1)],
    ["a seed that is no number", "field", withField("seed", "0x1")],
    ["an id that is none", "field", withField("run", "a b")],
    ["a name that is none", "field", withField("function", "")],
    ["an input with a broken tag", "field", withField("input", { $holdfast: 1, x: 2 })],
    ["events that are no list", "field", withField("events", {})],
    ["an event that is no object", "field", withField("events", [1])],
    ["an event of no kind", "field", withEvent({ kind: "danced" })],
    ["an event of Object's", "field", withEvent({ kind: "constructor" })],
    ["an event with a field too many", "field", withEvent({ extra: 1 })],
    [
      "a body that ran after its event",
      "field",
      (history) => JSON.parse(JSON.stringify(history).replace("[-301,-2]", "[2,301]")) as unknown,
    ],
    ["an event whose place is none", "field", withEvent({ call: -1, kind: "patched", patch: "x" })],
    [
      "a response of no kind",
      "field",
      withField("responses", [{ seq: 1, at: 1, response: { kind: "toString" } }]),
    ],
    [
      "a response without its value",
      "field",
      withField("responses", [
        {
          seq: 1,
          at: 1,
          response: { kind: "signal", signal: "a", signalKey: "b" },
        },
      ]),
    ],
    ["a cancellation that is none", "field", withField("cancellation", { cause: "whim" })],
  ];

  test.each(faults)("is refused: %s", async (_, reason, change) => {
    const { history } = await shared;
    await expect(replayHistory(order, change(history) as RunHistory)).rejects.toMatchObject({
      code: "HISTORY_INVALID",
      details: { reason },
    });
  });

  const shared = (async () => {
    const file = path.join(import.meta.dirname, "../formats/run-history.json");
    return { history: JSON.parse(readFileSync(file, "utf8")) as RunHistory };
  })();

  test("is refused: the history of another function, or of another codec", async () => {
    const { history } = await shared;
    const other = workflow("other", body);
    await expect(replayHistory(other, history)).rejects.toMatchObject({
      code: "HISTORY_INVALID",
      details: { reason: "function" },
    });
    const encrypted = { ...history, payload: "vault" };
    await expect(replayHistory(order, encrypted)).rejects.toMatchObject({
      code: "HISTORY_INVALID",
      details: { reason: "payload" },
    });
  });

  test("is refused in any order of events but its own", async () => {
    const { history } = await shared;
    const events = history.events.toReversed();
    await expect(replayHistory(order, { ...history, events })).rejects.toMatchObject({
      code: "HISTORY_INVALID",
    });
  });
});
