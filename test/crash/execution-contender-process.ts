import { createInterface } from "node:readline";
import { openSqlite } from "../../src/sqlite.ts";
import { contender } from "../conformance/execution/contender.ts";
import type { Command } from "../conformance/execution/contender.ts";
import { driverName } from "../sqlite/place.ts";

/** A process that does what its standard input says, and answers each line with one. */
const [path = "", name = ""] = process.argv.slice(2);
const database = await openSqlite(path, { driver: driverName });
const self = contender(database, name);
process.stdout.write("open\n");

for await (const line of createInterface({ input: process.stdin })) {
  const answer = await self.ask(JSON.parse(line) as Command);
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
await database.close();
