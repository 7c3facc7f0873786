import { artifacts, blobs, maintenance } from "holdfast/blobs";
import { run, sql, text } from "holdfast/kernel";
import { openSqlite } from "holdfast/sqlite";

const database = await openSqlite(":memory:");
await database.write("set up", () =>
  run(sql`CREATE TABLE invoice (id ${text} PRIMARY KEY, pdf ${text})`),
);
const store = blobs(database);
const bytes = (content: string): Uint8Array => new TextEncoder().encode(content);

// Equal bytes are stored once, under their own hash.
const { hash } = await store.put(bytes("Invoice 7: 500 cents"));
console.log((await store.put(bytes("Invoice 7: 500 cents"))).hash === hash);

// A row of the app does not keep a blob. The same transaction writes the row and the keep.
const keep = store.keep.prepare(hash, "invoice/7");
await database.write("file invoice", function* () {
  yield* keep();
  yield* run(sql`INSERT INTO invoice (id, pdf) VALUES ('7', ${hash})`);
});

// A name keeps its blob. Unreferenced blobs are collected after a grace period.
await artifacts(database).put("reports", "latest", bytes("All is well."));
await store.put(bytes("A draft that was not kept."));
const care = maintenance(database);
const { kept, deleted } = await care.collect({ grace: 0 });
console.log(`kept ${kept}, deleted ${deleted}`);

const { content } = await artifacts(database).load("reports", "latest");
console.log(new TextDecoder().decode(content));
console.log((await care.check()).damaged);
await database.close();

// Output:
// true
// kept 2, deleted 1
// All is well.
// []
