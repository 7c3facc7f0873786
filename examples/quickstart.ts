import { openSqlite } from "holdfast/sqlite";
import { operation, row, run, sql } from "holdfast/stores";

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
await database.write("set up", function* () {
  yield* run(
    sql`CREATE TABLE IF NOT EXISTS account (id TEXT PRIMARY KEY, cents INTEGER)`,
  );
  yield* run(
    sql`INSERT INTO account (id, cents) VALUES ('ada', 0) ON CONFLICT DO NOTHING`,
  );
});
console.log(await database.write(deposit, { id: "ada", cents: 500 }));
await database.close();

// Output:
// { cents: 500 }
