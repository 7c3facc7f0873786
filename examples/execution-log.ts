import { HoldfastError } from "holdfast";
import { openSqlite } from "holdfast/sqlite";
import { childId, executions, namedJoinSet } from "holdfast/executions";
import { idSource } from "holdfast/kernel";

const database = await openSqlite(":memory:");
const log = executions(database);

// The second create finds the first: the id and the input are the same.
const order = {
  id: "order-42",
  function: "orders/fulfil",
  input: { cents: 500 },
};
await log.create(order);
console.log((await log.create(order)).existed);

// A worker locks a due run until it releases it, its lease expires or it dies.
const ids = idSource(database);
const holder = { executor: ids.nextId("Exr"), run: ids.nextId("Run") };
const terms = { holder, lease: "30s", limit: 10 } as const;
const [run] = (await log.lockPending({ ...terms, functions: ["orders/fulfil"] })).locked;
if (run === undefined) throw new Error("Nothing is due.");

// The run requests a payment and waits. Request, wait and child are written together or not at all.
const payments = namedJoinSet("payments");
const payment = childId(run.id, payments, 1);
const { nextVersion } = await log.append(
  run.id,
  run.nextVersion,
  [
    { kind: "joinSetCreated", joinSet: payments, call: 1, seen: 0 },
    {
      kind: "childRequested",
      joinSet: payments,
      child: payment,
      function: run.function,
      call: 2,
      seen: 0,
    },
    { kind: "waiting", runExpiresAt: database.clock.now(), call: 2, seen: 0 },
  ],
  {
    fence: holder,
    children: [
      {
        id: payment,
        function: "payments/charge",
        role: "activity",
        input: 500,
      },
    ],
  },
);

// A writer with an old version changes nothing.
try {
  await log.finish(run.id, run.nextVersion, {
    kind: "completed",
    value: "done",
  });
} catch (error) {
  if (!(error instanceof HoldfastError)) throw error;
  console.log(error.code, error.details["expected"], nextVersion);
}

// The end of the child answers its parent, which becomes due again.
const [charge] = (await log.lockPending({ ...terms, functions: ["payments/charge"] })).locked;
if (charge === undefined) throw new Error("Nothing is due.");
await log.finish(charge.id, charge.nextVersion, {
  kind: "completed",
  value: "paid",
});
const [again] = (await log.lockPending({ ...terms, functions: ["orders/fulfil"] })).locked;
if (again === undefined) throw new Error("Nothing is due.");
console.log(again.history.map(({ event }) => event.kind));
console.log(again.responses.map(({ response }) => response.kind));

const result = log.waitForResult("order-42");
await log.finish(again.id, again.nextVersion, {
  kind: "completed",
  value: "shipped",
});
console.log(await result);
await database.close();

// Output:
// true
// VERSION_CONFLICT 5 5
// [ 'joinSetCreated', 'childRequested', 'waiting' ]
// [ 'child' ]
// { kind: 'completed', value: 'shipped' }
