// What the power-loss tests of opening run under the recorder: opens a file, and perhaps writes to it or backs it up.
import { openSync, writeSync } from "node:fs";
import { openSqlite } from "../../../src/sqlite.ts";
import { addNote, createNoteTable } from "../../conformance/notes.ts";

const [role = "open"] = process.argv.slice(2);
const path = process.env["HOLDFAST_DATABASE"] ?? "";
const marks = openSync(`${path}.marks`, "a");
const mark = (fact: string): void => void writeSync(marks, JSON.stringify({ fact }));

const database = await openSqlite(path, { driver: "better-sqlite3" });
if (role === "begin") await database.write("tables", createNoteTable);
if (role === "begin" || role === "go on")
  for (const id of role === "begin" ? ["a", "b", "c"] : ["d", "e"]) {
    await database.write(addNote, { id });
    mark(id);
  }
if (role === "back up") {
  await database.backup(`${path}-backup`);
  mark("backup");
}
await database.close();
mark("closed");
