import { describe, expect, test } from "vitest";
import type { HoldfastError } from "../../../src/model/errors.ts";
import { activity, signal, workflow } from "../../../src/runtime/definition/definitions.ts";
import type { WorkflowContext } from "../../../src/runtime/definition/workflow-context.ts";
import type { Schema } from "../../../src/runtime/definition/schema.ts";
import type { Duration } from "../../../src/model/time/durations.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { onRuntime } from "./fixture.ts";
import { gate, Tally } from "./waiting.ts";

class Point {
  readonly x = 1;
}

export function runtimeValuesSuite(backend: Backend): void {
  describe("values", () => {
    for (const hotRunsMax of [1_000, 0])
      test(
        `[RT12] are delivered as they were stored, ${hotRunsMax === 0 ? "replayed" : "live"}`,
        onRuntime(backend, async ({ holdfast }) => {
          const tally = new Tally();
          const several = workflow("several", async (ctx) => {
            const mutated = { n: 1 };
            const kept = await ctx.step("mutated", () => {
              void Promise.resolve().then(() => (mutated.n = 2));
              return mutated;
            });
            const date = await ctx.step("date", () => new Date(5));
            const map = await ctx.step("map", () => new Map([["a", new Set([1n])]]));
            const error = await ctx.step("error", () => new RangeError("as a value"));
            const none = await ctx.step("none", () => undefined);
            const refused = await ctx
              .step("instance", () => {
                tally.count("instance");
                return { at: { point: new Point() } };
              })
              .catch((thrown: unknown) => thrown as Error & { code: string; details: unknown });
            await ctx.sleep(1);
            return {
              kept: kept.n,
              isSame: kept === mutated,
              date: date instanceof Date && date.getTime(),
              map: map.get("a")?.has(1n),
              error: error instanceof RangeError && error.message,
              none: none === undefined,
              refused: "code" in refused && refused.code,
            };
          });
          await holdfast.work([several], { hotRunsMax });
          expect(await (await holdfast.start(several)).result()).toEqual({
            kept: 1,
            isSame: false,
            date: 5,
            map: true,
            error: "as a value",
            none: true,
            refused: "NOT_SERIALIZABLE",
          });
          expect(tally.of("instance")).toBe(1);
        }),
      );

    test(
      "[RT12] a result that cannot be stored fails the run and names the place",
      onRuntime(backend, async ({ holdfast }) => {
        const bad = workflow("bad", async () => ({ deep: { fn: () => 1 } }));
        await holdfast.work([bad]);
        const error = await rejection((await holdfast.start(bad)).result());
        expect(error.cause).toMatchObject({
          code: "NOT_SERIALIZABLE",
          details: { path: "$.deep.fn" },
        });
      }),
    );

    test(
      "a call that makes no sense is told what is wrong with it",
      onRuntime(backend, async ({ holdfast }) => {
        const calls: Readonly<Record<string, (ctx: WorkflowContext) => unknown>> = {
          "A step's name must be a string": (ctx) =>
            ctx.step((() => 1) as never, undefined as never),
          "to sleep until": (ctx) => ctx.sleepUntil(new Date("tomorrow")),
          "a function or a signal": () => signal("not a name"),
        };
        const wrong = workflow("wrong", async (ctx, said: string) => {
          await calls[said]?.(ctx);
        });
        await holdfast.work([wrong]);
        for (const said of Object.keys(calls)) {
          const error = await rejection((await holdfast.start(wrong, said)).result());
          expect(error.message).toContain(said);
        }
      }),
    );

    test(
      "[RT12] anything in place of an argument is refused by a code, live and replayed",
      onRuntime(backend, async ({ holdfast }) => {
        const hostile: readonly unknown[] = [
          null,
          "",
          true,
          [],
          {},
          Symbol("s"),
          () => 1,
          { valueOf: () => Promise.reject(new Error("never")).catch(() => 0) },
          {
            [Symbol.toPrimitive]() {
              throw new Error("hostile");
            },
          },
        ];
        const calls: readonly ((ctx: WorkflowContext, given: never) => unknown)[] = [
          (ctx, given) => ctx.sleepUntil(given),
          (ctx, given) => ctx.sleep(given),
          (ctx, given) => ctx.start(trying, undefined, { startAt: given }),
          (ctx, given) => ctx.start(trying, undefined, { startAt: { at: given } }),
          (ctx, given) => ctx.start(trying, undefined, { id: given }),
          (ctx, given) => ctx.joinSet(given),
          (ctx, given) => ctx.receive(given),
          (ctx, given) => ctx.call(given),
          (ctx, given) => ctx.patched(given),
          (ctx, given) => ctx.step(given, () => 1),
          (ctx, given) => ctx.step("a step", given),
          (ctx, given) => ctx.transaction(given, function* () {}),
          (ctx, given) =>
            ctx.transaction("slip", function* () {
              yield given;
            }),
        ];
        const trying = workflow("trying", async (ctx) => {
          const accepted: string[] = [];
          for (const [index, call] of calls.entries())
            for (const given of hostile)
              try {
                await call(ctx, given as never);
                accepted.push(`${index} ${hostile.indexOf(given)}`);
              } catch (error) {
                const { code } = error as { readonly code?: string };
                if (code === undefined) accepted.push(String(error));
              }
          await ctx.sleep(1);
          return accepted;
        });
        await holdfast.work([trying], { hotRunsMax: 0 });
        const run = await holdfast.start(trying);
        // The function, which is a step's body.
        expect(await run.result()).toEqual(["10 6"]);
        expect((await holdfast.runs.list()).items).toHaveLength(1);
      }),
    );

    test(
      "what is thrown and is no error is recorded as what it says",
      onRuntime(backend, async ({ holdfast }) => {
        const odd = workflow("odd", async () => {
          // What JavaScript allows, and libraries do.
          return Promise.reject("just words");
        });
        await holdfast.work([odd]);
        const error = await rejection((await holdfast.start(odd)).result());
        expect(error.cause).toMatchObject({
          name: "NonError",
          message: "just words",
        });
      }),
    );

    test(
      "an input that does not fit its schema is refused, and what the schema made of it is stored",
      onRuntime(backend, async ({ holdfast }) => {
        const schema = {
          "~standard": {
            version: 1 as const,
            vendor: "test",
            validate: (value: unknown) =>
              typeof value === "string"
                ? { value: Number(value) }
                : {
                    issues: [
                      {
                        message: "expected a text",
                        path: ["order", { key: "id" }],
                      },
                    ],
                  },
            types: undefined as { input: string; output: number } | undefined,
          },
        };
        const parsing = workflow("parsing", { input: schema }, async (_, n: number) => n + 1);
        await holdfast.work([parsing]);
        expect(await (await holdfast.start(parsing, "41")).result()).toBe(42);
        const error = await rejection(holdfast.start(parsing, 5 as unknown as string));
        expect(error).toMatchObject({ code: "INPUT_INVALID" });
        expect(error.message).toContain("order.id: expected a text");
      }),
    );

    test.each<[string, () => unknown]>([
      [
        "throws",
        () => {
          throw new TypeError("of its own");
        },
      ],
      ["throws later", () => Promise.reject(new TypeError("of its own"))],
      [
        "answers later with nothing",
        // oxlint-disable-next-line unicorn/no-thenable -- what some libraries give for a promise.
        () => ({ then: (go: () => void) => go() }),
      ],
      ["answers with nothing", () => undefined],
      ["answers with what is no verdict", () => ({})],
      ["answers with issues that are no list", () => ({ issues: "many" })],
    ])("a schema that %s refuses the input", (_, validate) =>
      onRuntime(backend, async ({ holdfast }) => {
        const schema = {
          "~standard": { version: 1 as const, vendor: "test", validate },
        } as Schema;
        const odd = workflow("odd", { input: schema }, async () => 1);
        const parent = workflow("parent", async (ctx) => ctx.call(odd, 1));
        const note = signal("note", schema);
        await holdfast.work([odd, parent]);
        const run = await holdfast.start(parent);
        for (const ask of [
          () => holdfast.start(odd, 1),
          () => run.signal(note, 1),
          () => run.result().catch(({ cause }: Error) => Promise.reject(cause)),
        ])
          expect(await rejection(ask())).toMatchObject({
            code: "INPUT_INVALID",
            details: { issues: [] },
          });
        expect((await holdfast.runs.list()).items).toHaveLength(1);
      })(),
    );

    test(
      "a schema that answers with issues of a false length refuses the input, and twenty are shown",
      onRuntime(backend, async ({ holdfast }) => {
        let looks = 0;
        const issues = new Proxy([], {
          get(list, name) {
            looks += 1;
            if (looks > 1_000) throw new Error("Walked.");
            if (name === "length") return 2 ** 32 - 1;
            const isItem = typeof name === "string" && /^\d+$/.test(name);
            return isItem ? { message: "no", path: ["n"] } : (Reflect.get(list, name) as unknown);
          },
          has: () => true,
        });
        const schema = {
          "~standard": { version: 1 as const, vendor: "test", validate: () => ({ issues }) },
        } as unknown as Schema;
        const odd = workflow("odd", { input: schema }, async () => 1);
        expect(await rejection(holdfast.start(odd, 1))).toMatchObject({
          code: "INPUT_INVALID",
          details: { issues: Array.from({ length: 20 }, () => ({ path: "n", message: "no" })) },
        });
      }),
    );

    test(
      "a promise is no input: it is refused where a run is started as where a workflow calls",
      onRuntime(backend, async ({ holdfast }) => {
        const plain = workflow("plain", async (_, n: unknown) => n);
        expect(await rejection(holdfast.start(plain, Promise.resolve(1)))).toMatchObject({
          code: "NOT_SERIALIZABLE",
        });
      }),
    );

    test(
      "what ctx refuses comes by the promise that it gives, and says which value of which call it was",
      onRuntime(backend, async ({ holdfast }) => {
        const task = activity("task", async (_, n: unknown) => n);
        const careless = workflow("careless", async (ctx) => {
          const calls: (() => Promise<unknown>)[] = [
            () => ctx.call(task, { items: [Number.NaN] }),
            () => ctx.start(task, Number.NaN),
            () => ctx.step("", () => 1),
            () => ctx.step("s", undefined as never),
            () => ctx.transaction("t", undefined as never),
            () => ctx.sleep("soon" as never),
            () => ctx.sleepUntil("soon" as never),
            () => ctx.receive({} as never),
            () => ctx.call(task, 1),
          ];
          const ended = await Promise.allSettled(calls.map((call) => call()));
          return ended.map((one) =>
            one.status === "fulfilled"
              ? one.value
              : [
                  (one.reason as HoldfastError).code,
                  // The line of the user's code is the first.
                  /careless|values\.suite/.test(
                    String((one.reason as Error).stack?.split("\n    at ")[1]),
                  ),
                ],
          );
        });
        const bad = workflow("bad", (ctx, what: string) =>
          what === "call"
            ? ctx.call(task, { items: [Number.NaN] })
            : Promise.resolve({ found: Number.NaN }),
        );
        await holdfast.work([careless, bad, task]);
        expect(await (await holdfast.start(careless)).result()).toEqual([
          ["NOT_SERIALIZABLE", true],
          ["NOT_SERIALIZABLE", true],
          ["NAME_INVALID", true],
          ["OPTION_INVALID", true],
          ["OPTION_INVALID", true],
          ["DURATION_INVALID", true],
          ["OPTION_INVALID", true],
          ["OPTION_INVALID", true],
          1,
        ]);
        for (const [what, words] of [
          ["call", "In the input of task: Cannot store NaN at $.items[0]"],
          ["result", "In its result: Cannot store NaN at $.found"],
        ] as const) {
          const run = await holdfast.start(bad, what);
          expect((await rejection(run.result())).message).toContain(words);
        }
      }),
    );

    test(
      "ctx inside a step is refused",
      onRuntime(backend, async ({ holdfast }) => {
        const nested = workflow("nested", async (ctx) =>
          ctx.step("outer", { retry: { maxRetries: 0 } }, async () => {
            await Promise.resolve();
            return ctx.step("inner", () => 1);
          }),
        );
        await holdfast.work([nested]);
        const error = await rejection((await holdfast.start(nested)).result());
        expect(error.cause).toMatchObject({ code: "CTX_IN_STEP" });
      }),
    );

    test(
      "ctx inside a step fails it also when nobody awaits that, and its arguments are wrong",
      onRuntime(backend, async ({ holdfast }) => {
        const nested = workflow("nested", async (ctx) =>
          ctx.step("outer", { retry: { maxRetries: 0 } }, () => {
            void ctx.sleep("soon" as never);
            return "done";
          }),
        );
        await holdfast.work([nested]);
        const error = await rejection((await holdfast.start(nested)).result());
        expect(error.cause).toMatchObject({ code: "CTX_IN_STEP" });
      }),
    );

    test(
      "an input is what it was when start was called, with and without a worker here",
      onRuntime(backend, async ({ holdfast, another }) => {
        const echo = workflow("echo", async (_, order: { n: number }) => order.n);
        const passes: Schema<{ n: number }> = {
          "~standard": {
            version: 1,
            vendor: "test",
            validate: (value) => ({ value: value as { n: number } }),
          },
        };
        const checked = workflow(
          "checked",
          { input: passes },
          async (_, order: { n: number }) => order.n,
        );
        const client = await another();
        await holdfast.work([echo, checked]);
        const order = { n: 0 };
        const tags = ["before"];
        const starting = [holdfast, client, holdfast].map((each) => {
          order.n += 1;
          return each.start(order.n < 3 ? echo : checked, order, { tags });
        });
        const startAt: { in: Duration } = { in: 1 };
        const many = holdfast.startMany(echo, [{ input: order, tags, startAt }]);
        order.n = 99;
        tags[0] = "behind";
        startAt.in = "1 hour";
        const runs = [...(await Promise.all(starting)), ...(await many)];
        const results = await Promise.all(runs.map((run) => run.result()));
        expect(results).toEqual([1, 2, 3, 3]);
        const found = await holdfast.runs.list({ tag: "before" });
        expect(found.items).toHaveLength(4);
      }),
    );

    test(
      "of many starts that are refused the first in the list is told, whichever answers first",
      onRuntime(backend, async ({ holdfast }) => {
        const isLast = gate();
        const refusing: Schema<number> = {
          "~standard": {
            version: 1,
            vendor: "test",
            // No promise of the platform, as of some libraries.
            validate: (n) =>
              ({
                // oxlint-disable-next-line unicorn/no-thenable -- what such libraries give.
                then: (answer: (verdict: object) => void) => {
                  const refuse = (): void => answer({ issues: [] });
                  if (n === 0) return void isLast.opened.then(refuse);
                  refuse();
                  isLast.open();
                },
              }) as unknown as Promise<never>,
          },
        };
        const any = workflow("any", { input: refusing }, async () => 1);
        expect(
          await rejection(holdfast.startMany(any, [{ input: 0 }, { input: 1 }])),
        ).toMatchObject({ code: "INPUT_INVALID", details: { index: 0 } });
      }),
    );

    test(
      "schemas that answer later are asked for many starts at once",
      onRuntime(backend, async ({ holdfast }) => {
        let asked = 0;
        const allAsked = gate();
        const late: Schema<number> = {
          "~standard": {
            version: 1,
            vendor: "test",
            validate: async (value) => {
              asked += 1;
              if (asked === 20) allAsked.open();
              await allAsked.opened;
              return { value: value as number };
            },
          },
        };
        const echo = workflow("echo", { input: late }, async (_, n: number) => n);
        await holdfast.work([echo]);
        const numbers = Array.from({ length: 20 }, (_, n) => n);
        const runs = await holdfast.startMany(
          echo,
          numbers.map((input) => ({ input })),
        );
        const results = await Promise.all(runs.map((run) => run.result()));
        expect(results).toEqual(numbers);
      }),
    );

    test(
      "what throws when it is read is refused with the cause, in a call as in a result",
      onRuntime(backend, async ({ holdfast }) => {
        const unreadable = (): object =>
          Object.defineProperty({}, "x", {
            enumerable: true,
            get() {
              throw new Error("boom");
            },
          });
        const task = activity("task", async (_, given: unknown) => given);
        const bad = workflow("bad", (ctx, what: string) =>
          what === "call"
            ? ctx.call(task, unreadable()).catch((error: unknown) => {
                throw error;
              })
            : Promise.resolve(unreadable()),
        );
        await holdfast.work([bad, task]);
        for (const what of ["call", "result"]) {
          const run = await holdfast.start(bad, what);
          const { cause } = await rejection(run.result());
          expect(cause).toMatchObject({
            code: "NOT_SERIALIZABLE",
            cause: { message: "boom" },
          });
        }
      }),
    );
  });
}
