import { integer, row, run, sql } from "holdfast/kernel";
import { activity, NonRetryableError, openHoldfast, signal, workflow } from "holdfast";

interface Order {
  readonly id: string;
  readonly cents: number;
}

// The outside world: a bank that does not answer the first call.
const charge = activity(
  "billing/charge",
  { retry: { backoff: "10ms" }, timeout: "30s" },
  async (ctx, { id, cents }: Order) => {
    if (cents > 10_000) throw new NonRetryableError("the card was declined");
    if (ctx.attempt === 1) throw new Error("the bank did not answer");
    // ctx.idempotencyKey is the same for both attempts: give it to the bank.
    return `${id} paid ${cents} at attempt ${ctx.attempt}`;
  },
);
const packed = signal<{ by: string }>("packed");
const moveStock = (lamps: number) => () => run(sql`UPDATE stock SET lamps = lamps + ${lamps}`);

const fulfil = workflow("orders/fulfil", async (ctx, order: Order) => {
  // The app's own table: changed exactly once, in one transaction with the record.
  await ctx.transaction("take from stock", moveStock(-1));
  try {
    const receipt = await ctx.call(charge, order);
    // People pack the order. The run holds nothing while it waits for them.
    const packing = await ctx.receive(packed, { timeout: "2 days" });
    if (packing === undefined) throw new Error("it was not packed");
    const label = await ctx.step("print label", () => `label of ${order.id}`);
    return `${receipt}, ${label}, packed by ${packing.by}`;
  } catch (error) {
    // Compensation is recorded too, and resumes after a crash.
    await ctx.transaction("put back", moveStock(1));
    throw error;
  }
});

const holdfast = await openHoldfast(process.env["HOLDFAST_DB"] ?? ":memory:");
await holdfast.database.setUp("shop", [
  {
    name: "0001 stock",
    *up() {
      yield* run(sql`CREATE TABLE stock (lamps ${integer})`);
      yield* run(sql`INSERT INTO stock VALUES (10)`);
    },
  },
]);
await holdfast.work([fulfil, charge]);

const small = await holdfast.start(fulfil, { id: "A", cents: 500 });
await small.signal(packed, { by: "Ada" }, { key: "scan-17" });
console.log(await small.result());

const large = await holdfast.start(fulfil, { id: "B", cents: 50_000 });
await large.result().catch((error: Error) => console.log(error.name));

const stock = await holdfast.database.read("stock", () => row(sql`SELECT lamps FROM stock`));
console.log(stock);
await holdfast.close();

// Output:
// A paid 500 at attempt 2, label of A, packed by Ada
// RunFailedError
// { lamps: 9 }
