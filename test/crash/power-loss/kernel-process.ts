// What the kernel's power-loss test runs under the recorder: a writer or an observer of one database.
import { openSync, writeSync } from "node:fs";
import { openSqlite } from "../../../src/sqlite.ts";
import { type Database, rows, run, type Tx, sql } from "../../../src/kernel.ts";
import { addNote, addNoteAndThrow, createNoteTable } from "../../conformance/notes.ts";

const [role, name = "", notes = "0", durability = "full"] = process.argv.slice(2);
const path = process.env["HOLDFAST_DATABASE"] ?? "";
const marks = openSync(`${path}.marks`, "a");
const stops = new Set(["OUTCOME_UNKNOWN", "WRITES_STOPPED"]);
const mark = (fact: object): void => void writeSync(marks, JSON.stringify(fact));

// A small bound, so that the log restarts often while facts are written.
const database = await openSqlite(path, {
  driver: "better-sqlite3",
  durability: durability as "full" | "normal",
  limits: { walBytes: 65_536 },
});
if (role === "set-up") await database.write("tables", createNoteTable);
else if (role === "write") await write(database);
else await observe(database);
await database.close();

/** Five callers that say what was acknowledged; some calls fail half-way. */
async function write(to: Database): Promise<void> {
  const caller = async (number: number): Promise<void> => {
    for (let index = 0; index < Number(notes); index += 1) {
      const id = `${name}-${number}-${index}`;
      if (index % 9 === 4) await to.write(addNoteAndThrow, { id: `half-${id}` }).catch(() => 0);
      try {
        await to.write(addNote, { id, body: "x".repeat(300) });
      } catch (error) {
        // The disk failed a flush, as the test arranged: no more is promised.
        if (!stops.has((error as { code?: string }).code ?? "")) throw error;
        return;
      }
      mark({ fact: id });
    }
  };
  await Promise.all([0, 1, 2, 3, 4].map(caller));
}

/**
 * Looks until standard input ends, and says what it saw: others' facts, perhaps
 * just committed. It reads and, in turn, makes a write that changes nothing.
 */
async function observe(from: Database): Promise<void> {
  let ending = false;
  process.stdin.on("end", () => (ending = true)).resume();
  for (let round = 0; !ending; round += 1) {
    const newest =
      round % 2 === 0
        ? await from.read("newest", newestNotes)
        : await from.write("claim", function* () {
            const seen = yield* newestNotes();
            yield* run(sql`UPDATE app_note SET body = '' WHERE id = 'nobody'`);
            return seen;
          });
    for (const { id } of newest) mark({ fact: id });
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

function* newestNotes(): Tx<readonly { readonly id: string }[]> {
  return yield* rows<{ id: string }>(
    sql`SELECT id FROM app_note WHERE half = 2 ORDER BY rowid DESC LIMIT 3`,
  );
}
