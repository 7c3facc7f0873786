import { openHoldfast, workflow } from "holdfast";

export const fulfil = workflow("orders/fulfil", async (ctx, item: string) => {
  const label = await ctx.step("print label", () => `label of ${item}`);
  await ctx.sleep("1 second");
  return label;
});

// On globalThis, since `next dev` loads this module again when it changes.
// Opened on first use, because `next build` loads this module too.
const shared = globalThis as { opened?: ReturnType<typeof openHoldfast> };

export function holdfast(): ReturnType<typeof openHoldfast> {
  shared.opened ??= openHoldfast(process.env["DATABASE_URL"] ?? "./app.db");
  return shared.opened;
}
