import { expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import {
  activity,
  signal,
  workflow,
  type Activity,
  type Child,
  type Holdfast,
  type Run,
  type Signal,
  type Workflow,
  type WorkflowContext,
} from "../../src/index.ts";
import { row, rows, run as execute, sql } from "../../src/kernel.ts";
import type { Schema } from "../../src/runtime/definition/schema.ts";

/** An interface, which has no index signature, with what JSON does not have. */
interface Order {
  readonly id: string;
  readonly placedAt: Date;
  readonly lines: readonly { readonly sku: string; readonly count: bigint }[];
}

declare const order: Order;

const numeric: Schema<string, number> = {
  "~standard": {
    version: 1,
    vendor: "test",
    validate: (value) => ({ value: Number(value) }),
  },
};

const fulfil = workflow("fulfil", async (_, given: Order) => given.placedAt);
const plain = workflow("plain", async () => "done");
const optional = workflow("optional", async (_, given?: number) => given);
const parsed = workflow("parsed", { input: numeric }, async (_, given) => given + 1);
const charge = activity(
  "charge",
  { retry: { maxRetries: 2 }, timeout: "5s" },
  async (_, cents: number) => ({ receipt: `${cents}` }),
);
const tick = activity("tick", () => 1);
const read = activity("read", { input: numeric }, (_, given) => given);
const approval = signal<{ readonly ok: boolean }>("approval");
const wake = signal("wake");
const count = signal("count", numeric);

/** A piece of one's own. */
function* clear() {
  return yield* execute(sql`DELETE FROM account`);
}

/** The bodies are compiled and never run. */
function compiles(uses: (...given: never[]) => unknown): void {
  expect(uses).toBeTypeOf("function");
}

test("a function's types are those of its code, or of its schema", () => {
  expectTypeOf(fulfil).toEqualTypeOf<Workflow<Order, Date>>();
  expectTypeOf(plain).toEqualTypeOf<Workflow<void, string>>();
  expectTypeOf(optional).toEqualTypeOf<Workflow<number | undefined, number | undefined>>();
  expectTypeOf(parsed).toEqualTypeOf<Workflow<string, number>>();
  expectTypeOf(charge).toEqualTypeOf<Activity<number, { receipt: string }>>();
  expectTypeOf(tick).toEqualTypeOf<Activity<void, number>>();
  expectTypeOf(read).toEqualTypeOf<Activity<string, number>>();
  expectTypeOf(approval).toEqualTypeOf<Signal<{ readonly ok: boolean }>>();
  expectTypeOf(wake).toEqualTypeOf<Signal<true>>();
  compiles(() => [
    workflow(
      "limited",
      { concurrency: 2, cleanupTimeout: "1s", whenPoisoned: "cancel" },
      async () => 1,
    ),
    // @ts-expect-error: a workflow has no retries of its own.
    workflow("retried", { retry: { maxRetries: 1 } }, async () => 1),
    // @ts-expect-error: it is called `timeout`.
    activity("hasty", { timout: 5 }, async () => 1),
    // @ts-expect-error: `Infinity` is no duration in words.
    activity("words", { timeout: "soon" }, async () => 1),
    // @ts-expect-error: what does it do?
    workflow("nothing"),
    // @ts-expect-error: the schema makes numbers.
    workflow("otherwise", { input: numeric }, async (_, g: boolean) => g),
  ]);
});

test("start takes what the function takes, and gives a handle of what it returns", () => {
  compiles((holdfast: Holdfast) => {
    expectTypeOf(holdfast.start(fulfil, order)).toEqualTypeOf<Promise<Run<Date>>>();
    expectTypeOf(holdfast.start(charge, 5)).toEqualTypeOf<Promise<Run<{ receipt: string }>>>();
    expectTypeOf(holdfast.get(plain, "r")).toEqualTypeOf<Run<string>>();
    expectTypeOf(holdfast.get(plain, "r").result()).toEqualTypeOf<Promise<string>>();
    expectTypeOf(holdfast.startMany(fulfil, [{ input: order, id: "order-1" }])).toEqualTypeOf<
      Promise<readonly Run<Date>[]>
    >();
    return [
      holdfast.start(plain),
      holdfast.start(plain, undefined, { id: "r", deadline: "1 day" }),
      holdfast.start(optional),
      holdfast.start(optional, 5),
      holdfast.start(parsed, "5"),
      holdfast.start(fulfil, order, {
        startAt: { in: "1 hour" },
        tags: ["a"],
        concurrencyKey: "k",
      }),
      holdfast.startMany(plain, [{}, { id: "r" }]),
      holdfast.startMany(optional, [{}, { input: 5 }]),
      holdfast.startMany(parsed, [{ input: "5" }]),
      holdfast.work([fulfil, plain, optional, parsed, charge, tick, read]),
      // @ts-expect-error: the input is missing.
      holdfast.start(fulfil),
      // @ts-expect-error: it takes none.
      holdfast.start(plain, 5),
      // @ts-expect-error: the schema takes texts.
      holdfast.start(parsed, 5),
      holdfast.start(fulfil, {
        ...order,
        // @ts-expect-error: there is no such property.
        colour: "red",
      }),
      holdfast.start(fulfil, {
        ...order,
        // @ts-expect-error: text is no date.
        placedAt: "today",
      }),
      holdfast.start(
        charge,
        // @ts-expect-error: text is no number.
        "5",
      ),
      holdfast.start(plain, undefined, {
        // @ts-expect-error: it is called `deadline`.
        deadlin: "1 day",
      }),
      // @ts-expect-error: the input is missing.
      holdfast.startMany(fulfil, [{ id: "order-1" }]),
      // @ts-expect-error: it takes none.
      holdfast.startMany(plain, [{ input: 5 }]),
      // @ts-expect-error: a function is made by `workflow` or `activity`.
      holdfast.start(async () => 1),
      // @ts-expect-error: the same.
      holdfast.work([async () => 1]),
      // @ts-expect-error: an id is a text.
      holdfast.get(plain, 5),
    ];
  });
});

test("metadata of a start holds texts, and code can only read it", () => {
  compiles((holdfast: Holdfast) => [
    holdfast.start(plain, undefined, { metadata: { tenant: "acme" } }),
    holdfast.startMany(plain, [{ metadata: { tenant: "acme" } }]),
    // @ts-expect-error: metadata holds texts.
    holdfast.start(plain, undefined, { metadata: { tenant: 7 } }),
    // @ts-expect-error: the same.
    holdfast.startMany(plain, [{ metadata: ["acme"] }]),
    workflow("reads", async (ctx) => {
      expectTypeOf(ctx.metadata).toEqualTypeOf<Readonly<Record<string, string>>>();
      // @ts-expect-error: it cannot be changed.
      ctx.metadata["tenant"] = "other";
      await ctx.start(plain, undefined, { metadata: { ...ctx.metadata, tenant: "b" } });
      // @ts-expect-error: a child inherits it.
      await ctx.call(plain, undefined, { metadata: { tenant: "b" } });
    }),
  ]);
});

test("a run is sent what its signals are of", () => {
  compiles((run: Run<string>) => {
    expectTypeOf(run.progress()).toEqualTypeOf<Promise<unknown>>();
    expectTypeOf(run.fork(5)).toEqualTypeOf<Promise<Run<string>>>();
    expectTypeOf(run.retry({ id: "again" })).toEqualTypeOf<Promise<Run<string>>>();
    return [
      run.signal(approval, { ok: true }),
      run.signal(approval, { ok: true }, { key: "mail-17" }),
      run.signal(wake),
      run.signal(wake, undefined, { key: "once" }),
      run.signal(count, "5"),
      run.signal(signal("inline")),
      run.signal(signal<number>("number"), 5),
      // @ts-expect-error: it is of nothing but being sent.
      run.signal(signal("inline"), 5),
      run.cancel({ reason: "the customer called", force: true }),
      run.result({ timeout: "5s" }),
      // @ts-expect-error: the value is missing.
      run.signal(approval),
      // @ts-expect-error: there is no such property.
      run.signal(approval, { ok: true, by: "ann" }),
      // @ts-expect-error: it has no value.
      run.signal(wake, 5),
      // @ts-expect-error: the schema takes texts.
      run.signal(count, 5),
      // @ts-expect-error: it is called `reason`.
      run.cancel({ why: "the customer called" }),
      // @ts-expect-error: a version is a number.
      run.fork("5"),
      // @ts-expect-error: a signal is made by `signal`.
      run.signal("approval", { ok: true }),
    ];
  });
});

test("ctx calls functions with what they take, and gives what they return", () => {
  compiles((ctx: WorkflowContext) => {
    expectTypeOf(ctx.call(fulfil, order)).toEqualTypeOf<Promise<Date>>();
    expectTypeOf(ctx.call(tick)).toEqualTypeOf<Promise<number>>();
    expectTypeOf(ctx.spawn(charge, 5)).toEqualTypeOf<Child<{ receipt: string }>>();
    expectTypeOf(ctx.spawn(charge, 5).result()).toEqualTypeOf<Promise<{ receipt: string }>>();
    expectTypeOf(ctx.start(plain)).resolves.toEqualTypeOf<{
      readonly id: string;
      readonly existed: boolean;
    }>();
    return [
      ctx.call(optional),
      ctx.call(plain, undefined, { deadline: "1 day" }),
      ctx.start(fulfil, order, { id: "order-1", startAt: { at: 5 } }),
      // @ts-expect-error: the input is missing.
      ctx.call(charge),
      // @ts-expect-error: text is no number.
      ctx.call(charge, "5"),
      // @ts-expect-error: it takes none.
      ctx.call(plain, 5),
      // @ts-expect-error: a child is named by its parent.
      ctx.call(plain, undefined, { id: "r" }),
      // @ts-expect-error: the input is missing.
      ctx.spawn(charge),
      // @ts-expect-error: text is no number.
      ctx.start(charge, "5"),
      // @ts-expect-error: it is called `startAt`.
      ctx.start(plain, undefined, { at: 5 }),
    ];
  });
});

test("a function that takes anything is given anything", () => {
  type Anything = ReturnType<typeof JSON.parse>;
  const loose = workflow("loose", async (_, given: Anything) => typeof given);
  expect(loose.name).toBe("loose");
  compiles((holdfast: Holdfast, ctx: WorkflowContext) => [
    holdfast.start(loose, { deep: [5] }, { id: "r" }),
    holdfast.start(loose),
    holdfast.startMany(loose, [{ input: "5" }, {}]),
    ctx.call(loose, 5),
  ]);
});

test("a step gives what its body gives, a transaction what its generator returns", () => {
  compiles((ctx: WorkflowContext) => {
    expectTypeOf(ctx.step("sync", () => 5)).toEqualTypeOf<Promise<number>>();
    expectTypeOf(ctx.step("async", async () => order)).toEqualTypeOf<Promise<Order>>();
    expectTypeOf(
      ctx.step(
        "told",
        { retry: { maxRetries: 1, backoff: "1s" }, timeout: 500 },
        ({ attempt, abortSignal, idempotencyKey }) =>
          abortSignal.aborted ? attempt : idempotencyKey,
      ),
    ).toEqualTypeOf<Promise<string | number>>();
    expectTypeOf(ctx.step("charge", { announced: true }, ({ isRepeat }) => isRepeat)).toEqualTypeOf<
      Promise<boolean>
    >();
    expectTypeOf(
      ctx.transaction("book", function* () {
        yield* execute(sql`DELETE FROM account`);
        const found = yield* row<{ cents: number }>(sql`SELECT 1 AS cents`);
        return found?.cents;
      }),
    ).toEqualTypeOf<Promise<number | undefined>>();
    expectTypeOf(
      ctx.transaction(
        "count",
        { isolation: "readCommitted", retry: { maxRetries: 1 } },
        function* () {
          return (yield* rows(sql`SELECT 1`)).length;
        },
      ),
    ).toEqualTypeOf<Promise<number>>();
    return [
      // @ts-expect-error: what does it do?
      ctx.step("nothing"),
      // @ts-expect-error: it is called `timeout`.
      ctx.step("hasty", { timout: 5 }, () => 1),
      // @ts-expect-error: a step is announced or not.
      ctx.step("charge", { announced: "yes" }, () => 1),
      // @ts-expect-error: only steps are announced.
      ctx.transaction("charge", { announced: true }, clear),
      // @ts-expect-error: its name comes first.
      ctx.step(() => 1),
      // @ts-expect-error: the body of a step has no ctx.
      ctx.step("nested", (inner: WorkflowContext) => inner.id),
      // @ts-expect-error: a transaction cannot await.
      ctx.transaction("async", async () => 1),
      // @ts-expect-error: nor with options.
      ctx.transaction("async", { isolation: "readCommitted" }, async () => 1),
      // @ts-expect-error: nor a generator that awaits.
      ctx.transaction("async", async function* () {}),
      // @ts-expect-error: there are two isolations.
      ctx.transaction("dirty", { isolation: "readUncommitted" }, clear),
      // @ts-expect-error: a transaction has no timeout of its own.
      ctx.transaction("hasty", { timeout: 5 }, clear),
      // @ts-expect-error: `yield` without its star.
      ctx.transaction("starless", function* () {
        yield clear();
      }),
    ];
  });
});

test("what ctx waits for has its type; with a timeout there may be nothing", () => {
  compiles((ctx: WorkflowContext) => {
    expectTypeOf(ctx.receive(approval)).toEqualTypeOf<Promise<{ readonly ok: boolean }>>();
    expectTypeOf(ctx.receive(approval, { timeout: "1 day" })).toEqualTypeOf<
      Promise<{ readonly ok: boolean } | undefined>
    >();
    expectTypeOf(ctx.receive(wake)).toEqualTypeOf<Promise<true>>();
    expectTypeOf(ctx.receive(count)).toEqualTypeOf<Promise<number>>();
    expectTypeOf(ctx.sleep("1 day")).toEqualTypeOf<Promise<void>>();
    expectTypeOf(ctx.external<Order>().result()).toEqualTypeOf<Promise<Order>>();
    expectTypeOf(ctx.external().result()).toEqualTypeOf<Promise<unknown>>();
    expectTypeOf(ctx.external<Order>({ timeout: "1 day" }).result()).toEqualTypeOf<
      Promise<Order | undefined>
    >();
    const schema = z.object({ approve: z.boolean().default(true) });
    expectTypeOf(ctx.external({ schema }).result()).toEqualTypeOf<
      Promise<{ approve?: boolean | undefined }>
    >();
    expectTypeOf(ctx.now()).toEqualTypeOf<number>();
    expectTypeOf(ctx.uuid()).toEqualTypeOf<string>();
    expectTypeOf(ctx.patched("p")).toEqualTypeOf<boolean>();
    return [
      ctx.sleepUntil(new Date()),
      ctx.sleepUntil(5),
      // @ts-expect-error: a signal is made by `signal`.
      ctx.receive("approval"),
      // @ts-expect-error: it is called `timeout`.
      ctx.receive(approval, { within: "1 day" }),
      // @ts-expect-error: an instant is a date or milliseconds.
      ctx.sleepUntil("tomorrow"),
      // @ts-expect-error: no such unit.
      ctx.sleep("1 fortnight"),
      // @ts-expect-error: a time is in milliseconds or words.
      ctx.sleep(new Date()),
    ];
  });
});

test("a set has the results of all that is submitted to it", () => {
  compiles(async (ctx: WorkflowContext) => {
    const set = ctx.joinSet<number>("numbers");
    expectTypeOf(set.spawn(tick)).toEqualTypeOf<Child<number>>();
    expectTypeOf(set.next()).toEqualTypeOf<Promise<number | undefined>>();
    const tried = set.try();
    if (tried.kind === "found") expectTypeOf(tried.value).toEqualTypeOf<number>();
    for await (const value of set) expectTypeOf(value).toEqualTypeOf<number>();
    expectTypeOf(ctx.joinSet().next()).toEqualTypeOf<Promise<unknown>>();
    return [
      set.spawn(parsed, "5", { deadline: "1s" }),
      // @ts-expect-error: it gives a text.
      set.spawn(plain),
      // @ts-expect-error: the input is missing.
      set.spawn(parsed),
    ];
  });
});

test("continueWith may be returned beside a result", () => {
  const poller = workflow("poller", async (ctx, turn: number) => {
    if (turn < 3) return ctx.continueWith(turn + 1);
    return "done";
  });
  expectTypeOf(poller).toEqualTypeOf<Workflow<number, string>>();
});
