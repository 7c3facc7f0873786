import { describe, expect, test } from "vitest";
import { manualClock } from "../../../src/model/time/clock.ts";
import { activity, signal, workflow } from "../../../src/runtime/definition/definitions.ts";
import type { Schema } from "../../../src/runtime/definition/schema.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { onRuntime } from "./fixture.ts";
import { gate, kindsOf, Tally, until, warningsIn } from "./waiting.ts";

const T0 = 1_700_000_000_000;

/** Holds the loop, as a careless loop of the user's would. */
function holdLoop(ms: number): void {
  const end = performance.now() + ms;
  const before = process.cpuUsage();
  const computedMs = (): number => {
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1_000;
  };
  // On a crowded machine time passes without anything being computed.
  while (performance.now() < end || computedMs() < ms);
}

/** A schema that makes numbers of texts, now or later. */
function numbers(later = false): Schema<string, number> {
  return {
    "~standard": {
      version: 1,
      vendor: "test",
      validate(value) {
        const verdict =
          typeof value === "string"
            ? { value: Number(value) }
            : { issues: [{ message: "expected a text", path: ["n"] }] };
        return later ? Promise.resolve(verdict) : verdict;
      },
    },
  };
}

export function runtimeFaultsSuite(backend: Backend): void {
  describe("code that holds the loop", () => {
    test(
      "is warned about by name: once for a workflow, and for a step of it",
      onRuntime(backend, async ({ holdfast, said }) => {
        const hog = workflow("hog", async (ctx) => {
          await ctx.step("quick", () => 1);
          holdLoop(250);
          await ctx.step("quick", () => 1);
          holdLoop(250);
        });
        const stepHog = workflow("step-hog", async (ctx) => {
          await ctx.step("slow", () => holdLoop(250));
          await ctx.step("slow", () => holdLoop(250));
        });
        const firstHog = workflow("first-hog", async () => holdLoop(250));
        const activityHog = activity("activity-hog", async () => {
          holdLoop(250);
        });
        const all = [hog, stepHog, firstHog, activityHog];
        await holdfast.work(all);
        for (const fn of all) await (await holdfast.start(fn)).result();
        const warned = said
          .filter(({ message }) => message.includes("blocked the event loop"))
          .map(({ level, details }) => ({ level, ...details }));
        expect(warned).toMatchObject([
          { level: "warn", functions: ["hog"] },
          { level: "warn", functions: ["step-hog"], step: "slow" },
          { level: "warn", functions: ["first-hog"] },
          { level: "warn", functions: ["activity-hog"] },
        ]);
      }),
    );
  });

  describe("an activity that ignores its abortSignal", () => {
    const deaf = (tally: Tally) =>
      activity("deaf", { timeout: "1 minute", retry: { maxRetries: 0 } }, async () => {
        tally.count("begun");
        await new Promise(() => undefined);
      });

    test(
      "is ended by its timeout",
      onRuntime(backend, async ({ another }) => {
        const clock = manualClock(T0);
        const holdfast = await another({ clock });
        const tally = new Tally();
        const fn = deaf(tally);
        // A lease that the clock passes might end it first.
        await holdfast.work([fn], { lease: "10 minutes" });
        const run = await holdfast.start(fn);
        await until(() => tally.of("begun") === 1);
        clock.set(T0 + 60_000);
        const error = await rejection(run.result());
        expect(error.cause).toMatchObject({ code: "ATTEMPT_TIMED_OUT" });
      }),
    );

    test(
      "is cancelled ten seconds after it was told",
      onRuntime(backend, async ({ another }) => {
        const clock = manualClock(T0);
        const holdfast = await another({ clock });
        const tally = new Tally();
        const told = gate();
        const fn = activity("deaf", async (ctx) => {
          ctx.abortSignal.addEventListener("abort", () => told.open());
          tally.count("begun");
          await new Promise(() => undefined);
        });
        await holdfast.work([fn]);
        const run = await holdfast.start(fn);
        await until(() => tally.of("begun") === 1);
        await run.cancel({ reason: "enough" });
        await told.opened;
        clock.set(T0 + 9_999);
        expect(await run.status()).toBe("cancelling");
        clock.set(T0 + 10_000);
        expect(await rejection(run.result())).toMatchObject({
          kind: "cancelled",
        });
      }),
    );

    test(
      "is given back when its worker closes, and done by another",
      onRuntime(backend, async ({ another }) => {
        const first = await another();
        const tally = new Tally();
        const fn = activity("deaf", async () => {
          if (tally.count("begun") === 1) await new Promise(() => undefined);
          return tally.of("begun");
        });
        await first.work([fn]);
        const { id } = await first.start(fn);
        await until(() => tally.of("begun") === 1);
        await first.close({ timeout: 1 });
        const second = await another();
        await second.work([fn]);
        expect(await second.get(fn, id).result()).toBe(2);
      }),
    );
  });

  describe("what is given wrongly", () => {
    test(
      "an id, an input, a function: a typed error, and nothing is written",
      onRuntime(backend, async ({ holdfast }) => {
        const fn = workflow("fn", async (_, input: unknown) => input);
        const start = (input: unknown, id?: string) =>
          holdfast.start(fn, input, id === undefined ? {} : { id });
        const codes = await Promise.all(
          [
            start(1, ""),
            start(1, "a b\u0000"),
            start({ at: [{ fn: () => 1 }] }),
            start("x".repeat(3 * 1024 * 1024)),
            holdfast.start({ name: "fn" } as never),
            holdfast.get(fn, "nobody").result(),
            holdfast.get(fn, "nobody").status(),
            holdfast.get(fn, "nobody").cancel(),
            holdfast.resolve("no token", 1),
          ].map(async (given) => {
            const { code, details } = (await rejection(given)) as Error & {
              code: string;
              details: { path?: string };
            };
            return details.path === undefined ? code : `${code} ${details.path}`;
          }),
        );
        expect(codes).toEqual([
          "ID_MALFORMED",
          "ID_MALFORMED",
          "NOT_SERIALIZABLE $.at[0].fn",
          "VALUE_TOO_LARGE",
          "OPTION_INVALID",
          "EXECUTION_NOT_FOUND",
          "EXECUTION_NOT_FOUND",
          "EXECUTION_NOT_FOUND",
          "AWAIT_TOKEN_INVALID",
        ]);
        expect(() => holdfast.get(fn, "")).toThrow(
          expect.objectContaining({ code: "ID_MALFORMED" }),
        );
        expect((await holdfast.runs.list()).items).toEqual([]);
      }),
    );

    test(
      "a result that is too large fails the run, as a step's fails the step",
      onRuntime(backend, async ({ holdfast }) => {
        const large = () => "x".repeat(3 * 1024 * 1024);
        const fn = workflow("large", async (ctx) => {
          const error = await ctx
            .step("large", large)
            .catch((thrown: unknown) => thrown as { code: string });
          if (typeof error === "string" || error.code !== "VALUE_TOO_LARGE") return "not refused";
          return large();
        });
        await holdfast.work([fn]);
        const error = await rejection((await holdfast.start(fn)).result());
        expect(error).toMatchObject({
          kind: "failed",
          step: undefined,
          cause: { code: "VALUE_TOO_LARGE" },
        });
      }),
    );

    test(
      "a signal to a finished run is refused",
      onRuntime(backend, async ({ holdfast }) => {
        const note = signal<string>("note");
        const fn = workflow("fn", async () => 1);
        await holdfast.work([fn]);
        const run = await holdfast.start(fn);
        await run.result();
        expect(await rejection(run.signal(note, "late"))).toMatchObject({
          code: "EXECUTION_FINISHED",
        });
      }),
    );

    for (const hotRunsMax of [1_000, 0])
      test(
        `an input of a child that does not fit its schema rejects the call, ${hotRunsMax === 0 ? "replayed" : "live"}`,
        onRuntime(backend, async ({ holdfast }) => {
          const parsing = workflow("parsing", { input: numbers() }, async (_, n: number) => n + 1);
          const later = workflow("later", { input: numbers(true) }, async (_, n: number) => n);
          const parent = workflow("parent", async (ctx) => {
            const seen: unknown[] = [];
            const attempt = async (call: () => Promise<unknown>) => {
              try {
                seen.push(await call());
              } catch (thrown) {
                seen.push((thrown as { code: string }).code);
              }
            };
            await attempt(() => ctx.call(parsing, "41"));
            await attempt(() => ctx.call(parsing, 41 as never));
            await attempt(() => ctx.call(later, "1"));
            await attempt(async () => ctx.spawn(parsing, null as never));
            await attempt(() => ctx.start(parsing, 5 as never));
            await attempt(() => ctx.start(parsing, "7", { id: "started" }));
            await ctx.sleep(1);
            return seen;
          });
          await holdfast.work([parent, parsing, later], { hotRunsMax });
          expect(await (await holdfast.start(parent)).result()).toEqual([
            42,
            "INPUT_INVALID",
            "INPUT_INVALID",
            "INPUT_INVALID",
            "INPUT_INVALID",
            { id: "started", existed: false },
          ]);
          expect(await holdfast.get(parsing, "started").result()).toBe(8);
        }),
      );
  });

  describe("time and database", () => {
    test(
      "a clock that jumps a day ends sleeps and takes nothing that was recorded",
      onRuntime(backend, async ({ another }) => {
        const clock = manualClock(T0);
        const holdfast = await another({ clock });
        const tally = new Tally();
        const held = gate();
        const fn = workflow("jumping", async (ctx) => {
          await ctx.step("first", () => tally.count("first"));
          await ctx.step("across", async () => {
            tally.count("across");
            await held.opened;
          });
          await ctx.sleep("1 hour");
          return ctx.now();
        });
        await holdfast.work([fn]);
        const run = await holdfast.start(fn);
        await until(() => tally.of("across") === 1);
        const day = 86_400_000;
        clock.set(T0 + day);
        held.open();
        await until(async () => (await kindsOf(holdfast, run.id)).includes("delayRequested"));
        clock.set(T0 + 2 * day);
        expect(await run.result()).toBe(T0 + 2 * day);
        expect(tally.of("first")).toBe(1);
      }),
    );

    test(
      "a clock that is set back by a day takes nothing that was recorded, and time does not go back for the code",
      onRuntime(backend, async ({ another }) => {
        const clock = manualClock(T0);
        const holdfast = await another({ clock });
        const tally = new Tally();
        const held = gate();
        const told: number[] = [];
        const fn = workflow("back", async (ctx) => {
          await ctx.step("first", () => tally.count("first"));
          told.push(ctx.now());
          await ctx.step("across", () => held.opened);
          told.push(ctx.now());
          await ctx.sleep("1 hour");
          told.push(ctx.now());
          await ctx.call(child);
          told.push(ctx.now());
          return tally.of("first");
        });
        const child = activity("child", async () => tally.count("child"));
        await holdfast.work([fn, child]);
        const run = await holdfast.start(fn);
        await until(() => told.length === 1);
        const hour = 3_600_000;
        clock.set(T0 - 24 * hour);
        held.open();
        await until(async () => (await kindsOf(holdfast, run.id)).includes("delayRequested"));
        clock.set(T0 - 22 * hour);
        await until(() => told.length >= 3);
        expect(await run.result()).toBe(1);
        expect(tally.all).toEqual({ child: 1, first: 1 });
        expect(told).toEqual(told.toSorted((a, b) => a - b));
        expect(told).toHaveLength(4);
      }),
    );

    test(
      "an activity whose outcome cannot be encoded is made again",
      onRuntime(backend, async ({ another, said }) => {
        let isBroken = false;
        const payload = {
          name: "test",
          encode(text: string) {
            if (isBroken) throw new Error("no key");
            return text;
          },
          decode: (text: string) => text,
          hash: "sha256" as const,
        };
        const clock = manualClock(T0);
        const holdfast = await another({ clock, payload });
        const tally = new Tally();
        const fn = activity("coded", async () => {
          isBroken = tally.count("made") === 1;
          return "done";
        });
        await holdfast.work([fn], { lease: "1s" });
        const run = await holdfast.start(fn);
        await until(() => said.some(({ level }) => level === "error"));
        isBroken = false;
        clock.advance(1_000);
        await until(async () => (await kindsOf(holdfast, run.id)).includes("attemptTimedOut"));
        const { event } = await holdfast.executions.lastEvent(run.id);
        clock.set((event as { dueAt: number }).dueAt);
        expect(await run.result()).toBe("done");
        expect(tally.of("made")).toBe(2);
      }),
    );

    test(
      "a payload codec that fails while a cancelled run ends is tried again when its lease is over",
      onRuntime(backend, async ({ another, said }) => {
        let isBroken = false;
        const payload = {
          name: "test",
          encode(text: string) {
            if (isBroken) throw new Error("no key");
            return text;
          },
          decode: (text: string) => text,
          hash: "sha256" as const,
        };
        const holdfast = await another({ payload });
        const begun = gate();
        const tally = new Tally();
        const fn = workflow("coded", async (ctx) => {
          begun.open();
          try {
            await ctx.sleep("1 day");
          } finally {
            isBroken = tally.count("cleanup") === 1;
            await ctx.step("cleanup", () => "cleaned");
          }
        });
        await holdfast.work([fn], { lease: "1s" });
        const run = await holdfast.start(fn);
        await begun.opened;
        await run.cancel();
        await until(() => warningsIn(said).length > 0);
        isBroken = false;
        expect(await rejection(run.result())).toMatchObject({
          kind: "cancelled",
        });
      }),
    );

    for (const side of ["encode", "decode"] as const)
      for (const place of ["step", "result", "throw", "transaction"] as const)
        test(
          `a payload codec that fails to ${side} at a ${place} parks the run, which goes on when it is mended`,
          onRuntime(backend, async ({ another, said }) => {
            let broken: string | undefined;
            const failing = (method: string) => (text: string) => {
              if (broken === method) throw new Error("no key");
              return text;
            };
            const payload = {
              name: "test",
              encode: failing("encode"),
              decode: failing("decode"),
              hash: "sha256" as const,
            };
            const holdfast = await another({ payload });
            const fn = workflow("coded", async (ctx) => {
              const isMended = said.some(({ level }) => level === "error");
              const first = await ctx.step("first", () => 1);
              if (place === "transaction")
                await ctx.transaction("second", function* () {
                  if (!isMended) broken = side;
                  return 2;
                });
              if (place !== "step" && !isMended) broken = side;
              const rest = { retry: { maxRetries: 0 } };
              await ctx
                .step("second", rest, () => {
                  if (place === "step" && !isMended) broken = side;
                  if (place === "throw") throw new Error("thrown");
                })
                .catch(() => undefined);
              return first;
            });
            await holdfast.work([fn]);
            const run = await holdfast.start(fn);
            await until(() => said.some(({ level }) => level === "error"));
            broken = undefined;
            await until(async () => (await run.status()) === "parked");
            const { event } = await holdfast.executions.lastEvent(run.id);
            expect(event).toMatchObject({
              kind: "parked",
              code: "PAYLOAD_CODEC_FAILED",
            });
            await run.unpark();
            expect(await run.result()).toBe(1);
          }),
        );

    for (const place of ["call", "start", "continueWith"] as const)
      test(
        `a payload codec that fails for a moment at the input of a ${place} parks the run, whose catch is not entered`,
        onRuntime(backend, async ({ another }) => {
          let failures = 0;
          const payload = {
            name: "test",
            encode(text: string) {
              if (failures === 0) return text;
              failures -= 1;
              throw new Error("no key");
            },
            decode: (text: string) => text,
            hash: "sha256" as const,
          };
          const holdfast = await another({ payload });
          const tally = new Tally();
          const child = workflow("child", async (_, n: number) => n);
          const fn = workflow("coded", async (ctx, pass: number) => {
            await ctx.step("first", () => tally.count("first"));
            if (pass === 2) return "done";
            if (tally.count("code") === 1) failures = 1;
            if (place === "continueWith") return ctx.continueWith(2);
            try {
              await (place === "call" ? ctx.call(child, 1) : ctx.start(child, 1));
              return "done";
            } catch {
              return "caught";
            }
          });
          await holdfast.work([fn, child]);
          const run = await holdfast.start(fn, 1);
          await until(async () => ["parked", "failed", "completed"].includes(await run.status()));
          const { event } = await holdfast.executions.lastEvent(run.id);
          expect(event).toMatchObject({ code: "PAYLOAD_CODEC_FAILED" });
          await run.unpark();
          expect(await run.result()).toBe("done");
        }),
      );

    test(
      "a database that is closed under a worker is told to who waits, and what was recorded goes on when it is open again",
      onRuntime(backend, async ({ place, another }) => {
        const tally = new Tally();
        const begun = gate();
        const fn = workflow("closed", async (ctx) => {
          await ctx.step("first", () => tally.count("first"));
          return ctx.step("second", async () => {
            if (tally.count("second") > 1) return "done";
            begun.open();
            return new Promise<string>(() => undefined);
          });
        });
        if (!backend.survives) return;
        const database = await place.open();
        const clock = manualClock(T0);
        const lost = await another({ clock }, database);
        await lost.work([fn], { lease: "1s" });
        const run = await lost.start(fn, undefined, { id: "r" });
        const waiting = rejection(run.result());
        await begun.opened;
        await database.close();
        expect(await waiting).toMatchObject({ code: "DATABASE_CLOSED" });
        expect(await rejection(run.status())).toMatchObject({
          code: "DATABASE_CLOSED",
        });
        const closing = lost.close({ timeout: 1 });
        // Past the time to close, and past its lease, which could not be given back.
        clock.advance(1_000);
        await closing;
        const next = await another({ clock });
        await next.work([fn]);
        expect(await next.get(fn, "r").result()).toBe("done");
        expect(tally.of("first")).toBe(1);
      }),
    );
  });
}
