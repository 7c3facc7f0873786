import { activity, signal, workflow } from "holdfast";

/** The real calls to the outside; the test beside this file replaces them with fakes. */
export const charge = activity(
  "subscriptions/charge",
  { retry: { maxRetries: 3, backoff: "1 hour" }, timeout: "30s" },
  async (ctx, cents: number): Promise<{ receipt: string }> => {
    throw new Error(`no bank is connected: ${cents} cents, key ${ctx.idempotencyKey}`);
  },
);

export const cancelled = signal<{ reason: string }>("cancelled");

/** A trial of 30 days, then a charge, unless the customer cancels first. */
export const subscription = workflow(
  "subscriptions/trial",
  async (ctx, customer: { mail: string; cents: number }) => {
    const welcome = await ctx.step("welcome", () => `Hello, ${customer.mail}`);
    const left = await ctx.receive(cancelled, { timeout: "30 days" });
    if (left !== undefined) return { welcome, ended: left.reason };
    const { receipt } = await ctx.call(charge, customer.cents);
    return { welcome, receipt };
  },
);
