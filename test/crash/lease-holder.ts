import { leases, queue } from "../../src/sessions.ts";
import { openSqlite } from "../../src/sqlite.ts";
import { driverName } from "../sqlite/place.ts";

/** Takes the lease of session "s" for an hour, claims what is queued, and stays. */
const [path = ""] = process.argv.slice(2);
const database = await openSqlite(path, { driver: driverName });
const outcome = await leases(database).acquire(
  "s",
  { owner: "child", incarnation: "first" },
  { lease: "1 hour" },
);
if (outcome.kind === "acquired") await queue(database).claimTurn(outcome.lease);
process.stdout.write(`${JSON.stringify({ kind: outcome.kind, owner: database.owner })}\n`);
setInterval(() => undefined, 60_000);
