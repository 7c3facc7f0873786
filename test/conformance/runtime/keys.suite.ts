import { describe, expect, test } from "vitest";
import { activity, workflow } from "../../../src/runtime/definition/definitions.ts";
import { rejection, type Backend } from "../backend.ts";
import { onRuntime } from "./fixture.ts";

export function runtimeKeysSuite(backend: Backend): void {
  describe("the idempotency keys of a copied run", () => {
    const once = { retry: { maxRetries: 0 } };

    test(
      "are those of the original for a retry, and for a retry of that; a fork has its own",
      onRuntime(backend, async ({ holdfast }) => {
        const keys: string[] = [];
        const charge = workflow("charge", async (ctx, pass: number) => {
          await ctx.step("begun", () => 1);
          if (pass === 0) return ctx.continueWith(1);
          return ctx.step("charge", once, ({ idempotencyKey }) => {
            keys.push(idempotencyKey);
            throw new Error("no answer");
          });
        });
        await holdfast.work([charge]);
        const first = await holdfast.start(charge, 0, { id: "order-1" });
        await rejection(first.result());
        const retried = await first.retry();
        await rejection(retried.result());
        const again = await retried.retry();
        await rejection(again.result());
        expect(keys).toEqual(["order-1~1#2", "order-1~1#2", "order-1~1#2"]);
        const { items } = await holdfast.executions.events(again.id);
        const begun = items.findLast(
          ({ event }) => event.kind === "stepFinished" && event.outcome === "completed",
        );
        const forked = await again.fork(begun?.version ?? 0);
        await rejection(forked.result());
        await rejection((await forked.retry()).result());
        expect(keys.slice(3)).toEqual([`${forked.id}~1#2`, `${forked.id}~1#2`]);
      }),
    );

    test(
      "are those of the original's children for the children of a retry, asked for again or first",
      onRuntime(backend, async ({ holdfast }) => {
        const keys: string[] = [];
        let isPaid = false;
        const pay = activity("pay", once, async ({ idempotencyKey }, what: string) => {
          keys.push(`${what} ${idempotencyKey}`);
          if (!isPaid) throw new Error("no answer");
        });
        const book = workflow("book", async (ctx, what: string) => {
          await ctx.call(pay, `inner ${what}`);
          return ctx.step("note", ({ idempotencyKey }) => void keys.push(idempotencyKey));
        });
        const order = workflow("order", async (ctx) => {
          await ctx.call(book, "a");
          await ctx.call(pay, "outer");
        });
        await holdfast.work([order, book, pay]);
        const first = await holdfast.start(order, undefined, { id: "order-2" });
        await rejection(first.result());
        const inner = "inner a order-2.o:1_1.o:1_1";
        expect(keys).toEqual([inner]);
        isPaid = true;
        await (await first.retry()).result();
        expect(keys).toEqual([inner, inner, "order-2.o:1_1~0#2", "outer order-2.o:2_1"]);
        isPaid = false;
      }),
    );

    test(
      "are the original's for the retry of an activity, and its own for a fork of one",
      onRuntime(backend, async ({ holdfast }) => {
        const keys: string[] = [];
        const pay = activity("pay", once, async ({ idempotencyKey }) => {
          keys.push(idempotencyKey);
          throw new Error("no answer");
        });
        await holdfast.work([pay]);
        const first = await holdfast.start(pay, undefined, { id: "pay-1" });
        await rejection(first.result());
        await rejection((await first.retry()).result());
        const forked = await first.fork(0);
        await rejection(forked.result());
        expect(keys).toEqual(["pay-1", "pay-1", forked.id]);
      }),
    );
  });
}
