import { openSqlite } from "holdfast/sqlite";
import { operation, run, sql } from "holdfast/kernel";

/** A process that kernel-demo.ts kills: writes facts until it dies. */
const [path = "demo.db", name = "writer"] = process.argv.slice(2);

const addFact = operation("addFact", {
  key: (id: string) => id,
  *one(id: string) {
    yield* run(sql`INSERT INTO fact (id, half) VALUES (${id}, 1)`);
    yield* run(sql`INSERT INTO fact (id, half) VALUES (${id}, 2)`);
  },
});

const database = await openSqlite(path);

async function caller(number: number): Promise<void> {
  for (let count = 1; ; count += 1) {
    const fact = `${name}, caller ${number}, fact ${count}`;
    await database.write(addFact, fact);
    process.stdout.write(`${fact}\n`);
  }
}

await Promise.all(Array.from({ length: 100 }, (_, number) => caller(number)));
