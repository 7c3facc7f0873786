import { createInterface } from "node:readline";
import { manualClock } from "../../src/model/time/clock.ts";
import { isHoldfastError } from "../../src/model/errors.ts";
import type { LeaseFence } from "../../src/model/lease.ts";
import { openSqlite } from "../../src/sqlite.ts";
import { sessions } from "../../src/sessions.ts";
import { driverName } from "../sqlite/place.ts";

/**
 * A process that commits a turn on the revision it is told, line by line, and
 * reports the revision it made or the error it got.
 */
const [path = "", name = "", fence = "{}"] = process.argv.slice(2);

const database = await openSqlite(path, {
  driver: driverName,
  clock: manualClock(2_000),
});
const store = sessions(database);
const handle = await store.open("s");
if (handle === undefined) throw new Error("There is no session.");
process.stdout.write("open\n");

for await (const line of createInterface({ input: process.stdin })) {
  if (line === "end") break;
  const expectedRevision = Number(line);
  const answer = await store
    .commit(handle, {
      turn: `${name}-${expectedRevision}`,
      fence: JSON.parse(fence) as LeaseFence,
      expectedRevision,
      nodes: [{ kind: "note", payload: name }],
    })
    .then(
      ({ revision }) => `committed ${revision}`,
      (error: unknown) =>
        isHoldfastError(error)
          ? `${error.code} ${error.retryable ? "retryable" : "final"}`
          : String(error),
    );
  process.stdout.write(`${answer}\n`);
}
await database.close();
process.exit(0);
