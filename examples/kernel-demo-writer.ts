import { openSqlite } from "holdfast/sqlite";
import { operation, run, sql } from "holdfast/stores";

/** The process that kernel-demo.ts kills: writes facts until it dies. */
const addFact = operation("addFact", {
  key: (id: string) => id,
  *one(id: string) {
    yield* run(sql`INSERT INTO fact (id, half) VALUES (${id}, 1)`);
    yield* run(sql`INSERT INTO fact (id, half) VALUES (${id}, 2)`);
  },
});

const database = await openSqlite(process.argv[2] ?? "demo.db");
await database.write("table", () =>
  run(sql`CREATE TABLE fact (id TEXT NOT NULL, half INTEGER NOT NULL) STRICT`),
);

async function caller(name: number): Promise<void> {
  for (let number = 1; ; number += 1) {
    const fact = `caller ${name}, fact ${number}`;
    await database.write(addFact, fact);
    process.stdout.write(`${fact}\n`);
  }
}

await Promise.all(Array.from({ length: 200 }, (_, name) => caller(name)));
