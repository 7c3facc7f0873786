import { activity, openHoldfast, signal, workflow } from "holdfast";

const charge = activity("charge", async (ctx, cents: number) => {
  console.log(`charging ${cents} cents, attempt ${ctx.attempt}`);
  return `receipt-${cents}`;
});
const approval = signal<{ ok: boolean }>("approval");

const fulfil = workflow("fulfil", async (ctx, order: string) => {
  const receipt = await ctx.call(charge, 500); // on any worker, with its own retries
  const label = await ctx.step("print label", () => `label of ${order}`); // inline, its result recorded
  await ctx.sleep("2 seconds"); // or "2 days": no lock, connection or memory is held
  const reply = await ctx.receive(approval, { timeout: "1 day" });
  return { receipt, label, approved: reply?.ok ?? false };
});

const holdfast = await openHoldfast("./orders.db"); // or "postgres://…"
holdfast.closeOnSignals(); // Ctrl-C stops cleanly and releases its runs
await holdfast.work([fulfil, charge]); // here, and in other processes if you like
const run = await holdfast.start(fulfil, "order-42", { id: "order-42" });
await run.signal(approval, { ok: true }, { key: "from-ada" }); // kept until the run receives it
console.log(await run.result());
await holdfast.close();

// Output:
// charging 500 cents, attempt 1
// { receipt: 'receipt-500', label: 'label of order-42', approved: true }
