import { expect, expectTypeOf, test } from "vitest";
import { workflow, type WorkflowContext } from "../../src/index.ts";
import type { Schema } from "../../src/runtime/definition/schema.ts";

const numeric: Schema<string, number> = {
  "~standard": {
    version: 1,
    vendor: "test",
    validate: (value) => ({ value: Number(value) }),
  },
};

interface Seen {
  readonly last: number;
}

/** The bodies are compiled and never run. */
function compiles(uses: () => unknown): void {
  expect(uses).toBeTypeOf("function");
}

test("continueWith takes what the code is given", () => {
  const helps = (ctx: WorkflowContext, text: string) => ctx.continueWith(text);
  const checks = (ctx: WorkflowContext<Seen>) => ctx.continueWith({ last: 1 });
  compiles(() => [
    workflow("none", async (ctx) => ctx.continueWith()),
    workflow("maybe", async (ctx, n?: number) => ctx.continueWith(n)),
    workflow("seen", { keep: "1 day" }, async (ctx, seen: Seen) =>
      seen.last === 0 ? checks(ctx) : ctx.continueWith(seen),
    ),
    workflow("helped", async (ctx, text: string) => helps(ctx, text)),
    // What a schema has made is what was stored, and it is not asked again.
    workflow("made", { input: numeric }, async (ctx, n) => {
      expectTypeOf(n).toEqualTypeOf<number>();
      return ctx.continueWith(n + 1);
    }),
    // @ts-expect-error: it takes none.
    workflow("one", async (ctx) => ctx.continueWith(5)),
    // @ts-expect-error: the input is missing.
    workflow("missing", async (ctx, n: number) => ctx.continueWith() ?? n),
    workflow("typo", async (ctx, seen: Seen) =>
      // @ts-expect-error: it is called `last`.
      ctx.continueWith({ lats: seen.last }),
    ),
    workflow("kept", { keep: "1 day" }, async (ctx, n: number) =>
      // @ts-expect-error: text is no number.
      ctx.continueWith(`${n}`),
    ),
    workflow("unmade", { input: numeric }, async (ctx, n) =>
      // @ts-expect-error: the schema made a number of it.
      ctx.continueWith(`${n}`),
    ),
    // @ts-expect-error: that helper is for another input.
    workflow("other", async (ctx, n: number) => checks(ctx) ?? n),
  ]);
});
