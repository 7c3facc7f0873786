import { openPostgres } from "holdfast/postgres";
import { openSqlite } from "holdfast/sqlite";
import { integer, lockRow, operation, row, run, sql } from "holdfast/kernel";

/**
 * Transfers between accounts from many callers at once. Under `readCommitted`
 * each transfer locks both rows before it decides, always the lower id first.
 * So the second one waits for a moment, and no two ever wait for each other.
 * If they locked in the order of the transfer, ada → bob and bob → ada would.
 */
interface Transfer {
  readonly from: number;
  readonly to: number;
  readonly cents: number;
}

const transfer = operation("transfer", {
  key: ({ from, to }: Transfer) => `${Math.min(from, to)}`,
  isolation: "readCommitted",
  *one({ from, to, cents }) {
    const left = new Map<number, number>();
    for (const id of [from, to].toSorted((a, b) => a - b)) {
      const account = yield* row<{ cents: number }>(
        sql`SELECT cents FROM ledger_account WHERE id = ${id} ${lockRow}`,
      );
      left.set(id, account?.cents ?? 0);
    }
    if ((left.get(from) ?? 0) < cents) return "not enough money";
    yield* run(sql`UPDATE ledger_account SET cents = cents - ${cents} WHERE id = ${from}`);
    yield* run(sql`UPDATE ledger_account SET cents = cents + ${cents} WHERE id = ${to}`);
    return "done";
  },
});

// On SQLite nothing waits, and the same code gives the same answers.
const url = process.env["LEDGER_URL"];
const database = url === undefined ? await openSqlite(":memory:") : await openPostgres(url);
await database.write("set up", function* () {
  yield* run(sql`DROP TABLE IF EXISTS ledger_account`);
  yield* run(
    sql`CREATE TABLE ledger_account (id ${integer} PRIMARY KEY, cents ${integer} NOT NULL)`,
  );
  yield* run(sql`INSERT INTO ledger_account (id, cents) VALUES (1, 1000), (2, 1000), (3, 0)`);
});

const there = { from: 1, to: 2, cents: 10 };
const back = { from: 2, to: 1, cents: 10 };
const answers = await Promise.all(
  Array.from({ length: 50 }, (_, index) =>
    database.write(transfer, index % 2 === 0 ? there : back),
  ),
);
console.log(answers.filter((answer) => answer === "done").length, "done");
console.log(await database.write(transfer, { from: 3, to: 1, cents: 1 }));

const total = await database.read("total", () =>
  row<{ cents: number }>(sql`SELECT CAST(sum(cents) AS ${integer}) AS cents FROM ledger_account`),
);
console.log(total?.cents, "cents in all accounts");
await database.close();

// Output:
// 50 done
// not enough money
// 2000 cents in all accounts
