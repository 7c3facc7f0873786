import { describe, expect, test } from "vitest";
import { manualClock } from "../../../src/model/time/clock.ts";
import { activity, signal, workflow } from "../../../src/runtime/definition/definitions.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { onRuntime } from "./fixture.ts";
import { gate, Tally, until } from "./waiting.ts";

const T0 = 1_700_000_000_000;

export function runtimeHandlesSuite(backend: Backend): void {
  describe("a handle", () => {
    test(
      "shows progress and events, and waits for the result as long as it is told",
      onRuntime(backend, async ({ holdfast }) => {
        const go = signal("go");
        const slow = workflow("slow", async (ctx) => {
          ctx.setProgress({ done: 1, of: 2 });
          await ctx.receive(go);
          ctx.setProgress({ done: 2, of: 2 });
          return "done";
        });
        await holdfast.work([slow]);
        const run = await holdfast.start(slow);
        await until(async () => (await run.progress()) !== undefined);
        expect(await run.progress()).toEqual({ done: 1, of: 2 });
        expect(await rejection(run.result({ timeout: 1 }))).toMatchObject({
          code: "DEADLINE_EXCEEDED",
        });
        expect(await rejection(run.result({ signal: AbortSignal.abort() }))).toMatchObject({
          code: "ABORTED",
        });
        await run.signal(go);
        expect(await run.result({ timeout: "1 minute" })).toBe("done");
        await until(async () => ((await run.progress()) as { done: number }).done === 2);
        const { items, next } = await run.events({ limit: 2 });
        expect(items.map(({ event }) => event.kind)).toEqual(["created", "locked"]);
        const rest = await run.events({ after: String(next), limit: 100 });
        expect(rest.items.at(-1)?.event.kind).toBe("finished");
        const nobody = holdfast.get(slow, "nobody");
        for (const ask of [
          () => nobody.progress(),
          () => nobody.events(),
          () => nobody.history(),
          () => nobody.pause(),
          () => nobody.resume(),
          () => nobody.unpark(),
          () => nobody.signal(go),
          () => nobody.fork(1),
          () => nobody.retry(),
        ])
          expect(await rejection(ask())).toMatchObject({
            code: "EXECUTION_NOT_FOUND",
          });
      }),
    );

    test(
      "of another function is refused when it is first asked, and does nothing",
      onRuntime(backend, async ({ holdfast }) => {
        const note = signal<number>("note");
        const mine = workflow("mine", async (ctx) => ctx.receive(note));
        const other = workflow("other", async () => "other");
        await holdfast.start(mine, undefined, { id: "m" });
        const wrong = holdfast.get(other, "m");
        const asked = [
          wrong.result({ timeout: 1 }),
          wrong.status(),
          wrong.progress(),
          wrong.cancel(),
          wrong.pause(),
          wrong.resume(),
          wrong.unpark(),
          wrong.signal(note, 1),
          wrong.events(),
          wrong.history(),
          wrong.fork(0),
          wrong.retry(),
          wrong.erase(),
        ];
        for (const answer of await Promise.allSettled(asked))
          expect(answer).toMatchObject({
            status: "rejected",
            reason: {
              code: "FUNCTION_MISMATCH",
              details: { id: "m", function: "mine", asked: "other" },
            },
          });
        const right = holdfast.get(mine, "m");
        expect(await right.status()).toBe("pending");
        await right.signal(note, 2);
        await holdfast.work([mine]);
        expect(await right.result()).toBe(2);
        await expect(holdfast.get(mine, "n").status()).rejects.toMatchObject({
          code: "EXECUTION_NOT_FOUND",
        });
      }),
    );

    test(
      "retries a failed run from before it failed, and forks one from after an event",
      onRuntime(backend, async ({ holdfast }) => {
        const tally = new Tally();
        const flaky = workflow("flaky", async (ctx, input: string) => {
          const first = await ctx.step("first", () => tally.count("first"));
          const second = await ctx.step("second", { retry: { maxRetries: 0 } }, () => {
            if (tally.count("second") === 1) throw new Error("not yet");
            return "second";
          });
          return [input, first, second];
        });
        await holdfast.work([flaky]);
        const run = await holdfast.start(flaky, "x");
        await rejection(run.result());
        const again = await run.retry({ id: "again" });
        expect(again.id).toBe("again");
        expect(await again.result()).toEqual(["x", 1, "second"]);
        expect(tally.all).toEqual({ first: 1, second: 2 });
        const { items } = await again.events({ limit: 100 });
        const atFirst = items.find(({ event }) => event.kind === "stepFinished");
        const fork = await again.fork(atFirst?.version ?? 0, { id: "fork" });
        expect(await fork.result()).toEqual(["x", 1, "second"]);
        expect(tally.all).toEqual({ first: 1, second: 3 });
        expect(await rejection(again.retry())).toMatchObject({
          code: "NOT_FAILED",
        });
      }),
    );

    test(
      "sends a signal once under one key",
      onRuntime(backend, async ({ holdfast }) => {
        const note = signal<string>("note");
        const last = signal("last");
        const reading = workflow("reading", async (ctx) => {
          const seen: string[] = [];
          await ctx.receive(last);
          for (;;) {
            const text = await ctx.receive(note, { timeout: 1 });
            if (text === undefined) return seen;
            seen.push(text);
          }
        });
        await holdfast.work([reading]);
        const run = await holdfast.start(reading);
        await run.signal(note, "a", { key: "1" });
        await run.signal(note, "a", { key: "1" });
        expect(await rejection(run.signal(note, "b", { key: "1" }))).toMatchObject({
          code: "SIGNAL_CONFLICT",
        });
        await run.signal(note, "c");
        await run.signal(last);
        expect(await run.result()).toEqual(["a", "c"]);
      }),
    );
  });

  describe("starting", () => {
    test(
      "later, with tags, a key and a deadline, and finding by them",
      onRuntime(backend, async ({ another }) => {
        const clock = manualClock(T0);
        const holdfast = await another({ clock });
        const go = signal("go");
        const waiting = workflow("waiting", async (ctx) => {
          await ctx.receive(go);
          return ctx.now();
        });
        await holdfast.work([waiting]);
        const later = await holdfast.start(waiting, undefined, {
          id: "later",
          startAt: { in: "1 hour" },
          tags: ["blue", "green"],
          concurrencyKey: "ada",
        });
        const late = await holdfast.start(waiting, undefined, {
          id: "late",
          deadline: "1 minute",
          tags: ["blue"],
        });
        const ids = async (
          filter: Parameters<typeof holdfast.runs.list>[0],
        ): Promise<readonly string[]> =>
          (await holdfast.runs.list(filter)).items.map(({ id }) => id as string).toSorted();
        expect(await later.status()).toBe("scheduled");
        expect(await ids({ tag: "blue" })).toEqual(["late", "later"]);
        expect(await ids({ tag: "green" })).toEqual(["later"]);
        expect(await ids({ concurrencyKey: "ada" })).toEqual(["later"]);
        expect(await ids({ function: "waiting", status: "scheduled" })).toEqual(["later"]);
        await until(async () => (await late.status()) === "blocked");
        clock.set(T0 + 60_000);
        expect(await rejection(late.result())).toMatchObject({
          kind: "timedOut",
        });
        await later.signal(go);
        clock.set(T0 + 3_600_000);
        expect(await later.result()).toBe(T0 + 3_600_000);
        expect(await holdfast.runs.count()).toMatchObject({
          counts: [
            { function: "waiting", status: "completed", count: 1 },
            { function: "waiting", status: "timedOut", count: 1 },
          ],
        });
      }),
    );

    test(
      "many at once gives their handles in order; the same again finds them",
      onRuntime(backend, async ({ holdfast }) => {
        const double = workflow("double", async (_, n: number) => n * 2);
        await holdfast.work([double]);
        const starts = Array.from({ length: 30 }, (_, n) => ({
          id: `n-${n}`,
          input: n,
        }));
        const runs = await holdfast.startMany(double, starts);
        const again = await holdfast.startMany(double, starts);
        const results = await Promise.all(runs.map((run) => run.result()));
        expect(results).toEqual(starts.map(({ input }) => input * 2));
        expect(again.map(({ id }) => id)).toEqual(starts.map(({ id }) => id));
        expect((await holdfast.runs.list({ limit: 100 })).items).toHaveLength(30);
      }),
    );

    test(
      "from a workflow: a run of its own, later and under an id, once",
      onRuntime(backend, async ({ another }) => {
        const clock = manualClock(T0);
        const holdfast = await another({ clock });
        const own = workflow("own", async (ctx, n: number) => [n, ctx.now()]);
        const starter = workflow("starter", async (ctx) => {
          const at = new Date(T0 + 60_000);
          await ctx.sleepUntil(T0 + 1_000);
          const options = { id: "own", startAt: { at }, tags: ["t"] };
          const first = await ctx.start(own, 1, options);
          const second = await ctx.start(own, 1, options);
          const conflict = await ctx
            .start(own, 2, options)
            .catch((error: unknown) => (error as { code: string }).code);
          return [ctx.now(), first, second, conflict];
        });
        await holdfast.work([own, starter]);
        const run = await holdfast.start(starter);
        await until(async () => (await run.status()) === "blocked");
        clock.set(T0 + 1_000);
        expect(await run.result()).toEqual([
          T0 + 1_000,
          { id: "own", existed: false },
          { id: "own", existed: true },
          "EXECUTION_EXISTS",
        ]);
        clock.set(T0 + 60_000);
        expect(await holdfast.get(own, "own").result()).toEqual([1, T0 + 60_000]);
      }),
    );
  });

  describe("what code is given", () => {
    test(
      "an activity: attempt, key, and what the attempt before told",
      onRuntime(backend, async ({ holdfast }) => {
        const seen: unknown[] = [];
        const beating = activity(
          "beating",
          { retry: { maxRetries: 2, backoff: 1 } },
          async (ctx) => {
            seen.push([ctx.attempt, ctx.idempotencyKey, ctx.lastHeartbeat]);
            if (ctx.attempt === 3) return "done";
            ctx.heartbeat({ page: ctx.attempt });
            await until(
              async () => JSON.stringify(await run.progress()) === `{"page":${ctx.attempt}}`,
            );
            throw new Error("again");
          },
        );
        const run = await holdfast.start(beating, undefined, { id: "b" });
        await holdfast.work([beating]);
        expect(await run.result()).toBe("done");
        expect(seen).toEqual([
          [1, "b", undefined],
          [2, "b", { page: 1 }],
          [3, "b", { page: 2 }],
        ]);
      }),
    );

    test(
      "a step: attempt, a key of its own and for all attempts, and a signal that its timeout aborts",
      onRuntime(backend, async ({ another }) => {
        const clock = manualClock(T0);
        const holdfast = await another({ clock });
        const keys: string[] = [];
        const begun = gate();
        const aborted = gate();
        const keyed = workflow("keyed", async (ctx) => {
          await ctx.step("one", (step) => void keys.push(step.idempotencyKey));
          const retried = await ctx.step(
            "two",
            { retry: { maxRetries: 1, backoff: 1 }, timeout: "1 minute" },
            async ({ attempt, abortSignal, idempotencyKey }) => {
              keys.push(idempotencyKey);
              if (attempt === 2) return attempt;
              abortSignal.addEventListener("abort", () => aborted.open());
              begun.open();
              return new Promise<number>(() => undefined);
            },
          );
          return retried;
        });
        // A lease that the clock passes might end, and the step begin anew.
        await holdfast.work([keyed], { lease: "10 minutes" });
        const run = await holdfast.start(keyed);
        await begun.opened;
        clock.set(T0 + 60_000);
        await aborted.opened;
        await until(async () => {
          clock.advance(1);
          return (await run.status()) === "completed";
        });
        expect(await run.result()).toBe(2);
        const [one, two, again] = keys;
        expect(two).toBe(again);
        expect(one).not.toBe(two);
      }),
    );

    for (const hotRunsMax of [1_000, 0])
      test(
        `a set: results as they come, one cancelled, ${hotRunsMax === 0 ? "replayed" : "live"}`,
        onRuntime(backend, async ({ holdfast }) => {
          const go = signal("go");
          const quick = workflow("quick", async (_, n: number) => n);
          const stuck = workflow("stuck", async (ctx) => {
            await ctx.receive(go);
            return 0;
          });
          const gathering = workflow("gathering", async (ctx) => {
            const set = ctx.joinSet<number>();
            for (const n of [1, 2, 3]) set.spawn(quick, n);
            const child = set.spawn(stuck);
            const seen: number[] = [];
            const ends: string[] = [];
            let taken = 0;
            for (;;) {
              if (taken === 3) child.cancel();
              try {
                const next = await set.next();
                if (next === undefined) break;
                seen.push(next);
              } catch (error) {
                ends.push((error as { kind: string }).kind);
              }
              taken += 1;
            }
            const late = ctx.joinSet<number>();
            late.spawn(quick, 4);
            late.spawn(quick, 5);
            for await (const n of late) seen.push(n);
            seen.sort((a, b) => a - b);
            return { seen, ends, after: set.try() };
          });
          await holdfast.work([quick, stuck, gathering], { hotRunsMax });
          expect(await (await holdfast.start(gathering)).result()).toEqual({
            seen: [1, 2, 3, 4, 5],
            ends: ["cancelled"],
            after: { kind: "allTaken" },
          });
        }),
      );
  });

  describe("the stores of the same database", () => {
    test(
      "are there under their names",
      onRuntime(backend, async ({ holdfast, database }) => {
        expect(holdfast.database).toBe(database);
        const fn = workflow("fn", async () => 1);
        const run = await holdfast.start(fn);
        expect(await holdfast.executions.get(run.id)).toMatchObject({
          function: "fn",
        });
        for (const name of [
          "executions",
          "sessions",
          "queue",
          "leases",
          "attachments",
          "processes",
          "effects",
          "triggers",
          "schedules",
          "blobs",
          "artifacts",
          "maintenance",
        ] as const) {
          expect(typeof holdfast[name]).toBe("object");
          expect(holdfast[name]).toBe(holdfast[name]);
        }
        const { items } = await holdfast.sessions.list();
        expect(items).toEqual([]);
      }),
    );
  });
}
