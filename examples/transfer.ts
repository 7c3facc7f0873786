import { integer, row, run, sql } from "holdfast/kernel";
import { NonRetryableError, openHoldfast, workflow } from "holdfast";

interface Transfer {
  readonly from: string;
  readonly to: string;
  readonly cents: number;
}

// Both accounts and the record of the transfer are one transaction: whatever
// process dies, the money moves once.
const transfer = workflow("bank/transfer", async (ctx, { from, to, cents }: Transfer) => {
  const left = await ctx.transaction("move", function* () {
    yield* run(sql`UPDATE account SET cents = cents - ${cents} WHERE id = ${from}`);
    yield* run(sql`UPDATE account SET cents = cents + ${cents} WHERE id = ${to}`);
    const account = yield* row<{ cents: number }>(
      sql`SELECT cents FROM account WHERE id = ${from}`,
    );
    if (account === undefined || account.cents < 0)
      throw new NonRetryableError(`${from} has not enough`);
    return account.cents;
  });
  await ctx.step("send receipt", () => console.log(`${from} has ${left}`));
  return left;
});

const holdfast = await openHoldfast(":memory:");
await holdfast.database.setUp("bank", [
  {
    name: "0001 accounts",
    *up() {
      yield* run(sql`CREATE TABLE account (id TEXT PRIMARY KEY, cents ${integer})`);
      yield* run(sql`INSERT INTO account VALUES ('ada', 500), ('bob', 0)`);
    },
  },
]);
await holdfast.work([transfer]);
const move = { from: "ada", to: "bob", cents: 300 };
const first = await holdfast.start(transfer, move, { id: "rent-may" });
await first.result();
// The same id names the same transfer, not a second one.
const again = await holdfast.start(transfer, move, { id: "rent-may" });
console.log(await again.result());
const refused = await holdfast.start(transfer, move, { id: "rent-june" });
await refused.result().catch((error: Error) => console.log(error.name));
await holdfast.close();

// Output:
// ada has 200
// 200
// RunFailedError
