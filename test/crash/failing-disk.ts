import { openSqlite } from "../../src/sqlite.ts";
import { isHoldfastError } from "../../src/model/errors.ts";
import { addNote, createNoteTable, noteCount } from "../conformance/notes.ts";
import { driverName } from "../sqlite/place.ts";

/**
 * Runs where no file may grow beyond some size, which the system answers as a
 * disk does that fails: writes until it is refused, again and again, and
 * reads. Prints what it was told.
 */
const [path = ""] = process.argv.slice(2);
const database = await openSqlite(path, { driver: driverName });
await database.write("tables", createNoteTable);

let written = 0;
const refusals: object[] = [];
const body = "x".repeat(20_000);
while (refusals.length < 2 && written < 1_000) {
  try {
    await database.write(addNote, { id: `n${written}`, body });
    written += 1;
  } catch (error) {
    if (!isHoldfastError(error)) throw error;
    const { code, retryable, message, details } = error;
    refusals.push({ code, retryable, message, details });
  }
}
const readable = (await noteCount(database)) === 2 * written;
console.log(JSON.stringify({ refusals, readable }));
process.exit(0);
