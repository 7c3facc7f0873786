import { executions } from "holdfast/executions";
import { idSource, integer, row, run, sql, text } from "holdfast/kernel";
import { queue, sessions } from "holdfast/sessions";
import { openSqlite } from "holdfast/sqlite";

const database = await openSqlite(":memory:");
await database.setUp("shop", [
  {
    name: "0001 invoices",
    *up() {
      yield* run(sql`CREATE TABLE invoice (id ${text} PRIMARY KEY, cents ${integer})`);
    },
  },
]);

const log = executions(database);
const inbox = queue(database);
await sessions(database).create("chat-7");
await log.create({ id: "order-42", function: "orders/fulfil" });
const ids = idSource(database);
const holder = { executor: ids.nextId("Exr"), run: ids.nextId("Run") };
const { nextVersion } = await log.lock("order-42", 1, {
  holder,
  lease: "1 minute",
});

// Checked, encoded and given their ids here, outside any transaction …
const append = log.append.prepare("order-42", nextVersion, [
  { kind: "finished", result: { kind: "completed", value: { cents: 500 } } },
]);
const tell = inbox.enqueue.prepare("chat-7", {
  items: [{ kind: "input", payload: "Order 42 was shipped and billed." }],
  source: "order-42",
});

// … and run inside one: the run's end, the message and the invoice, or none of them.
const shipAndBill = (cents: number): Promise<unknown> =>
  database.write("ship and bill", function* () {
    yield* append();
    const { kind } = yield* tell();
    yield* run(sql`INSERT INTO invoice (id, cents) VALUES ('42', ${cents})`);
    if (cents < 0) throw new Error("An invoice is not negative.");
    return kind;
  });

await shipAndBill(-1).catch((error: Error) => console.log(error.message));
console.log(await ended(), await invoices());
console.log(await shipAndBill(500));
console.log(await ended(), await invoices());
await database.close();

async function ended(): Promise<string> {
  return (await log.result("order-42")) === undefined ? "runs" : "has ended";
}

function invoices(): Promise<unknown> {
  return database.read("invoices", () => row(sql`SELECT COUNT(*) AS invoices FROM invoice`));
}

// Output:
// An invoice is not negative.
// runs { invoices: 0 }
// queued
// has ended { invoices: 1 }
