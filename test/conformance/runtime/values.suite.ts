import { describe, expect, test } from "vitest";
import {
  signal,
  workflow,
} from "../../../src/runtime/definition/definitions.ts";
import type { WorkflowContext } from "../../../src/runtime/definition/workflow-context.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { onRuntime } from "./fixture.ts";
import { Tally } from "./waiting.ts";

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
            const map = await ctx.step(
              "map",
              () => new Map([["a", new Set([1n])]]),
            );
            const error = await ctx.step(
              "error",
              () => new RangeError("as a value"),
            );
            const none = await ctx.step("none", () => undefined);
            const refused = await ctx
              .step("instance", () => {
                tally.count("instance");
                return { at: { point: new Point() } };
              })
              .catch(
                (thrown: unknown) =>
                  thrown as Error & { code: string; details: unknown },
              );
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
        const calls: Readonly<
          Record<string, (ctx: WorkflowContext) => unknown>
        > = {
          "A step's name is a text": (ctx) =>
            ctx.step((() => 1) as never, undefined as never),
          "to sleep until": (ctx) => ctx.sleepUntil(new Date("tomorrow")),
          "a function or a signal": () => signal("not a name"),
        };
        const wrong = workflow("wrong", async (ctx, said: string) => {
          await calls[said]?.(ctx);
        });
        await holdfast.work([wrong]);
        for (const said of Object.keys(calls)) {
          const error = await rejection(
            (await holdfast.start(wrong, said)).result(),
          );
          expect(error.message).toContain(said);
        }
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
        const parsing = workflow(
          "parsing",
          { input: schema },
          async (_, n: number) => n + 1,
        );
        await holdfast.work([parsing]);
        expect(await (await holdfast.start(parsing, "41")).result()).toBe(42);
        const error = await rejection(
          holdfast.start(parsing, 5 as unknown as string),
        );
        expect(error).toMatchObject({ code: "INPUT_INVALID" });
        expect(error.message).toContain("order.id: expected a text");
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
  });
}
