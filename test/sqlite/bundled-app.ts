import { openSqlite } from "holdfast/sqlite";
import { integer, operation, row, run, sql } from "holdfast/kernel";

/** An app of a user's, which test/sqlite/bundles.test.ts bundles: it uses every thread and process there is. */
const add = operation("add", {
  key: (id: number) => String(id),
  *one(id) {
    yield* run(sql`INSERT INTO note (id, body) VALUES (${id}, ${"x".repeat(200)})`);
  },
});

const count = operation("count", {
  key: () => "notes",
  *one() {
    return yield* row<{ notes: number }>(sql`SELECT count(*) AS notes FROM note`);
  },
});

async function main([path = "", copy = ""]: readonly string[]): Promise<void> {
  const database = await openSqlite(path, { limits: { walBytes: 65_536 } });
  await database.setUp("app", [
    {
      name: "0001 notes",
      *up() {
        yield* run(sql`CREATE TABLE note (id ${integer} PRIMARY KEY, body TEXT)`);
      },
    },
  ]);
  const found = await database.read(count, undefined);
  // Many at once are flushed by the thread, and fill the log until it is checkpointed.
  let next = found?.notes ?? 0;
  do {
    const ids = Array.from({ length: 100 }, () => (next += 1));
    await Promise.all(ids.map((id) => database.write(add, id)));
  } while (database.stats().checkpoints.passive === 0);
  const quick = await database.check();
  const full = await database.check({ full: true });
  const backup = await database.backup(copy);
  const { checkpoints } = database.stats();
  await database.close();
  console.log(
    JSON.stringify({
      found: found?.notes,
      written: next,
      problems: [...quick.problems, ...full.problems],
      failures: checkpoints.failures,
      isBackedUp: backup.bytes > 0,
    }),
  );
}

void main(process.argv.slice(2));
