import { createInterface } from "node:readline";
import { openSqlite } from "../../src/sqlite.ts";
import { awaitEvents } from "../../src/effects.ts";
import { driverName } from "../sqlite/place.ts";

/**
 * A process that does what it is told, line by line: waits for an await-event
 * of turn "t1", or answers one with its own name. It reports what came of it.
 */
const [path = "", name = ""] = process.argv.slice(2);

const database = await openSqlite(path, { driver: driverName });
const events = awaitEvents(database);
process.stdout.write("open\n");

for await (const line of createInterface({ input: process.stdin })) {
  const [order, what = ""] = line.split(" ");
  if (order === "end") break;
  const scope = { session: "s", kind: "turn", id: "t1" };
  const answer =
    order === "wait" ? await events.wait(scope, what) : await events.resolve(what, name);
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
await database.close();
process.exit(0);
