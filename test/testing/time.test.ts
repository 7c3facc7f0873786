import { describe, expect, test, vi } from "vitest";
import { activity, schedule, signal, workflow } from "../../src/index.ts";
import { fake, testHoldfast } from "../../src/testing.ts";
import { dayMs, opening, start } from "./kit.ts";

const open = opening();

const nap = workflow("nap", async (ctx, days: number) => {
  await ctx.sleep(days * dayMs);
  return ctx.now();
});
const approval = signal<string>("approval");
const decide = workflow("decide", async (ctx) => {
  const reply = await ctx.receive(approval, { timeout: "1 day" });
  return reply ?? "nobody answered";
});

describe("time in a test", () => {
  test("passes at once while a result is awaited", async () => {
    const kit = await open([nap]);
    expect(await kit.run(nap, 30)).toBe(start + 30 * dayMs);
    expect(kit.now()).toEqual(new Date(start + 30 * dayMs));
  });

  test("[RN6] passes while live output is awaited, and ends for a run that cannot go on", async () => {
    const talks = workflow("talks", async (ctx) => {
      await ctx.step("talk", ({ stream }) => void stream("a"));
      await ctx.sleep("1 day");
      await ctx.step("more", ({ stream }) => void stream("b"));
      return ctx.receive(approval);
    });
    const kit = await open([talks]);
    const run = await kit.start(talks);
    const outputs = run.stream()[Symbol.asyncIterator]();
    expect((await outputs.next()).value).toMatchObject({ value: "a" });
    expect((await outputs.next()).value).toMatchObject({ value: "b" });
    expect(kit.now()).toEqual(new Date(start + dayMs));
    await expect(outputs.next()).rejects.toMatchObject({ code: "RUN_STUCK" });
    expect((await outputs.next()).done).toBe(true);
    await run.signal(approval, "yes");
    const kinds: string[] = [];
    for await (const { kind } of run.stream()) kinds.push(kind);
    expect(kinds).toEqual(["chunk", "chunk", "end"]);
    const aborted = AbortSignal.abort();
    await expect(
      run.stream({ signal: aborted })[Symbol.asyncIterator]().next(),
    ).rejects.toMatchObject({ code: "ABORTED" });
  });

  test("[RN6] is neither moved nor blocked by live output", async () => {
    const talks = workflow("talks", async (ctx) => {
      await ctx.step("talk", async ({ stream }) => {
        stream("a");
        stream("b");
      });
      await ctx.sleep("1 day");
      return ctx.step("more", ({ stream }) => stream("c"));
    });
    const kit = await open([talks]);
    const run = await kit.start(talks, undefined, { id: "talks" });
    await kit.idle();
    expect(kit.now()).toEqual(new Date(start));
    expect(await run.result()).toBe(true);
    expect(kit.now()).toEqual(new Date(start + dayMs));
    const said: unknown[] = [];
    for await (const output of run.stream())
      said.push(output.kind === "chunk" ? output.value : output.kind);
    expect(said).toEqual(["a", "b", "c", "end"]);
  });

  test("stands still until a result is awaited", async () => {
    const kit = await open([decide]);
    const run = await kit.start(decide);
    await kit.idle();
    expect(kit.now()).toEqual(new Date(start));
    await run.signal(approval, "yes");
    expect(await run.result()).toBe("yes");
    expect(kit.now()).toEqual(new Date(start));
  });

  test("brings the timeout of a receive", async () => {
    const kit = await open([decide]);
    expect(await kit.run(decide)).toBe("nobody answered");
    expect(kit.now()).toEqual(new Date(start + dayMs));
  });

  test("brings deadlines, later starts and the timeout of a wait", async () => {
    const kit = await open([nap]);
    const late = kit.run(nap, 30, { id: "late", deadline: "2 days" });
    await expect(late).rejects.toMatchObject({ kind: "timedOut" });
    const scheduled = await kit.start(nap, 1, { startAt: { in: 10 * dayMs } });
    expect(await scheduled.result()).toBe(start + 13 * dayMs);
    const waiting = await kit.start(nap, 3);
    await expect(waiting.result({ timeout: "1 day" })).rejects.toMatchObject({
      code: "DEADLINE_EXCEEDED",
    });
    expect(kit.now()).toEqual(new Date(start + 14 * dayMs));
  });

  test("brings the retries of steps and activities, and their pauses", async () => {
    let tries = 0;
    const flaky = workflow("flaky", async (ctx) => {
      const retry = { maxRetries: 3, backoff: "1 hour" } as const;
      return ctx.step("try", { retry }, async () => {
        tries += 1;
        if (tries < 4) throw new Error("not yet");
        return tries;
      });
    });
    const kit = await open([flaky]);
    expect(await kit.run(flaky)).toBe(4);
    expect(kit.now().getTime() - start).toBeGreaterThan(3_600_000);
  });

  test("waits for bodies that really take time", async () => {
    const slow = activity("slow", { timeout: "1 minute" }, async () => {
      await new Promise((resolve) => setTimeout(resolve, 30));
      return "done";
    });
    const both = workflow("both", async (ctx) =>
      Promise.all([
        ctx.call(slow),
        ctx.step("slow too", { timeout: "1 minute" }, async () => {
          await new Promise((resolve) => setTimeout(resolve, 30));
          return "done too";
        }),
        ctx.sleep("1 hour"),
      ]),
    );
    const kit = await open([slow, both]);
    expect(await kit.run(both)).toEqual(["done", "done too", undefined]);
  });

  test("stands still while a long history is replayed, which asks nothing of the database", async () => {
    const send: { to?: () => Promise<void> } = {};
    const long = workflow("long", async (ctx) => {
      for (let step = 0; step < 30; step += 1) {
        await ctx.step("count", () => step);
        // So long that the replay gives way to others at each step.
        const by = performance.now() + 5;
        while (performance.now() < by);
      }
      await ctx.sleep("1 hour");
      await ctx.step("send", async () => send.to?.());
    });
    // A moment longer than the sleep: it ends first if time moves in the midst of the replay.
    const listen = workflow("listen", async (ctx) =>
      ctx.receive(approval, { timeout: 3_600_000 + 1_000 }),
    );
    const kit = await open([long, listen], { work: { hotRunsMax: 0 } });
    const listens = await kit.start(listen);
    send.to = () => listens.signal(approval, "heard");
    await kit.start(long);
    expect(await listens.result()).toBe("heard");
  });

  test("stands still while a body runs, when it is moved by hand too", async () => {
    const slow = workflow("slow", async (ctx) =>
      ctx.step("slow", { timeout: "30s" }, async ({ attempt }) => {
        await new Promise((resolve) => setTimeout(resolve, 1_300));
        return attempt;
      }),
    );
    const kit = await open([slow]);
    const run = await kit.start(slow);
    await kit.skip("1 hour");
    expect(await run.result()).toBe(1);
  });

  test("waits for a body that waits for the test once, not at each instant", async () => {
    let unlock: (value: string) => void = () => undefined;
    const gate = new Promise<string>((resolve) => {
      unlock = resolve;
    });
    const gated = workflow("gated", async (ctx) => ctx.step("gated", () => gate));
    const poll = workflow("poll", async (ctx) => {
      for (;;) await ctx.sleep("1 hour");
    });
    const kit = await open([gated, poll]);
    const run = await kit.start(gated);
    await kit.start(poll);
    // At a second for each instant, this would take minutes.
    await kit.skip("10 days");
    expect(kit.now()).toEqual(new Date(start + 10 * dayMs));
    unlock("open");
    expect(await run.result()).toBe("open");
  });

  test("brings the timeout of a step whose body does not end, when it is moved by hand", async () => {
    const hang = workflow("hang", async (ctx) =>
      ctx.step(
        "hang",
        { timeout: "30s", retry: { maxRetries: 0 } },
        ({ abortSignal }) =>
          new Promise((_, reject) => {
            const stop = (): void => reject(abortSignal.reason as Error);
            abortSignal.addEventListener("abort", stop);
          }),
      ),
    );
    const kit = await open([hang]);
    const run = await kit.start(hang);
    await kit.skip("1 minute");
    await expect(run.result()).rejects.toMatchObject({
      cause: { code: "STEP_TIMED_OUT" },
    });
  });

  test("does not move for an activity that was cancelled and has stopped", async () => {
    let hasBegun = false;
    const stops = activity("stops", async ({ abortSignal }) => {
      hasBegun = true;
      await new Promise((_, reject) => {
        const stop = (): void => reject(abortSignal.reason as Error);
        abortSignal.addEventListener("abort", stop);
      });
    });
    const ask = workflow("ask", async (ctx) => ctx.receive(approval));
    const kit = await open([stops, ask]);
    const run = await kit.start(stops);
    while (!hasBegun) await new Promise((resolve) => setTimeout(resolve, 1));
    await run.cancel();
    await expect(run.result()).rejects.toMatchObject({ kind: "cancelled" });
    await expect(kit.run(ask)).rejects.toMatchObject({ code: "RUN_STUCK" });
    expect(kit.now()).toEqual(new Date(start));
  });

  test("is moved by hand when it is not to move by itself", async () => {
    const kit = await open([nap], { autoSkip: false });
    const run = await kit.start(nap, 2);
    const result = run.result();
    await kit.skip("1 day");
    expect(await run.status()).toBe("blocked");
    await kit.skipTo(new Date(start + 5 * dayMs));
    expect(await result).toBe(start + 2 * dayMs);
    await kit.skipTo(0);
    expect(kit.now()).toEqual(new Date(start + 5 * dayMs));
  });

  test("takes what comes due on the way at its own instant", async () => {
    const seen: number[] = [];
    const poll = workflow("poll", async (ctx) => {
      for (let round = 0; round < 3; round += 1) {
        await ctx.sleep("1 day");
        seen.push(ctx.now());
      }
    });
    const kit = await open([poll]);
    const run = await kit.start(poll);
    await kit.skip("10 days");
    expect(seen).toEqual([1, 2, 3].map((days) => start + days * dayMs));
    expect(await run.status()).toBe("completed");
  });

  test("stops at the instants of a schedule when it is moved, and does not wait for them", async () => {
    const seen: number[] = [];
    const tidy = workflow("tidy", async (ctx) => ctx.step("note", () => void seen.push(ctx.now())));
    const nightly = schedule("nightly", { cron: "0 2 * * *" }, tidy);
    const kit = await open([tidy, decide, nightly]);
    await kit.skip("3 days");
    const hourMs = 3_600_000;
    expect(seen).toEqual([0, 1, 2].map((days) => start + days * dayMs + 2 * hourMs));
    expect(await kit.run(decide)).toBe("nobody answered");
  });

  test("may begin without functions, which are given later", async () => {
    const kit = await open([]);
    await kit.work([nap]);
    expect(await kit.run(nap, 1)).toBe(start + dayMs);
    await expect(kit.work([])).rejects.toMatchObject({
      code: "OPTION_INVALID",
    });
  });

  test("passes under fake timers too", async () => {
    vi.useFakeTimers();
    const kit = await open([nap]);
    expect(await kit.run(nap, 30)).toBe(start + 30 * dayMs);
    await kit.close();
  });

  test("begins with the machine's when nothing is said", async () => {
    vi.useFakeTimers({ now: start + 5 });
    const kit = await testHoldfast([nap]);
    expect(kit.now()).toEqual(new Date(start + 5));
    await kit.close();
  });
});

