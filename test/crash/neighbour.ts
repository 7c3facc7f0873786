import type { OwnerId } from "../../src/kernel.ts";
import { openSqlite } from "../../src/sqlite.ts";
import { addNote } from "../conformance/notes.ts";
import { driverName } from "../sqlite/place.ts";

/**
 * A process on a shared file that does what its standard input says and
 * reports what it hears, one JSON text per line.
 */
const [path = ""] = process.argv.slice(2);
/** Comparable between processes of one machine, and finer than a millisecond. */
const nowMs = (): number => performance.timeOrigin + performance.now();
const say = (fact: object): void => void process.stdout.write(`${JSON.stringify(fact)}\n`);

const database = await openSqlite(path, { driver: driverName });
database.subscribe((hint) => {
  if (hint.kind === "change" && hint.operation !== "addNote") return;
  say({ heard: hint, at: nowMs() });
});
say({ owner: database.owner });

let rest = "";
process.stdin.setEncoding("utf8").on("data", (chunk: string) => {
  const lines = (rest + chunk).split("\n");
  rest = lines.pop() ?? "";
  for (const line of lines) void obey(line.split(" "));
});

async function obey([command, argument = "", callers = "20"]: readonly string[]): Promise<void> {
  switch (command) {
    case "write":
      await database.write(addNote, { id: argument });
      return say({ wrote: argument, at: nowMs() });
    case "liveness":
      return say({ liveness: await database.liveness(argument as OwnerId) });
    case "flood":
      return flood(Number(argument), Number(callers));
    case "stats":
      return say({ stats: database.stats() });
    case "close":
      await database.close();
      return process.exit(0);
    case "leave":
      // Ends without closing, as a program that forgot to does.
      return process.exit(0);
    default:
      say({ unknown: command });
  }
}

/** Many callers at once, until so many notes are written. */
async function flood(notes: number, callers: number): Promise<void> {
  let begun = 0;
  let written = 0;
  const caller = async (): Promise<void> => {
    while (begun < notes) {
      begun += 1;
      await database.write(addNote, { id: `${database.owner}-${begun}` });
      written += 1;
      if (written % 10 === 0) say({ flooded: written });
    }
  };
  await Promise.all(Array.from({ length: callers }, caller));
}
