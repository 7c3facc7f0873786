import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { activity, openHoldfast, signal, workflow } from "holdfast";

interface Order {
  readonly id: string;
  readonly cents: number;
}

// The calls that reached the outside world.
const done: string[] = [];

const charge = activity(
  "billing/charge",
  { retry: { maxRetries: 5, backoff: "10ms" } },
  async (ctx, order: Order) => {
    done.push(`charge, attempt ${ctx.attempt}`);
    if (ctx.attempt === 1) throw new Error("the bank did not answer");
    return { receipt: `${order.id} for ${order.cents}` };
  },
);

const approval = signal<{ ok: boolean }>("approval");

const fulfil = workflow("orders/fulfil", async (ctx, order: Order) => {
  const payment = await ctx.call(charge, order);
  const label = await ctx.step("print label", () => {
    done.push("print label");
    return `label of ${order.id}`;
  });
  await ctx.sleep("20ms");
  const reply = await ctx.receive(approval, { timeout: "1 day" });
  return { ...payment, label, approved: reply?.ok ?? false };
});

const folder = mkdtempSync(join(tmpdir(), "holdfast-workflow-"));
const file = join(folder, "orders.db");

// One program starts the run and works on it until it is blocked.
const first = await openHoldfast(file);
await first.work([fulfil, charge]);
const order = { id: "order-42", cents: 500 };
const run = await first.start(fulfil, order, { id: order.id });
while ((await run.status()) !== "blocked" || done.length < 3)
  await new Promise((resolve) => setTimeout(resolve, 5));
await first.close();

// A later program resumes it: no recorded step runs again.
const second = await openHoldfast(file);
await second.work([fulfil, charge]);
const again = second.get(fulfil, "order-42");
await again.signal(approval, { ok: true });
console.log(await again.result());
console.log(done);
await second.close();
rmSync(folder, { recursive: true });

// Output:
// {
//   receipt: 'order-42 for 500',
//   label: 'label of order-42',
//   approved: true
// }
// [ 'charge, attempt 1', 'charge, attempt 2', 'print label' ]
