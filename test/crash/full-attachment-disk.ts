import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openSqlite, attachmentFiles } from "../../src/sqlite.ts";
import { attachments } from "../../src/sessions.ts";
import { createSession } from "../conformance/blob/owners.ts";
import { filesIn } from "../conformance/attachment/byte-stores.ts";
import { driverName } from "../sqlite/place.ts";

/** Puts attachments into files on a disk of a few megabytes until it is full, makes room, and goes on. */
const [path = "", small = ""] = process.argv.slice(2);
const ballast = join(small, "ballast");
writeFileSync(ballast, Buffer.alloc(524_288, 1));
const database = await openSqlite(path, { driver: driverName });
await createSession(database, "s");
const folder = join(small, "attachments");
const store = attachments(database, { bytes: attachmentFiles(folder) });
const put = (name: string): Promise<{ readonly id: string }> =>
  store.put({ id: "s" }, new TextEncoder().encode(name.padEnd(100_000)), {
    mediaType: "text/plain",
  });

let written = 0;
let refusal: { code?: string; retryable?: boolean } = {};
while (refusal.code === undefined && written < 1_000) {
  try {
    await put(`n${written}`);
    written += 1;
  } catch (error) {
    refusal = error as typeof refusal;
  }
}
const files = filesIn(folder).length;
rmSync(ballast);
const { id } = await put(`n${written}`);
console.log(
  JSON.stringify({
    code: refusal.code,
    retryable: refusal.retryable,
    nothingHalf: files === written,
    sizeAfter: (await store.get({ id: "s" }, id)).content.length,
  }),
);
await database.close();
