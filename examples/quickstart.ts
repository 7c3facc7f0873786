import { openSqlite } from "holdfast/sqlite";
import { integer, operation, row, run, sql } from "holdfast/kernel";

const deposit = operation("deposit", {
  key: (input: { id: string; cents: number }) => input.id,
  *one({ id, cents }) {
    yield* run(
      sql`UPDATE account SET cents = cents + ${cents} WHERE id = ${id}`,
    );
    return yield* row<{ cents: number }>(
      sql`SELECT cents FROM account WHERE id = ${id}`,
    );
  },
});

const database = await openSqlite("./bank.db");
await database.setUp("bank", [
  {
    name: "0001 accounts",
    *up() {
      yield* run(
        sql`CREATE TABLE account (id TEXT PRIMARY KEY, cents ${integer})`,
      );
      yield* run(sql`INSERT INTO account (id, cents) VALUES ('ada', 0)`);
    },
  },
]);
console.log(await database.write(deposit, { id: "ada", cents: 500 }));
await database.close();

// Output:
// { cents: 500 }
