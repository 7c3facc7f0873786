import { openSqlite } from "../../src/sqlite.ts";
import { awaitLine } from "../conformance/effect/await/line.ts";
import { driverName } from "../sqlite/place.ts";

/**
 * A process on a shared file that waits for what its standard input says, and
 * reports that it begins to and what it found, one JSON text per line.
 */
const [path = ""] = process.argv.slice(2);
const say = (fact: object): void => void process.stdout.write(`${JSON.stringify(fact)}\n`);

const database = await openSqlite(path, { driver: driverName });

let rest = "";
process.stdin.setEncoding("utf8").on("data", (chunk: string) => {
  const lines = (rest + chunk).split("\n");
  rest = lines.pop() ?? "";
  for (const line of lines) void obey(line);
});

async function obey(line: string): Promise<void> {
  if (line === "polls") return say({ polls: database.stats().polls });
  const waiting = awaitLine(database, line);
  say({ begun: line });
  say({ ended: line, found: await waiting });
}
