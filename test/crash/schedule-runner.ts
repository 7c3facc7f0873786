import { createInterface } from "node:readline";
import { manualClock } from "../../src/model/time/clock.ts";
import { openSqlite } from "../../src/sqlite.ts";
import { row, sql } from "../../src/kernel.ts";
import { triggers } from "../../src/triggers.ts";
import { driverName } from "../sqlite/place.ts";

/**
 * A process that fires schedules on a clock which is set by the lines it
 * reads, and says when nothing is due at that time any more. `end` ends it.
 */
const [path = "", start = "0"] = process.argv.slice(2);

const clock = manualClock(Number(start));
const database = await openSqlite(path, { driver: driverName, clock });
const running = triggers(database).run({
  onError: (error) => console.error(error),
});
process.stdout.write("ready\n");
for await (const line of createInterface({ input: process.stdin })) {
  if (line === "end") break;
  clock.set(Number(line));
  while (await isDue()) await new Promise((resolve) => setImmediate(resolve));
  process.stdout.write(`done ${line}\n`);
}
await running.close();
await database.close();
process.exit(0);

async function isDue(): Promise<boolean> {
  const found = await database.read("due", () =>
    row(sql`SELECT key FROM holdfast_schedule WHERE due_at <= ${clock.now()} LIMIT 1`),
  );
  return found !== undefined;
}
