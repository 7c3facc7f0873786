import { HoldfastError } from "holdfast";
import { openSqlite } from "holdfast/sqlite";
import { integer, operation, rollbackWith, row, run, sql } from "holdfast/kernel";

interface Move {
  readonly from: string;
  readonly to: string;
  readonly cents: number;
}

const add = operation("add", {
  key: (input: { id: string; cents: number }) => input.id,
  *one({ id, cents }) {
    yield* run(sql`UPDATE account SET cents = cents + ${cents} WHERE id = ${id}`);
  },
});

const transfer = operation("transfer", {
  key: (input: Move) => input.from,
  *one({ from, to, cents }) {
    yield* add({ id: from, cents: -cents });
    yield* add({ id: to, cents });
    const left = yield* row<{ cents: number }>(sql`SELECT cents FROM account WHERE id = ${from}`);
    if (left === undefined || left.cents < 0) return yield* rollbackWith("not enough money");
    return "done";
  },
});

const database = await openSqlite(":memory:");
await database.write("set up", function* () {
  yield* run(sql`CREATE TABLE account (id TEXT PRIMARY KEY, cents ${integer})`);
  yield* run(sql`INSERT INTO account (id, cents) VALUES ('ada', 500), ('bob', 0)`);
});

const stop = database.subscribe((hint) => console.log("hint:", hint));
console.log(await database.write(transfer, { from: "ada", to: "bob", cents: 900 }));
console.log(await database.write(transfer, { from: "ada", to: "bob", cents: 200 }));
stop();

try {
  await database.write("again", () => run(sql`INSERT INTO account (id, cents) VALUES ('ada', 0)`));
} catch (error) {
  if (!(error instanceof HoldfastError)) throw error;
  console.log(error.code, error.retryable);
}
await database.close();

// Output:
// not enough money
// hint: { kind: 'change', operation: 'transfer', key: 'ada' }
// hint: { kind: 'change', operation: 'add', key: 'ada' }
// hint: { kind: 'change', operation: 'add', key: 'bob' }
// done
// CONSTRAINT_VIOLATED false
