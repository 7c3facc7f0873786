import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openSqlite } from "../../src/sqlite.ts";
import { addNote, createNoteTable, noteCount } from "../conformance/notes.ts";
import { driverName } from "../sqlite/place.ts";

/**
 * Runs on a disk of a few megabytes: writes until it is full, log and
 * checkpoints included, reads, makes room, and goes on. Prints what happened.
 */
const folder = process.argv[2] ?? "";
const ballast = join(folder, "ballast");
writeFileSync(ballast, Buffer.alloc(524_288, 1));
const database = await openSqlite(join(folder, "app.db"), {
  driver: driverName,
  limits: { walBytes: 65_536 },
});
await database.write("tables", createNoteTable);

let written = 0;
let refusal: { code?: string; retryable?: boolean } = {};
const body = "x".repeat(2_000);
while (refusal.code === undefined && written < 10_000) {
  try {
    await database.write(addNote, { id: `n${written}`, body });
    written += 1;
  } catch (error) {
    refusal = error as typeof refusal;
  }
}
const readable = (await noteCount(database)) === 2 * written;
rmSync(ballast);
await database.write(addNote, { id: "after", body });
const counted = await noteCount(database);
await database.close();
const reopened = await openSqlite(join(folder, "app.db"), {
  driver: driverName,
});
const { ok } = await reopened.check({ full: true });
console.log(
  JSON.stringify({
    code: refusal.code,
    retryable: refusal.retryable,
    readable,
    nothingHalf: counted === 2 * (written + 1),
    reopened: (await noteCount(reopened)) === counted,
    ok,
  }),
);
await reopened.close();
