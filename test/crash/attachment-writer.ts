import { openSqlite, attachmentFiles } from "../../src/sqlite.ts";
import { attachments } from "../../src/sessions.ts";
import { driverName } from "../sqlite/place.ts";

/**
 * A process that puts attachments into files with several callers at once and
 * commits every other one. Reports each commit on its standard output, right
 * after the promise resolved.
 */
const [path = "", folder = "", round = "", callers = "4"] = process.argv.slice(2);

const database = await openSqlite(path, { driver: driverName });
const store = attachments(database, { bytes: attachmentFiles(folder) });
const session = { id: "s" };
process.stdout.write("open\n");

async function caller(number: number): Promise<never> {
  for (let index = 0; ; index += 1) {
    // Some contents are the same for all callers and rounds.
    const name = index % 5 === 0 ? `${index}` : `${round}-${number}-${index}`;
    const content = new TextEncoder().encode(name.padEnd(60_000, "."));
    const { id } = await store.put(session, content, {
      mediaType: "text/plain",
    });
    if (index % 2 === 0) continue;
    await store.commit(session, [id]);
    process.stdout.write(`${id}\n`);
  }
}

await Promise.all(Array.from({ length: Number(callers) }, (_, number) => caller(number)));