describe("a fake", () => {
  const charge = activity(
    "charge",
    { retry: { maxRetries: 2, backoff: "1 hour" }, timeout: "30s" },
    async (_, cents: number): Promise<{ receipt: string }> => {
      throw new Error(`would really charge ${cents}`);
    },
  );
  const order = workflow("order", async (ctx, cents: number) => {
    const { receipt } = await ctx.call(charge, cents);
    return receipt;
  });

  test("answers in place of its activity, and keeps its calls", async () => {
    const charged = fake(charge, { returns: { receipt: "r-1" } });
    const kit = await open([order, charge, charged]);
    expect(await kit.run(order, 500, { id: "o" })).toBe("r-1");
    expect(charged.calls).toEqual([{ input: 500, id: expect.stringMatching(/^o\./), attempt: 1 }]);
  });

  test("takes its answers in order, and stays with the last", async () => {
    const charged = fake(charge, { throws: new Error("no answer") }, (ctx, cents) => ({
      receipt: `r-${cents}-${ctx.attempt}`,
    }));
    const kit = await open([order, charged]);
    expect(await kit.run(order, 500)).toBe("r-500-2");
    expect(await kit.run(order, 700)).toBe("r-700-1");
    expect(charged.calls.map(({ input }) => input)).toEqual([500, 500, 700]);
  });

  test("that hangs meets its timeout, and time passes meanwhile", async () => {
    const charged = fake(charge, { hangs: true });
    const kit = await open([order, charged]);
    await expect(kit.run(order, 500)).rejects.toMatchObject({
      cause: { cause: { code: "ATTEMPT_TIMED_OUT" } },
    });
    expect(charged.calls.map(({ attempt }) => attempt)).toEqual([1, 2, 3]);
  });
});

describe("a crash", () => {
  test("is survived after any number of events", async () => {
    const done: string[] = [];
    const two = workflow("two", async (ctx) => {
      await ctx.step("one", () => void done.push("one"));
      await ctx.sleep("1 day");
      await ctx.step("two", () => void done.push("two"));
      return ctx.uuid();
    });
    const kit = await open([two]);
    const expected = await kit.run(two, undefined, { id: "same" });
    await kit.close();
    for (let events = 1; events <= 8; events += 1) {
      const crashed = await open([two]);
      done.length = 0;
      crashed.crashAfter(events);
      expect(await crashed.run(two, undefined, { id: "same" })).toBe(expected);
      expect([...new Set(done)]).toEqual(["one", "two"]);
      await crashed.close();
    }
  });

  test("loses what was not recorded, which runs again", async () => {
    let begun = 0;
    const once = workflow("once", async (ctx) =>
      ctx.step("work", async () => {
        begun += 1;
        if (begun === 1) await new Promise(() => undefined);
        return begun;
      }),
    );
    const kit = await open([once]);
    const run = await kit.start(once);
    while (begun === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    await kit.crash();
    expect(await run.result()).toBe(2);
  });
});
