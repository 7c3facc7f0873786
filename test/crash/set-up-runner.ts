import { once } from "node:events";
import { integer, text, run, sql } from "../../src/kernel.ts";
import { openTold } from "./told-database.ts";

/**
 * A process that waits for a word, then opens a database, which may be new,
 * and sets up its tables as all others do at that moment. It reports what it
 * has applied.
 */
const [place = ""] = process.argv.slice(2);

process.stdout.write("ready\n");
await once(process.stdin, "data");
const database = await openTold(place);
const { applied } = await database.setUp("shop", [
  {
    name: "0001_goods",
    up: () => run(sql`CREATE TABLE app_goods (id ${text} PRIMARY KEY, n ${integer})`),
  },
  {
    name: "0002_hat",
    up: () => run(sql`INSERT INTO app_goods (id, n) VALUES ('hat', 0)`),
  },
  {
    name: "0003_more_hats",
    up: () => run(sql`UPDATE app_goods SET n = n + 1`),
  },
]);
process.stdout.write(`${applied.join(" ")}\n`);
await database.close();
process.exit(0);
